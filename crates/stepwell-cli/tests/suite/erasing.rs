//! purge, scrub.

use insta::assert_snapshot;
use stepwell::Message;
use stepwell::model::{FileChanged, FileState};

use crate::test_env::{AUTH, MIGRATION, TESTS, TestEnv};

#[test]
fn a_purge_is_shown_asked_and_final() {
    let mut env = TestEnv::furnished();
    env.run(&["purge", TESTS]);
    env.run(&["purge", TESTS, "--yes"]);
    env.run(&["purge", TESTS, "--yes"]);
    env.run(&["delete", AUTH]);
    env.run(&["purge", AUTH, "-y", "--json"]);
    env.say("purge nobody");
    let size = regex::Regex::new(r"[\d.]+ K?B").unwrap();
    assert_snapshot!(size.replace_all(&env.transcript(), "[SIZE]"));
}

/// Does any file of the store hold these bytes?
fn on_disk(env: &TestEnv, secret: &str) -> bool {
    std::fs::read_dir(env.work().join(".stepwell")).unwrap().any(|entry| {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    })
}

#[test]
fn a_scrub_erases_everywhere_and_leaves_a_note() {
    let mut env = TestEnv::furnished();
    let secret = "hunter2-xyzzy";
    {
        let well = env.well();
        let session = well.resume(&AUTH.parse().unwrap()).unwrap();
        session.append(Message::user(format!("the password is {secret}"))).unwrap();
        let call = format!(r#"{{"password":"{secret}"}}"#);
        // Through the well it would be redacted: it came before that, or from elsewhere.
        let events = vec![
            Message::assistant("").calling("c9", "login", call).into(),
            Message::tool_result("c9", format!("{secret} is wrong")).into(),
            stepwell::model::Step { lane: stepwell::Lane::main(), n: 2 }.into(),
        ];
        let (id, epoch) = (session.id().clone(), Some(session.lease().epoch));
        let append =
            stepwell::store::Append { session: id, epoch, expected: None, events: events.into() };
        well.store().write(stepwell::store::Write::Append(append)).unwrap();
        let blob = well.store().put_blob(format!("key = {secret}").as_bytes()).unwrap();
        let after = FileState::File { blob, mode: 0o600 };
        let before = FileState::Absent;
        let file = FileChanged { path: ".env".into(), before, after, renamed_from: None };
        session.append(file).unwrap();
        session.finish(stepwell::Status::Failed, None).unwrap();
        let other = well.resume(&TESTS.parse().unwrap()).unwrap();
        other.append(Message::user(secret)).unwrap();
        other.finish(stepwell::Status::Success, None).unwrap();
        well.delete(&TESTS.parse().unwrap()).unwrap();
        assert_eq!(
            well.search(&stepwell::store::query::Search::new("xyzzy")).unwrap().hits.len(),
            3
        );
    }
    assert!(on_disk(&env, secret));
    env.run(&["scrub", secret]);
    env.run(&["scrub", secret, AUTH, "--yes"]);
    env.run(&["scrub", "-F", secret, "--yes", "--rule", "passwords"]);
    env.run(&["scrub", secret, "--yes"]);
    env.say("search xyzzy");
    env.say("verify");
    env.run(&["log", AUTH, "--kind", "file,scrubbed"]);
    assert!(!on_disk(&env, secret));
    let digests = regex::Regex::new("[0-9a-f]{64}").unwrap();
    assert_snapshot!(digests.replace_all(&env.transcript(), "[DIGEST]"));
}

#[test]
fn what_a_run_wrote_in_the_background_is_erased_with_its_session() {
    let mut env = TestEnv::furnished();
    let runs = env.work().join(".stepwell/runs");
    std::fs::create_dir(&runs).unwrap();
    let log = |id: &str| runs.join(format!("{id}.log"));
    for id in [AUTH, TESTS, MIGRATION] {
        std::fs::write(log(id), "it said hunter2-xyzzy\n").unwrap();
    }
    let holds = |id: &str| std::fs::read_to_string(log(id)).unwrap().contains("xyzzy");
    let (code, told) = {
        let said = env.quietly(&["scrub", "hunter2-xyzzy", AUTH, "--yes"]);
        (said.code, said.stderr)
    };
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("logs of runs: 1 line"), "{told}");
    assert!(!holds(AUTH) && holds(TESTS));
    assert_eq!(env.quietly(&["scrub", "hunter2-xyzzy", "--yes"]).code, Some(0));
    assert!(!holds(TESTS) && !holds(MIGRATION));
    env.run(&["purge", TESTS, "--yes"]);
    assert!(!log(TESTS).exists() && log(AUTH).exists());
    env.run(&["delete", AUTH]);
    assert!(log(AUTH).exists());
    env.run(&["trash", "empty", "--yes"]);
    assert!(!log(AUTH).exists());
    env.run(&["cleanup", "--older-than", "0", "--purge", "--yes"]);
    let left: Vec<_> = std::fs::read_dir(&runs).unwrap().collect();
    let kept = env.quietly(&["sessions", "--json"]).stdout;
    assert_eq!(left.is_empty(), !kept.contains(MIGRATION), "{left:?} {kept}");
}

#[test]
fn a_scrub_refuses_what_it_cannot_mean() {
    let mut env = TestEnv::furnished();
    env.run(&["scrub", "(", "--yes"]);
    env.run(&["scrub", "x*", "--yes"]);
    env.run(&["scrub", "secret", "nobody", "--yes"]);
    env.run(&["scrub", "nothing-like-it", "--yes"]);
    // What holds the records together is not text.
    env.run(&["scrub", "main|success|20260223", MIGRATION, "--yes"]);
    // What users named so is.
    let args = ["agent", "create", "--agent", "a", "--purpose", "p", "--id", "agent-1"];
    let meta = ["--meta", "status=hunter2", "--meta", "hunter2=lane"];
    let args: Vec<&str> = args.iter().chain(&meta).copied().collect();
    env.quietly(&args).line();
    env.run(&["scrub", "hunter2", "agent-1", "--yes"]);
    env.run(&["log", "agent-1", "--kind", "edited"]);
    env.run(&["verify", MIGRATION]);
    assert_snapshot!(env.transcript());
}

#[test]
fn what_a_fork_shares_is_scrubbed_where_it_is_kept() {
    let mut env = TestEnv::furnished();
    let fork = env.quietly(&["fork", AUTH]).line();
    env.run(&["scrub", "todo", &fork, "--yes"]);
    env.run(&["scrub", "todo", "--yes"]);
    let log = env.quietly(&["log", &fork]).stdout;
    assert!(log.contains("[scrubbed]") && !log.contains("todo"));
    assert_snapshot!(env.transcript());
}

#[test]
fn a_scrub_reaches_every_field_that_holds_someones_words() {
    use stepwell::model::{Change, Edited, Failure, Node, NodeState, Scope, Source};
    use stepwell::{Created, Lane};
    let mut env = TestEnv::new();
    let secret = "hunter2";
    {
        let well = env.well();
        let mut created: Created = well.draft(format!("task {secret}"));
        created.id = "all-of-it".parse().unwrap();
        created.agent = format!("agent {secret}");
        created.model = format!("model {secret}");
        created.workspace = format!("/home/{secret}");
        created.source = Some(Source { system: "x".into(), id: secret.into(), started_at: None });
        let session = well.create(created).unwrap();
        let goal = Edited { goal: Change::Set(format!("goal {secret}")), ..Edited::default() };
        let point = session.append(goal).unwrap();
        let lane: Lane = format!("lane-{secret}").parse().unwrap();
        session.step_in(&lane, [Message::assistant("hi")]).unwrap();
        session.append(Failure { message: format!("error {secret}") }).unwrap();
        let output = Some(serde_json::json!({ "n": 123_456_789, secret: [secret] }));
        let state = NodeState::Done;
        session
            .append(Node { key: secret.into(), state, output, usage: None, error: None })
            .unwrap();
        session.checkpoint(format!("point {secret}")).unwrap();
        session.rewind(point, Scope::Chat).unwrap();
        let edited = Edited {
            label: Change::Set(format!("label {secret}")),
            tag: [format!("tag {secret}")].into(),
            metadata: [("n".to_owned(), serde_json::json!(123_456_789))].into(),
            ..Edited::default()
        };
        session.append(edited).unwrap();
    }
    env.feed(&["hook", "pre-delegate"], &format!(r#"{{"agent_id":"{secret}"}}"#));
    for pattern in [secret, "123456789"] {
        assert!(on_disk(&env, pattern));
        let ran = env.quietly(&["scrub", pattern, "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!on_disk(&env, pattern), "{pattern}");
    }
    assert_eq!(env.quietly(&["verify"]).code, Some(0));
    assert!(env.quietly(&["agent", "list", "--agent", "agent hunter2"]).stdout.starts_with("No"));
    let ran = env.quietly(&["scrub", "swordfish", "--rule", "no swordfish", "--yes"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn what_cannot_be_looked_into_is_not_said_to_match_nothing() {
    let mut env = TestEnv::furnished();
    env.database()
        .execute(
            "UPDATE events SET body = replace(body, 'make', 'take') WHERE body LIKE '%make%'",
            [],
        )
        .unwrap();
    env.run(&["scrub", "todo", "--yes"]);
    assert_eq!(env.quietly(&["scrub", "nowhere", "--yes"]).code, Some(7));
    assert_snapshot!(env.transcript());
}

#[test]
fn a_purge_names_everything_that_goes() {
    let mut env = TestEnv::furnished();
    env.run(&["purge", AUTH]);
    assert!(env.transcript().contains(crate::test_env::REVIEW));
}
