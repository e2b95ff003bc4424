//! GAIA-OPS's agents, and what bites in their states.

use proptest::prelude::*;
use serde_json::{Value, json};
use stepwell::model::{Driver, Phase, Time};
use stepwell::sessions::{ResumeDecision, ResumeLimits, ResumeReason};
use stepwell::{SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Became, Format, Mode, take_in};

use crate::generate::{self, turns};
use crate::mirror::{became, taken, written};
use crate::seeds::fixtures;
use crate::sheet::{self, assert_laid_out, laid, one, returned, took, value, warned};
use crate::support::log;

const NAME: &str = ".claude/session/agent-20260108-180530-0b5e55ed/state.json";

const FIELDS: [&str; 11] = [
    "agent_id",
    "agent_name",
    "purpose",
    "created_at",
    "last_updated",
    "phase",
    "metadata",
    "resume_ready",
    "history",
    "error_count",
    "last_error",
];

fn gaia() -> Format {
    "gaia".parse().unwrap()
}

fn state(changes: &Value) -> Value {
    let mut state = json!({
        "agent_id": "agent-20260108-180530-0b5e55ed", "agent_name": "dough-mixer",
        "purpose": "dough_plan", "created_at": "2026-01-08T18:05:30Z",
        "last_updated": "2026-01-08T18:10:15Z", "phase": "approval",
        "metadata": {"batch": "B17", "tags": ["dough"]}, "resume_ready": true,
        "history": [
            {"from_phase": "initializing", "to_phase": "investigating", "timestamp": "2026-01-08T18:06:00Z"},
            {"from_phase": "investigating", "to_phase": "approval", "timestamp": "2026-01-08T18:10:15Z"},
        ],
        "error_count": 0, "last_error": null,
    });
    for (name, new) in changes.as_object().unwrap() {
        state[name] = new.clone();
    }
    state
}

fn imported(state: &Value) -> (Stepwell, SessionId, String) {
    let well = Stepwell::in_memory();
    let (folder, _) = laid(NAME, format!("{state:#}"));
    let report = took(&well, folder.path());
    (well, one(&report), warned(&report))
}

/// What would be decided at a moment.
fn decision(well: &Stepwell, id: &SessionId, now: &str) -> ResumeReason {
    let info = well.info(id).unwrap();
    let now: Time = now.parse().unwrap();
    ResumeDecision::of(Some(&info), now, ResumeLimits::default()).reason
}

/// Loads a state as `agent_session.py` does, and says whether it would be taken up again:
/// `datetime.fromisoformat` after `Z` became `+00:00`.
fn load(text: &str) -> Value {
    assert_laid_out(text, &FIELDS);
    assert!(text.is_ascii(), "it is not escaped: {text}");
    let state = value(text);
    let phases = [
        "initializing",
        "investigating",
        "planning",
        "approval",
        "executing",
        "validating",
        "completed",
        "failed",
        "abandoned",
    ];
    let moment = |it: &Value| {
        let text = it.as_str().unwrap().replace('Z', "+00:00");
        assert!(text.len() >= 19 && text.as_bytes()[10] == b'T', "{text}");
    };
    moment(&state["created_at"]);
    moment(&state["last_updated"]);
    assert!(phases.contains(&state["phase"].as_str().unwrap()));
    assert!(state["metadata"].is_object() && state["resume_ready"].is_boolean());
    assert!(state["error_count"].is_u64());
    for entry in state["history"].as_array().unwrap() {
        assert!(phases.contains(&entry["to_phase"].as_str().unwrap()));
        assert!(phases.contains(&entry["from_phase"].as_str().unwrap()));
        moment(&entry["timestamp"]);
    }
    if ["completed", "failed", "abandoned"].contains(&state["phase"].as_str().unwrap()) {
        moment(&state["finalized_at"]);
        assert!(state["duration_seconds"].is_number());
    }
    state
}

#[test]
fn the_fixtures_come_in_as_agents_and_go_back_as_they_were() {
    let well = Stepwell::in_memory();
    let folder = fixtures(gaia()).unwrap();
    let first = taken(&well, &folder);
    assert_eq!(became(&first, Became::Imported), 4, "{first:?}");
    let head = |id: &str| well.info(&id.parse().unwrap()).unwrap().head;
    let new = head("agent-20260510-030500-0b5e55ed");
    assert_eq!(
        (new.driver, new.phase, new.ready),
        (Driver::External, Some(Phase::Initializing), false)
    );
    assert_eq!((new.agent.as_str(), new.task.as_str()), ("dough-mixer", "dough_plan"));
    assert_eq!(new.metadata["batch"], "B17");
    let failing = head("burnt-thrice");
    assert_eq!((failing.errors, failing.phase), (3, Some(Phase::Planning)));
    assert_eq!(failing.last_error.unwrap().message, "the oven is cold");
    let zombie = head("back-from-the-bin");
    assert_eq!((zombie.phase, zombie.status), (Some(Phase::Approval), Status::Paused));
    let now = "2026-05-10T03:20:00Z";
    let reason = |id: &str| decision(&well, &id.parse().unwrap(), now);
    assert_eq!(reason("agent-20260510-030500-0b5e55ed"), ResumeReason::NotReady);
    assert_eq!(reason("agent-20260510-030600-d0c5f00d"), ResumeReason::Resumable);
    assert_eq!(reason("burnt-thrice"), ResumeReason::TooManyErrors);
    for it in &first {
        let (_folder, path) = written(&well, &it.id, gaia(), "state.json");
        let text = std::fs::read_to_string(path).unwrap();
        let genuine = folder.join(format!(".claude/session/{}/state.json", it.id));
        assert_eq!(text, std::fs::read_to_string(genuine).unwrap());
        load(&text);
    }
    assert_eq!(became(&taken(&well, &folder), Became::Unchanged), 4);
}

#[test]
fn naive_z_and_offset_times_are_the_same_times() {
    for at in [
        "2026-01-08T18:10:15Z",
        "2026-01-08T18:10:15+00:00",
        "2026-01-08T18:10:15",
        "2026-01-08T23:40:15+05:30",
    ] {
        let state = state(&json!({"last_updated": at}));
        let (well, id, warnings) = imported(&state);
        assert_eq!(warnings, "");
        assert_eq!(well.info(&id).unwrap().head.updated_at.to_string(), "2026-01-08T18:10:15Z");
        assert_eq!(decision(&well, &id, "2026-01-08T18:20:00Z"), ResumeReason::Resumable);
        assert_eq!(value(&returned(gaia(), NAME, &state.to_string())), state);
    }
}

#[test]
fn a_time_that_is_none_or_lies_ahead_is_not_resumable() {
    for at in [json!("soon"), json!(null), json!("0001-01-01T00:00:00Z"), json!(12)] {
        let (well, id, _) = imported(&state(&json!({"last_updated": at, "created_at": at})));
        let now = well.now();
        let info = well.info(&id).unwrap();
        let decided = ResumeDecision::of(Some(&info), now, ResumeLimits::default());
        assert!(!decided.should_resume, "{at}: {decided:?}");
    }
    let (well, id, _) = imported(&state(&json!({"last_updated": "2026-01-08T20:00:00Z"})));
    assert_eq!(decision(&well, &id, "2026-01-08T18:20:00Z"), ResumeReason::InTheFuture);
    assert_eq!(decision(&well, &id, "2026-01-08T20:31:00Z"), ResumeReason::TimedOut);
}

#[test]
fn corrupt_empty_and_null_states_are_reported_and_stop_no_other() {
    let well = Stepwell::in_memory();
    for (text, why) in [
        ("", "is empty"),
        ("null", "holds null"),
        ("{\"agent_id\": ", "holds no session"),
        ("[1]", "holds no session"),
    ] {
        let (folder, good) = laid(NAME, state(&json!({})).to_string());
        let bad = folder.path().join(".claude/session/agent-bad");
        std::fs::create_dir_all(&bad).unwrap();
        std::fs::write(bad.join("state.json"), text).unwrap();
        let found = crate::mirror::found(folder.path());
        assert_eq!(found.len(), 2, "{text}");
        let reports: Vec<_> =
            found.iter().map(|it| take_in(&well, Mode::Write, it.format, &it.path)).collect();
        let faults: Vec<String> =
            reports.iter().filter_map(|it| Some(it.fault.as_ref()?.to_string())).collect();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains(why) && faults[0].contains("agent-bad"), "{faults:?}");
        assert!(good.exists());
    }
}

#[test]
fn a_history_that_cannot_be_leads_to_where_the_agent_is() {
    let left = state(&json!({"history": [
        {"from_phase": "initializing", "to_phase": "completed", "timestamp": "2026-01-08T18:06:00Z"},
        {"from_phase": "completed", "to_phase": "approval", "timestamp": "2026-01-08T18:10:15Z"},
    ]}));
    let (well, id, warnings) = imported(&left);
    assert!(warnings.contains("completed, which is final"), "{warnings}");
    assert_eq!(well.info(&id).unwrap().head.phase, Some(Phase::Approval));
    assert_eq!(value(&returned(gaia(), NAME, &left.to_string())), left);
    let (_, _, warnings) = imported(&state(&json!({"phase": "sleeping"})));
    assert!(warnings.contains("\"sleeping\" is no phase"), "{warnings}");
}

#[test]
fn last_updated_counts_also_where_the_history_goes_on_after_it() {
    let older = state(&json!({
        "last_updated": "2026-01-08T17:30:00Z", "created_at": "2026-01-08T17:00:00Z",
        "error_count": 1, "last_error": {"message": "m", "timestamp": "2026-01-08T18:09:00Z"},
    }));
    let (well, id, warnings) = imported(&older);
    assert!(warnings.contains("goes on after last_updated"), "{warnings}");
    assert_eq!(well.info(&id).unwrap().head.updated_at.to_string(), "2026-01-08T17:30:00Z");
    assert_eq!(decision(&well, &id, "2026-01-08T18:11:00Z"), ResumeReason::TimedOut);
    assert_eq!(decision(&well, &id, "2026-01-08T17:40:00Z"), ResumeReason::Resumable);
    assert_eq!(value(&returned(gaia(), NAME, &older.to_string())), older);
}

#[test]
fn an_agent_that_was_finalized_is_as_it_should_be() {
    for phase in ["completed", "failed", "abandoned"] {
        let ended = state(&json!({
            "phase": phase, "resume_ready": false, "last_updated": "2026-01-08T18:12:00Z",
            "finalized_at": "2026-01-08T18:12:00Z", "duration_seconds": 390.0,
        }));
        let (well, id, warnings) = imported(&ended);
        assert_eq!(warnings, "", "{phase}");
        let head = well.info(&id).unwrap().head;
        assert_eq!(head.phase.map(|it| it.to_string()).as_deref(), Some(phase));
        assert_eq!(head.updated_at.to_string(), "2026-01-08T18:12:00Z");
        assert_eq!(value(&returned(gaia(), NAME, &ended.to_string())), ended);
    }
}

#[test]
fn a_status_that_was_put_aside_is_taken_up_while_the_phase_agrees() {
    let aside = json!({"stepwell": {"status": {"status": "partial", "reason": "max_steps"}}});
    let (well, id, _) = imported(&state(&json!({"metadata": aside})));
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.status, head.stop_reason), (Status::Partial, Some(StopReason::MaxSteps)));
    // GAIA-OPS has finished it since.
    let (well, id, _) = imported(&state(&json!({
        "metadata": aside, "phase": "completed", "finalized_at": "2026-01-08T18:12:00Z",
    })));
    assert_eq!(well.info(&id).unwrap().head.status, Status::Success);
}

#[test]
fn the_last_error_is_an_object_a_text_or_nothing() {
    for (error, message) in [
        (json!("plain"), Some("plain")),
        (json!({"message": "m", "timestamp": "2026-01-08T18:07:00Z"}), Some("m")),
        (json!(null), None),
    ] {
        let state = state(&json!({"error_count": 2, "last_error": error}));
        let (well, id, _) = imported(&state);
        let head = well.info(&id).unwrap().head;
        assert_eq!(head.errors, 2);
        assert_eq!(head.last_error.map(|it| it.message).as_deref(), message);
        assert_eq!(value(&returned(gaia(), NAME, &state.to_string())), state);
    }
}

#[test]
fn an_agent_that_went_on_is_appended_to() {
    let well = Stepwell::in_memory();
    let (folder, path) =
        laid(NAME, state(&json!({"error_count": 1, "last_error": "x"})).to_string());
    let id = one(&took(&well, folder.path()));
    let before = log(&well, &id);
    let mut grown = state(&json!({
        "error_count": 2, "last_error": "y", "phase": "completed", "resume_ready": false,
        "last_updated": "2026-01-08T18:20:00Z", "finalized_at": "2026-01-08T18:20:00Z",
        "summary": "applied", "duration_seconds": 870.0,
    }));
    grown["history"].as_array_mut().unwrap().push(
        json!({"from_phase": "approval", "to_phase": "completed", "timestamp": "2026-01-08T18:20:00Z"}),
    );
    std::fs::write(&path, grown.to_string()).unwrap();
    assert_eq!(became(&took(&well, folder.path()).sessions, Became::Updated), 1);
    let head = well.info(&id).unwrap().head;
    assert_eq!((head.errors, head.status), (2, Status::Success));
    assert_eq!(head.summary.as_deref(), Some("applied"));
    assert_eq!(log(&well, &id)[..before.len()], before[..]);
    assert_eq!(value(&returned(gaia(), NAME, &grown.to_string())), grown);
}

#[test]
fn hostile_states_are_bounded_and_lead_nowhere() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = state(&json!({"agent_id": "../../../tmp/x"})).to_string();
    let text = text.replace("\"batch\":\"B17\"", &format!("\"deep\":{deep},\"a\":1,\"a\":2"));
    let well = Stepwell::in_memory();
    let (folder, _) = laid(NAME, &text);
    let report = took(&well, folder.path());
    assert!(warned(&report).contains("metadata is kept"), "{report:?}");
    let id = one(&report);
    assert!(!id.as_str().contains('/'));
    let (out, _) = written(&well, &id, gaia(), "state.json");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
    let (_folder, path) = laid(NAME, b"{\"agent_id\": \"\xff\"}");
    assert!(
        take_in(&well, Mode::Write, gaia(), &path).fault.unwrap().to_string().contains("not UTF-8")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_goes_back_as_it_was(
        to in proptest::collection::vec(prop::sample::select(vec!["investigating", "planning", "approval", "executing", "validating"]), 0..5),
        end in prop::sample::select(vec!["", "completed", "failed", "abandoned"]),
        metadata in proptest::collection::btree_map("[a-z]{1,6}", sheet::json(), 0..3),
        odd in sheet::json(),
        (ready, errors) in (any::<bool>(), 0..5_u64),
    ) {
        let mut at = "initializing";
        let mut history = Vec::new();
        for (n, to) in to.iter().copied().chain([end]).filter(|it| !it.is_empty()).enumerate() {
            if to == at { continue }
            let timestamp = format!("2026-01-08T18:0{n}:00.5+00:00");
            history.push(json!({"from_phase": at, "to_phase": to, "timestamp": timestamp, "note": n}));
            at = to;
        }
        let mut genuine = state(&json!({
            "history": history, "phase": at, "metadata": metadata, "resume_ready": ready,
            "error_count": errors, "odd": odd,
        }));
        if !end.is_empty() {
            genuine["finalized_at"] = json!("2026-01-08T18:10:15Z");
            genuine["duration_seconds"] = json!(285.0);
        }
        let text = format!("{genuine:#}");
        prop_assert_eq!(returned(gaia(), NAME, &text), text);
    }

    #[test]
    fn what_was_recorded_here_is_loaded_there(turns in turns()) {
        let well = Stepwell::in_memory();
        let id = generate::record(&well, "own-1", &turns);
        let mut text = Vec::new();
        let exported = stepwell_formats::export(&well, &id, gaia(), &mut text).unwrap();
        prop_assert!(exported.losses.iter().any(|(what, _)| what == "messages"));
        let state = load(std::str::from_utf8(&text).unwrap());
        prop_assert_eq!(&state["phase"], "completed");
        let (there, back, _) = imported(&state);
        prop_assert_eq!(there.info(&back).unwrap().head.status, Status::Success);
    }
}
