//! Every kind of update, as a client gets it while it watches, and again when it loads.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stepwell::model::Usage;
use stepwell::{Message, Stepwell};

use crate::client::{Client, TestEnv};

/// A client with a session that asks for nothing.
fn unasked(env: &TestEnv, capabilities: &Value) -> (Client, String) {
    let mut client = env.greeted(capabilities);
    let session = client.new_session(env);
    let mode = json!({"sessionId": session, "modeId": "yolo"});
    client.ask("session/set_mode", &mode).unwrap();
    (client, session)
}

/// Says something, and waits for the end of the turn.
fn say(client: &mut Client, session: &str, text: &str) {
    let prompt = client.prompt(session, text);
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
}

/// What another client is told that loads the session.
fn loaded(env: &TestEnv, session: &str, capabilities: &Value) -> Client {
    let mut client = env.greeted(capabilities);
    let load = json!({"sessionId": session, "cwd": env.root(), "mcpServers": []});
    client.ask("session/load", &load).unwrap();
    client
}

#[test]
fn pieces_of_a_message_have_its_id_and_thoughts_one_of_their_own() {
    let call = "calls: [{tool: list_files, arguments: {}}]";
    let env = TestEnv::new(&format!(
        "- {{thinking: Where is it?, text: I look., {call}}}\n- {{thinking: There., text: Found.}}\n"
    ));
    let (mut client, session) = unasked(&env, &json!({}));
    say(&mut client, &session, "find it");
    let later = loaded(&env, &session, &json!({}));
    for (client, asked) in [(&client, ""), (&later, "find it")] {
        assert_eq!(client.said("user_message_chunk"), asked);
        let (mut texts, mut messages) = (Vec::new(), BTreeSet::new());
        for kind in ["agent_message_chunk", "agent_thought_chunk"] {
            for update in client.updates(kind) {
                let message = update["messageId"].as_str().unwrap().to_owned();
                assert!(messages.insert(message), "{update} has another message's id");
                texts.push(update["content"]["text"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(texts, ["I look.", "Found.", "Where is it?", "There."]);
    }
}

#[test]
fn a_call_is_told_with_its_place_and_ends_with_what_it_did_to_a_file() {
    let env = TestEnv::new(
        "- {calls: [{tool: read_file, arguments: {path: a.txt, first_line: 2}}]}\n\
         - {calls: [{tool: edit_file, arguments: {path: a.txt, old_text: two, new_text: three}}]}\n\
         - {text: Done.}\n",
    );
    let path = env.root().join("a.txt");
    std::fs::write(&path, "one\ntwo\n").unwrap();
    let (mut client, session) = unasked(&env, &json!({}));
    say(&mut client, &session, "edit it");
    let later = loaded(&env, &session, &json!({}));
    for client in [&client, &later] {
        let calls = client.updates("tool_call");
        let [read, edit] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!(
            (&read["kind"], &read["title"], &read["status"], &read["locations"]),
            (
                &json!("read"),
                &json!("Read a.txt"),
                &json!("pending"),
                &json!([{"path": path, "line": 2}])
            )
        );
        assert_eq!((&edit["kind"], &edit["locations"]), (&json!("edit"), &json!([{"path": path}])));
        assert_eq!(edit["rawInput"]["new_text"], "three");
        let changes = client.updates("tool_call_update");
        let of_edit = changes.iter().filter(|it| it["toolCallId"] == edit["toolCallId"]);
        let of_edit: Vec<&Value> = of_edit.collect();
        let states: Vec<&Value> = of_edit.iter().map(|it| &it["status"]).collect();
        assert_eq!(states, ["in_progress", "completed"]);
        let diff = json!({"type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n"});
        assert_eq!(of_edit[1]["content"][0], diff);
        assert_eq!(of_edit[1]["locations"], json!([{"path": path}]));
    }
}

#[test]
fn a_plan_says_how_far_each_task_is() {
    let plan = |action: &str, tasks: &str| {
        format!(
            "- {{calls: [{{tool: tasks, arguments: {{action: {action}, tasks: [{tasks}]}}}}]}}\n"
        )
    };
    let made = plan("add", "{description: Lay the table}, {id: cook, description: Cook}");
    let changed = plan("update", "{id: '1', status: done}, {id: cook, status: running}");
    let env = TestEnv::new(&format!("{made}{changed}- {{text: Done.}}\n"));
    let (mut client, session) = unasked(&env, &json!({}));
    say(&mut client, &session, "have guests");
    let later = loaded(&env, &session, &json!({}));
    for client in [&client, &later] {
        let plan = client.updates("plan").pop().unwrap();
        let entries = plan["entries"].as_array().unwrap().clone();
        let entries: Vec<_> =
            entries.iter().map(|it| json!([it["content"], it["status"]])).collect();
        let expected = json!([["Lay the table", "completed"], ["Cook", "in_progress"]]);
        assert_eq!(Value::Array(entries), expected, "{plan}");
    }
}

#[test]
fn the_commands_are_told_whichever_way_a_session_is_opened() {
    let env = TestEnv::new("- {text: Hello.}\n");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    say(&mut client, &session, "hi");
    let mut later = loaded(&env, &session, &json!({}));
    let resume = json!({"sessionId": session, "cwd": env.root()});
    later.ask("session/resume", &resume).unwrap();
    // What is told after an answer is there when the next one is.
    later.ask("session/list", &json!({})).unwrap();
    let told =
        [client.updates("available_commands_update"), later.updates("available_commands_update")];
    assert_eq!([told[0].len(), told[1].len()], [1, 2]);
    for update in told.iter().flatten() {
        let commands = update["availableCommands"].as_array().unwrap();
        let command = |name: &str| commands.iter().find(|it| it["name"] == name);
        assert!(command("search").unwrap()["input"]["hint"].is_string(), "{update}");
        assert!(!command("diff").unwrap()["description"].as_str().unwrap().is_empty());
        assert!(command("quit").is_none(), "it needs a terminal: {update}");
    }
}

/// The mode that the last update of the options tells.
fn told_mode(client: &Client) -> Value {
    let update = client.updates("config_option_update").pop().unwrap();
    let options = update["configOptions"].as_array().unwrap().clone();
    options.iter().find(|it| it["id"] == "mode").unwrap()["currentValue"].clone()
}

#[test]
fn a_mode_is_told_as_mode_and_as_option_whichever_was_set() {
    let env = TestEnv::new("[]");
    let (mut client, session) = unasked(&env, &json!({}));
    assert_eq!(told_mode(&client), "yolo");
    let set = json!({"sessionId": session, "configId": "mode", "value": "confirm-all"});
    let answer = client.ask("session/set_config_option", &set).unwrap();
    assert_eq!(answer["configOptions"][0]["currentValue"], "confirm-all");
    let modes = |client: &Client| {
        let told = client.updates("current_mode_update");
        told.iter().map(|it| it["currentModeId"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(modes(&client), ["confirm-all"]);
    // A command changes both, and one that changes nothing tells of no mode.
    say(&mut client, &session, "/mode yolo");
    assert_eq!(
        (modes(&client), told_mode(&client)),
        (vec![json!("confirm-all"), json!("yolo")], json!("yolo"))
    );
    say(&mut client, &session, "/mode");
    assert_eq!(modes(&client).len(), 2);
}

#[test]
fn a_session_is_told_by_its_title_and_the_time_of_its_last_change() {
    let env = TestEnv::new("- {text: Hello.}\n");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    say(&mut client, &session, "say hello");
    say(&mut client, &session, "/rename Greetings");
    let told = client.updates("session_info_update");
    let titles: Vec<&Value> = told.iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["say hello", "Greetings"]);
    let times: Vec<&str> = told.iter().map(|it| it["updatedAt"].as_str().unwrap()).collect();
    assert!(times[0] < times[1], "{times:?}");
}

#[test]
fn usage_says_how_full_the_context_is_and_what_the_session_cost() {
    let lines = "[{text: One., usage: {input: 1000, output: 10}}, {text: Two., usage: {input: 2000, output: 20}}]";
    let script = |context: &str| {
        format!("prices: {{input: '3', output: '15'}}\n{context}answers: {lines}\n")
    };
    let env = TestEnv::new(&script("context: 50000\n"));
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    say(&mut client, &session, "count");
    say(&mut client, &session, "again");
    let usage = |used: u64, amount: f64| {
        json!({"sessionUpdate": "usage_update", "used": used, "size": 50_000,
            "cost": {"amount": amount, "currency": "USD"}})
    };
    let told = client.updates("usage_update");
    assert_eq!(told, [usage(1_010, 0.003_15), usage(2_020, 0.009_45)]);
    let later = loaded(&env, &session, &json!({})).updates("usage_update");
    assert_eq!(later, [usage(2_020, 0.009_45)]);
    // Nobody knows how much fits: then it is not told.
    let env = TestEnv::new(&script(""));
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    say(&mut client, &session, "count");
    assert_eq!(client.updates("usage_update"), [] as [Value; 0]);
}

#[test]
fn notices_reach_a_client_that_takes_them_and_no_other() {
    for takes in [true, false] {
        let env = TestEnv::new("- {fail: [rate_limited], text: At last.}\n");
        let capabilities = if takes { json!({"session": {"notices": {}}}) } else { json!({}) };
        let (mut client, session) = unasked(&env, &capabilities);
        say(&mut client, &session, "hi");
        assert_eq!(client.said("agent_message_chunk"), "At last.");
        let notices = client.updates("notice");
        assert_eq!(!notices.is_empty(), takes, "{notices:?}");
        for notice in notices {
            assert_eq!(notice["severity"], "warning");
            let title = notice["title"].as_str().unwrap();
            assert!(title.starts_with("The model is asked again in"), "{notice}");
        }
    }
}

#[test]
fn compactions_reach_a_client_that_takes_them_and_no_other() {
    let read = "{text: I read., calls: [{tool: read_file, arguments: {path: notes.txt}}]}";
    let script = format!(
        "context: 8000\nsummaries: [{{text: \"## Goal\\n- read the notes\"}}]\nanswers: [{}{{text: Done.}}]\n",
        format!("{read}, ").repeat(6)
    );
    for takes in [true, false] {
        let env = TestEnv::new(&script);
        std::fs::write(env.root().join("notes.txt"), "a line of notes\n".repeat(100)).unwrap();
        let settings = env.root().join("stepwell.toml");
        let model = std::fs::read_to_string(&settings).unwrap();
        let all = format!("{model}[compaction]\nbuffer = 5000\nkeep_tokens = 700\n");
        std::fs::write(settings, all).unwrap();
        let capabilities = if takes { json!({"session": {"compaction": {}}}) } else { json!({}) };
        let (mut client, session) = unasked(&env, &capabilities);
        say(&mut client, &session, "read the notes");
        let later = loaded(&env, &session, &capabilities);
        let told = client.updates("compaction_update");
        assert_eq!(told.is_empty(), !takes, "{told:?}");
        assert_eq!(later.updates("compaction_update"), told);
        for update in told {
            assert_eq!(update["status"], "completed");
            assert!(update["compactionId"].is_string());
            let summary = update["summary"][0]["text"].as_str().unwrap();
            assert!(summary.contains("- read the notes"), "{summary}");
        }
        // What was compacted is told like the rest.
        assert_eq!(later.updates("tool_call").len(), 6);
    }
}

#[test]
fn a_compaction_by_command_is_told_like_any_other_before_the_command_ends() {
    let read = "{text: I read., calls: [{tool: read_file, arguments: {path: notes.txt}}]}";
    let script = format!(
        "context: 80000\nsummaries: [{{text: \"## Goal\\n- read the notes\"}}]\nanswers: [{}{{text: Done.}}]\n",
        format!("{read}, ").repeat(6)
    );
    let env = TestEnv::new(&script);
    std::fs::write(env.root().join("notes.txt"), "a line of notes\n".repeat(100)).unwrap();
    let settings = env.root().join("stepwell.toml");
    let model = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("{model}[compaction]\nkeep_tokens = 700\n")).unwrap();
    let (mut client, session) = unasked(&env, &json!({"session": {"compaction": {}}}));
    say(&mut client, &session, "read the notes");
    assert_eq!(client.updates("compaction_update"), [] as [Value; 0]);
    let said = client.says(&session, "/compact");
    assert!(said.starts_with("Compacted:"), "{said}");
    let told = client.updates("compaction_update");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["status"], "completed");
    let later = loaded(&env, &session, &json!({"session": {"compaction": {}}}));
    assert_eq!(later.updates("compaction_update"), told);
}

#[test]
fn a_cost_that_is_not_known_is_not_told_as_nothing() {
    let most = u64::MAX;
    let env = TestEnv::new("context: 50000\nanswers: [{text: Done.}]\n");
    let session = {
        let well = Stepwell::open(env.root().join(".stepwell")).unwrap();
        let mut draft = well.draft("count");
        draft.workspace = env.root().display().to_string();
        draft.model = format!("script:{}", env.root().join("script.yaml").display());
        let session = well.create(draft).unwrap();
        session.append(Message::user("count")).unwrap();
        let usage = Some(Usage { input: most, output: most, ..Usage::default() });
        session.append(Message { usage, ..Message::assistant("One.") }).unwrap();
        session.id().to_string()
    };
    let mut later = loaded(&env, &session, &json!({}));
    let told = later.updates("usage_update");
    let last = told.last().unwrap();
    assert_eq!((&last["used"], last.get("cost")), (&json!(most), None), "{told:?}");
    let price = later.says(&session, "/cost");
    assert!(price.contains("price is not known"), "{price}");
}

#[test]
fn a_fork_shows_the_mode_that_its_next_run_has() {
    let env = TestEnv::new("- {text: Hello.}\n");
    let (mut client, session) = unasked(&env, &json!({}));
    say(&mut client, &session, "hello");
    let (runtime, parent) = (env.runtime(), session.parse().unwrap());
    let request = stepwell_runtime::ForkRequest { session: parent, at: None, label: None };
    let own = runtime.fork(&request).unwrap().session;
    let well = runtime.workspace().open_existing(stepwell::sqlite::Access::Write).unwrap();
    let revoked = vec![stepwell::trust::revocation(stepwell::model::Who::from("an agent"))];
    let agents = well
        .fork(&request.session, stepwell::sessions::ForkAt { at: None, begins: revoked })
        .unwrap()
        .id()
        .clone();
    for (fork, mode) in [(own, "yolo"), (agents, "confirm-sensitive")] {
        let load = json!({"sessionId": fork, "cwd": env.root(), "mcpServers": []});
        let shown = client.ask("session/load", &load).unwrap();
        assert_eq!(shown["modes"]["currentModeId"], mode, "{fork}");
        let next = runtime.next_run(&fork, &stepwell_runtime::RunOptions::default()).unwrap();
        assert_eq!(next.mode.as_str(), mode);
    }
}

#[test]
fn what_a_program_wrote_in_the_users_name_is_not_said_by_the_user() {
    let env = TestEnv::new("[]");
    let session = {
        let well = Stepwell::open(env.root().join(".stepwell")).unwrap();
        let mut draft = well.draft("tidy up");
        draft.workspace = env.root().display().to_string();
        let session = well.create(draft).unwrap();
        session.append(Message::user("<environment_context>").injected()).unwrap();
        session.append(Message::user("Tidy up.")).unwrap();
        session.append(Message::assistant("Tidy.")).unwrap();
        session.id().to_string()
    };
    let later = loaded(&env, &session, &json!({}));
    let said = later.updates("user_message_chunk");
    let texts: Vec<_> = said.iter().map(|it| it["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Tidy up."]);
}

#[test]
fn a_call_that_was_cut_off_has_ended_for_whoever_loads_the_session() {
    let env = TestEnv::new("[]");
    let session = {
        let well = Stepwell::open(env.root().join(".stepwell")).unwrap();
        let mut draft = well.draft("tidy up");
        draft.workspace = env.root().display().to_string();
        let session = well.create(draft).unwrap();
        let calls = Message::assistant("").calling("c1", "run_command", r#"{"command":"make"}"#);
        let calls = calls.calling("c2", "run_command", r#"{"command":"rm x"}"#);
        session.append(calls.calling("c3", "list_files", "{}")).unwrap();
        let started = stepwell::model::ToolStarted {
            lane: stepwell::Lane::main(),
            call_id: "c1".into(),
            tool: "run_command".into(),
            effect: stepwell::model::Effect::Unsafe,
            arguments: stepwell::model::Digest::of(br#"{"command":"make"}"#),
            targets: Vec::new(),
            child: None,
        };
        session.append(started).unwrap();
        session.append(stepwell::model::Gate::new("c2", "Allow rm x?")).unwrap();
        session.id().to_string()
    };
    let later = loaded(&env, &session, &json!({}));
    let ended: Vec<(Value, Value)> = later
        .updates("tool_call_update")
        .into_iter()
        .map(|update| (update["toolCallId"].clone(), update["status"].clone()))
        .collect();
    let failed = |id: &str| (json!(id), json!("failed"));
    assert_eq!(ended.last(), Some(&failed("c3")), "{ended:?}");
    assert!(ended.contains(&failed("c1")), "{ended:?}");
    assert!(!ended.contains(&failed("c2")), "it waits for a person: {ended:?}");
    let told = later.updates("tool_call_update");
    assert!(json!(told).to_string().contains("It was cut off"), "{told:?}");
}
