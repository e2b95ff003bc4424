//! Flows that failed or wait in strands-cli, taken up here: only what is missing is asked.

use std::path::Path;

use crate::desk::Desk;

/// A session of strands-cli, and what taking it up asks.
struct Case {
    sample: &'static str,
    /// What each lane is answered, and not one answer more.
    script: &'static str,
    /// What a person says, if they are asked.
    respond: Option<&'static str>,
    /// The new answers, by lane.
    asked: &'static [&'static str],
    /// What the flow comes to.
    output: &'static str,
}

const CASES: [Case; 8] = [
    Case {
        sample: "chain-failed-step2",
        script: "lanes: {writer: [{text: the report}]}",
        respond: None,
        asked: &["writer: the report"],
        output: "the report",
    },
    Case {
        sample: "chain-hitl-paused",
        script: "lanes: {writer: [{text: of before}, {text: the final}]}",
        respond: Some("fine"),
        asked: &["writer: the final"],
        output: "the final",
    },
    Case {
        sample: "routing-failed-r1",
        script: "lanes: {billing/handler: [{text: of before}, {text: handled}]}",
        respond: None,
        asked: &["billing/handler: handled"],
        output: "handled",
    },
    Case {
        sample: "parallel-reduce-failed",
        script: "lanes: {reduce: [{text: all in all}]}",
        respond: None,
        asked: &["reduce: all in all"],
        output: "all in all",
    },
    Case {
        sample: "evaluator-optimizer-failed",
        script: "lanes: {producer: [{text: draft three}], evaluator: [{text: '{\"score\": 95}'}]}",
        respond: None,
        asked: &["producer: draft three", "evaluator: {\"score\": 95}"],
        output: "draft three",
    },
    Case {
        sample: "orchestrator-writeup-failed",
        script: "lanes: {writeup: [{text: written up}]}",
        respond: None,
        asked: &["writeup: written up"],
        output: "written up",
    },
    Case {
        sample: "workflow-failed-layer1",
        script: "lanes: {left: [{text: l}], right: [{text: r}], join: [{text: joined}]}",
        respond: None,
        asked: &["join: joined", "left: l", "right: r"],
        output: "joined",
    },
    Case {
        sample: "graph-hitl-paused",
        script: "lanes: {'yes': [{text: it went on}]}",
        respond: Some("approve"),
        asked: &["yes: it went on"],
        output: "it went on",
    },
];

/// What models answered, by lane.
fn answers(desk: &Desk, id: &str) -> Vec<String> {
    let log = desk.quietly(&["log", id, "--json"]);
    let answers = log.json().into_iter().filter_map(|event| {
        let body = &event["body"];
        let text = body["parts"][0]["text"]["text"].as_str()?.to_owned();
        (body["role"] == "assistant").then(|| format!("{}: {text}", body["lane"].as_str().unwrap()))
    });
    answers.collect()
}

#[test]
fn a_flow_that_failed_or_waits_in_strands_cli_makes_only_the_missing_calls() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stepwell-formats/tests/suite/samples/strands-cli");
    for Case { sample, script, respond, asked, output } in CASES {
        let desk = Desk::new();
        desk.file("script.yaml", script);
        let folder = samples.join(sample);
        let ran = desk.quietly(&["import", folder.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{sample}: {}", ran.stderr);
        let id = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
        let before = answers(&desk, &id);
        let mut line = vec!["resume", &id, "--model", "script:script.yaml", "--json"];
        line.extend(respond.into_iter().flat_map(|said| ["--respond", said]));
        let ran = desk.quietly(&line);
        assert_eq!(ran.code, Some(0), "{sample}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json().remove(0)["output"], output, "{sample}");
        let mut new = answers(&desk, &id).split_off(before.len());
        if sample.starts_with("workflow") {
            // Two of them run at once.
            new.sort();
        }
        assert_eq!(new, asked, "{sample}");
    }
}
