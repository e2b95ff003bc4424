//! Slash commands: each does what its help says.

use serde_json::{Value, json};

use crate::client::{Client, TestEnv};

const WRITES: &str = "
- {text: I write., calls: [{tool: write_file, arguments: {path: precious.txt, content: dear}}]}
- {text: Written.}
- {text: More.}
";

/// A client whose agent wrote a file.
fn written(env: &TestEnv) -> (Client, String) {
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(env);
    let mode = json!({"sessionId": session, "modeId": "yolo"});
    client.ask("session/set_mode", &mode).unwrap();
    assert!(client.says(&session, "write it").contains("Written."));
    (client, session)
}

#[test]
fn a_rewind_without_a_point_lists_them_and_moves_nothing() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    let precious = env.root().join("precious.txt");
    client.says(&session, "/checkpoint done");
    let points = client.says(&session, "/rewind");
    assert!(precious.exists(), "{points}");
    let lines: Vec<&str> = points.lines().collect();
    assert!(lines[0].ends_with("checkpoint done"), "{points}");
    let last = lines.last().unwrap();
    assert!(last.ends_with("before you said: write it"), "{points}");
    // Each line says what to type.
    let typed = last.split('`').nth(1).unwrap();
    let said = client.says(&session, typed);
    assert!(said.starts_with("Rewound to seq") && said.contains("1 file"), "{said}");
    assert!(!precious.exists());
    assert!(client.says(&session, "/undo").starts_with("The last rewind is taken back"));
    assert!(precious.exists());
    assert!(client.says(&session, "/redo").starts_with("The last undo is taken back"));
    assert!(!precious.exists());
    assert!(client.says(&session, "/undo 4").contains("takes no point"));
}

#[test]
fn a_rewind_that_a_foreign_change_is_in_the_way_of_is_done_by_force() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    let precious = env.root().join("precious.txt");
    std::fs::write(&precious, "mine").unwrap();
    let points = client.says(&session, "/rewind");
    let typed = points.lines().last().unwrap().split('`').nth(1).unwrap().to_owned();
    let said = client.says(&session, &typed);
    assert!(
        said.contains("Nothing was done: someone else changed files since: precious.txt"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
    let said = client.says(&session, &format!("{typed} --force"));
    assert!(said.starts_with("Rewound to seq"), "{said}");
    assert!(!precious.exists());
}

#[test]
fn commands_without_an_argument_show_and_change_nothing() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    assert!(client.says(&session, "/checkpoint").contains("There are no checkpoints"));
    client.says(&session, "/checkpoint one");
    assert!(client.says(&session, "/checkpoint").ends_with(": one"));
    client.says(&session, "/save");
    assert!(client.says(&session, "/checkpoint").ends_with(": saved"));
    client.says(&session, "/goal a clean kitchen");
    assert_eq!(client.says(&session, "/goal"), "Goal: a clean kitchen");
    assert!(client.says(&session, "/mode").contains("The mode is yolo."));
    assert!(client.says(&session, "/agent").contains("`/agent plan`"));
    assert!(client.says(&session, "/model").contains("The model is script:"));
    assert!(client.says(&session, "/budget").contains("may cost anything"));
    assert_eq!(
        client.says(&session, "/budget 2.50"),
        "From the next turn on, the session may cost $2.5."
    );
    assert!(client.says(&session, "/budget lots").contains("is no amount"));
}

#[test]
fn what_cannot_be_chosen_is_refused_by_commands_as_by_options() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    for (option, command) in
        [("model", "/model bogus"), ("agent", "/agent bogus"), ("mode", "/mode bogus")]
    {
        let set = json!({"sessionId": session, "configId": option, "value": "bogus"});
        assert_eq!(client.ask("session/set_config_option", &set), Err(-32602));
        let said = client.says(&session, command);
        assert!(said.starts_with("Nothing was changed:"), "{said}");
    }
    assert_eq!(client.says(&session, "on you go"), "More.");
}

#[test]
fn help_is_about_one_command_if_it_is_named() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    let said = client.says(&session, "/help rewind");
    assert!(said.starts_with("`/rewind") && said.lines().count() == 1, "{said}");
    assert!(client.says(&session, "/help quit").contains("It needs a terminal"));
    assert!(client.says(&session, "/help").lines().count() > 20);
}

#[test]
fn every_command_that_is_offered_works_without_a_terminal() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    client.ask("session/list", &json!({})).unwrap();
    let offered = client.updates("available_commands_update").pop().unwrap();
    let offered = offered["availableCommands"].as_array().unwrap().clone();
    let names: Vec<&str> = offered.iter().map(|it| it["name"].as_str().unwrap()).collect();
    for name in ["undo", "redo", "fork", "save", "files", "context", "export", "budget", "phase"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    for name in names {
        let said = client.says(&session, &format!("/{name}"));
        assert!(!said.is_empty(), "/{name}");
        assert!(
            !said.contains("terminal;") && !said.contains("does not work here"),
            "{name}: {said}"
        );
    }
}

#[test]
fn a_session_is_forked_shown_and_written_to_a_file() {
    let env = TestEnv::new(WRITES);
    let (mut client, session) = written(&env);
    assert!(client.says(&session, "/files").contains("created precious.txt"));
    assert!(client.says(&session, "/diff").contains("+dear"));
    let context = client.says(&session, "/context");
    assert!(context.contains("user") && context.contains("write it"), "{context}");
    assert!(client.says(&session, "/export markdown out.md").ends_with("out.md."));
    assert!(std::fs::read_to_string(env.root().join("out.md")).unwrap().contains("write it"));
    std::fs::write(env.root().join("out.md"), "mine").unwrap();
    assert!(client.says(&session, "/export markdown out.md --force").ends_with("out.md."));
    assert!(std::fs::read_to_string(env.root().join("out.md")).unwrap().contains("write it"));
    assert_eq!(client.says(&session, "/phase"), "This session has no phases.");
    let said = client.says(&session, "/fork");
    let page = client.ask("session/list", &json!({"cwd": env.root()})).unwrap();
    let listed: Vec<Value> = page["sessions"].as_array().unwrap().clone();
    let fork = listed.iter().find(|it| it["sessionId"] != json!(session)).unwrap();
    assert!(said.starts_with(fork["sessionId"].as_str().unwrap()), "{said}");
}
