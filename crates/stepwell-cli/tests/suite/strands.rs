//! Flows that failed or wait in strands-cli, taken up here: only what is missing is asked.

use crate::elsewhere::fixtures;
use crate::test_env::TestEnv;

/// A session of strands-cli, and what taking it up asks.
struct Case {
    fixture: &'static str,
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
        fixture: "chain-broken",
        script: "lanes: {clerk: [{text: the page}]}",
        respond: None,
        asked: &["clerk: the page"],
        output: "the page",
    },
    Case {
        fixture: "chain-asking",
        script: "lanes: {painter: [{text: of before}, {text: the final}]}",
        respond: Some("fine"),
        asked: &["painter: the final"],
        output: "the final",
    },
    Case {
        fixture: "routing-broken",
        script: "lanes: {refund/helper: [{text: of before}, {text: handled}]}",
        respond: None,
        asked: &["refund/helper: handled"],
        output: "handled",
    },
    Case {
        fixture: "parallel-broken",
        script: "lanes: {reduce: [{text: all in all}]}",
        respond: None,
        asked: &["reduce: all in all"],
        output: "all in all",
    },
    Case {
        fixture: "drafts-broken",
        script: "lanes: {producer: [{text: draft three}], evaluator: [{text: '{\"score\": 93}'}]}",
        respond: None,
        asked: &["producer: draft three", "evaluator: {\"score\": 93}"],
        output: "draft three",
    },
    Case {
        fixture: "orchestrator-broken",
        script: "lanes: {writeup: [{text: written up}]}",
        respond: None,
        asked: &["writeup: written up"],
        output: "written up",
    },
    Case {
        fixture: "workflow-broken",
        script: "lanes: {rolls: [{text: l}], plaits: [{text: r}], crate: [{text: packed}]}",
        respond: None,
        asked: &["crate: packed", "plaits: r", "rolls: l"],
        output: "packed",
    },
    Case {
        fixture: "graph-asking",
        script: "lanes: {'on': [{text: it burns on}]}",
        respond: Some("burn"),
        asked: &["on: it burns on"],
        output: "it burns on",
    },
];

/// What models answered, by lane.
fn answers(env: &TestEnv, id: &str) -> Vec<String> {
    let log = env.quietly(&["log", id, "--json"]);
    let answers = log.json().into_iter().filter_map(|event| {
        let body = &event["body"];
        let text = body["parts"][0]["text"]["text"].as_str()?.to_owned();
        (body["role"] == "assistant").then(|| format!("{}: {text}", body["lane"].as_str().unwrap()))
    });
    answers.collect()
}

#[test]
fn a_flow_that_failed_or_waits_in_strands_cli_makes_only_the_missing_calls() {
    let fixtures = fixtures().join("strands-cli");
    for Case { fixture, script, respond, asked, output } in CASES {
        let env = TestEnv::new();
        env.file("script.yaml", script);
        let folder = fixtures.join(fixture);
        let ran = env.quietly(&["import", folder.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{fixture}: {}", ran.stderr);
        let id = ran.stdout.split_whitespace().nth(1).unwrap().to_owned();
        let before = answers(&env, &id);
        // A look at what would be asked knows it.
        let next = env.quietly(&["resume", &id, "--dry-run", "--json"]).json().remove(0);
        let asks = next["next"].as_array().unwrap().iter().all(|node| node["asks"].is_string());
        assert!(asks, "{fixture}: {next}");
        let mut line = vec!["resume", &id, "--model", "script:script.yaml", "--json"];
        line.extend(respond.into_iter().flat_map(|said| ["--respond", said]));
        let ran = env.quietly(&line);
        assert_eq!(ran.code, Some(0), "{fixture}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json().remove(0)["output"], output, "{fixture}");
        let mut new = answers(&env, &id).split_off(before.len());
        if fixture.starts_with("workflow") {
            // Two of them run at once.
            new.sort();
        }
        assert_eq!(new, asked, "{fixture}");
    }
}

#[test]
fn a_graph_without_a_conversation_is_not_sent_and_says_why() {
    let env = TestEnv::new();
    let folder = env.work().join("loaf");
    std::fs::create_dir_all(folder.join("multi_agents/multi_agent_g")).unwrap();
    let session = r#"{"session_id": "loaf", "session_type": "AGENT",
        "created_at": "2026-03-10T00:00:00+00:00", "updated_at": "2026-03-10T00:00:00+00:00"}"#;
    std::fs::write(folder.join("session.json"), session).unwrap();
    let graph = r#"{"type": "graph", "id": "g", "status": "failed", "current_task": "bake a loaf",
        "node_results": {"plan": {"status": "failed",
            "result": {"type": "exception", "message": "the oven is cold"}}}}"#;
    std::fs::write(folder.join("multi_agents/multi_agent_g/multi_agent.json"), graph).unwrap();
    let ran = env.quietly(&["import", "loaf"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let before = env.quietly(&["log", "loaf", "--json"]).stdout;
    env.file("never.yaml", "- text: hello\n");
    let ran = env.quietly(&["resume", "loaf", "--model", "script:never.yaml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("loaf has nothing to send to a model"), "{}", ran.stderr);
    assert!(ran.stderr.contains("stepwell run \"TASK\" --session loaf"), "{}", ran.stderr);
    assert_eq!(env.quietly(&["log", "loaf", "--json"]).stdout, before, "nothing was recorded");
}
