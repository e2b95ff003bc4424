//! Conversations over the protocol, message by message.

use serde_json::{Value, json};
use stepwell::Status;
use stepwell_flow::spec::Spec;
use stepwell_runtime::{FlowOptions, FlowRequest, Interrupt, RunOptions};

use crate::client::{Client, TestEnv};

const WRITES: &str = "
- {text: I write., calls: [{tool: write_file, arguments: {path: made.txt, content: hello}}]}
- {text: Written.}
- {text: Something else.}
";

fn status(env: &TestEnv, session: &str) -> Status {
    let well = env.runtime().workspace().open_if_present().unwrap().unwrap();
    well.info(&session.parse().unwrap()).unwrap().head.status
}

fn is_asked(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

/// A client that was asked for leave, and has not answered.
fn asked(env: &TestEnv) -> (Client, String, i64, Value) {
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(env);
    let prompt = client.prompt(&session, "write it");
    let question = client.wait(is_asked);
    (client, session, prompt, question)
}

#[test]
fn a_session_that_nothing_was_said_to_leaves_nothing() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    client.new_session(&env);
    let listed = client.ask("session/list", &json!({"cwd": env.root()})).unwrap();
    assert_eq!(listed["sessions"], json!([]));
    client.leave();
    assert!(!env.root().join(".stepwell").exists());
}

#[test]
fn a_question_is_on_record_before_the_client_is_asked_and_stays_when_it_goes() {
    let env = TestEnv::new(WRITES);
    let (client, session, _, _) = asked(&env);
    let well = env.runtime().workspace().open_if_present().unwrap().unwrap();
    assert_eq!(well.info(&session.parse().unwrap()).unwrap().head.open_gates, 1);
    client.leave();
    assert_eq!(status(&env, &session), Status::Paused);
    assert!(!env.root().join("made.txt").exists());
    // Whoever opens it next is told, and one word answers.
    let mut client = env.greeted(&json!({}));
    let load = json!({"sessionId": session, "cwd": env.root(), "mcpServers": []});
    client.ask("session/load", &load).unwrap();
    let prompt = client.prompt(&session, "yes");
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert!(client.said("agent_message_chunk").contains("Answer yes, always, no or never"));
    assert!(env.root().join("made.txt").exists());
}

#[test]
fn a_run_without_a_question_is_interrupted_when_the_client_goes() {
    let env = TestEnv::new(
        "- {text: I wait., calls: [{tool: run_command, arguments: {command: sleep 600}}]}",
    );
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    let mode = json!({"sessionId": session, "modeId": "yolo"});
    client.ask("session/set_mode", &mode).unwrap();
    client.prompt(&session, "wait");
    client.wait(|it| it.pointer("/params/update/status") == Some(&json!("in_progress")));
    client.leave();
    assert_eq!(status(&env, &session), Status::Interrupted);
}

#[test]
fn a_cancelled_turn_ends_as_cancelled_and_its_question_is_passed_over_by_new_words() {
    let env = TestEnv::new(WRITES);
    let (mut client, session, prompt, question) = asked(&env);
    client.notify("session/cancel", &json!({"sessionId": session}));
    client.answer(&question, &json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "cancelled");
    let prompt = client.prompt(&session, "something else");
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert!(!env.root().join("made.txt").exists());
}

#[test]
fn a_request_that_is_cancelled_by_its_id_gets_the_error_for_that() {
    let env = TestEnv::new(WRITES);
    let (mut client, _, prompt, _) = asked(&env);
    client.notify("$/cancel_request", &json!({"requestId": prompt}));
    assert_eq!(client.answered(prompt), Err(-32800));
}

#[test]
fn a_client_that_cannot_be_asked_leaves_the_question_to_others() {
    let env = TestEnv::new(WRITES);
    let (mut client, session, prompt, question) = asked(&env);
    let error = json!({"code": -32601, "message": "Method not found"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string());
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(status(&env, &session), Status::Paused);
}

#[test]
fn words_during_a_turn_reach_the_run_and_both_prompts_are_answered() {
    let env = TestEnv::new(WRITES);
    let (mut client, session, first, question) = asked(&env);
    let second = client.prompt(&session, "and be quick");
    client
        .answer(&question, &json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}));
    assert_eq!(client.answered(first).unwrap()["stopReason"], "end_turn");
    assert_eq!(client.answered(second).unwrap()["stopReason"], "end_turn");
    // Whoever said it knows it.
    assert_eq!(client.said("user_message_chunk"), "");
    let well = env.runtime().workspace().open_if_present().unwrap().unwrap();
    let events =
        well.store().events(&session.parse().unwrap(), stepwell::store::Span::ALL).unwrap().events;
    let said = events.iter().filter(|it| matches!(it.event, stepwell::Event::Said(_))).count();
    assert_eq!(said, 1);
}

const FLOW: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: any}
agents: {writer: {prompt: Write.}}
pattern:
  type: chain
  config:
    steps:
      - {type: hitl, prompt: To whom?}
      - {type: hitl, prompt: Send it?}
";

/// A flow that waits for its first answer.
fn waiting_flow(env: &TestEnv) -> String {
    let path = env.root().join("flow.yaml");
    std::fs::write(&path, FLOW).unwrap();
    let (text, reading) = Spec::load(&path, "flow.yaml").unwrap();
    let model = Some(format!("script:{}", env.root().join("script.yaml").display()));
    let options = RunOptions { model, ..RunOptions::default() };
    let request = FlowRequest {
        path,
        text,
        reading: reading.into(),
        variables: std::collections::BTreeMap::new(),
        options,
        flow: FlowOptions::default(),
        interrupt: Interrupt::default(),
    };
    env.runtime().start_flow(request).unwrap().join().unwrap().session.to_string()
}

#[test]
fn a_flows_questions_are_asked_as_text_and_answered_by_prompts() {
    let env = TestEnv::new("[]");
    let session = waiting_flow(&env);
    let mut client = env.greeted(&json!({}));
    let load = json!({"sessionId": session, "cwd": env.root(), "mcpServers": []});
    client.ask("session/load", &load).unwrap();
    for answer in ["Ann", "yes"] {
        let prompt = client.prompt(&session, answer);
        assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    }
    let said = client.said("agent_message_chunk");
    assert!(said.contains("To whom?") && said.contains("Send it?"), "{said}");
    assert_eq!(status(&env, &session), Status::Success);
}

#[test]
fn a_flows_questions_are_forms_where_the_client_has_them() {
    let env = TestEnv::new("[]");
    let session = waiting_flow(&env);
    let mut client = env.greeted(&json!({"elicitation": {"form": {}}}));
    let resume = json!({"sessionId": session, "cwd": env.root()});
    client.ask("session/resume", &resume).unwrap();
    let prompt = client.prompt(&session, "Ann");
    let form = client.wait(|it| it["method"] == "elicitation/create");
    assert_eq!(form["params"]["message"], "Send it?", "{form}");
    client.answer(&form, &json!({"action": "accept", "content": {"answer": "yes"}}));
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert_eq!(status(&env, &session), Status::Success);
}

#[test]
fn a_plan_is_told_from_tasks_and_told_again_with_the_history() {
    let task = "{kind: create, description: Lay the table}";
    let script = format!(
        "- {{text: I plan., calls: [{{tool: tasks, arguments: {{action: add, tasks: [{task}]}}}}]}}\n- {{text: Planned.}}\n"
    );
    let env = TestEnv::new(&script);
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    let mode = json!({"sessionId": session, "modeId": "yolo"});
    client.ask("session/set_mode", &mode).unwrap();
    let prompt = client.prompt(&session, "plan it");
    client.answered(prompt).unwrap();
    let load = json!({"sessionId": session, "cwd": env.root(), "mcpServers": []});
    client.ask("session/load", &load).unwrap();
    let plans = client.heard.iter().map(|it| &it["params"]["update"]);
    let plans: Vec<&Value> = plans.filter(|it| it["sessionUpdate"] == "plan").collect();
    assert_eq!(plans.len(), 2, "{:?}", client.heard);
    assert_eq!(plans[1]["entries"][0]["content"], "Lay the table");
}

#[test]
fn a_command_that_does_not_exist_is_named_and_never_reaches_the_model() {
    let env = TestEnv::new("- {text: The model spoke.}\n");
    let mut client = env.greeted(&json!({}));
    let session = client.new_session(&env);
    for (typed, says) in [
        ("/serach oven", "There is no command /serach; did you mean /search?"),
        ("/zzzzzz", "There is no command /zzzzzz; /help lists them."),
        ("/quit", "/quit needs a terminal"),
    ] {
        let prompt = client.prompt(&session, typed);
        assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
        let said = client.said("agent_message_chunk");
        assert!(said.contains(says), "{typed}: {said}");
        assert!(!said.contains("The model spoke."), "{typed}: {said}");
    }
    // A path is no command.
    let prompt = client.prompt(&session, "/etc/hosts is what I mean");
    assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    assert!(client.said("agent_message_chunk").contains("The model spoke."));
}

#[test]
fn a_new_session_without_its_folder_is_an_error_of_its_parameters() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    for params in [
        json!({"mcpServers": []}),
        json!({"cwd": null, "mcpServers": []}),
        json!({"cwd": "relative", "mcpServers": []}),
        json!({"cwd": "", "mcpServers": []}),
        json!({"cwd": env.root()}),
    ] {
        assert_eq!(client.ask("session/new", &params), Err(-32602), "{params}");
    }
}

/// A session of Claude Code's, in the user's home.
fn claudes(env: &TestEnv, id: &str) {
    let folder = env.root().join("home/.claude/projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str, uuid: &str, parent: Value, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id,
            "cwd": env.root(), "timestamp": "2026-11-01T10:00:00.000Z", "version": "2.0.0",
            "message": {"role": kind, "content": text}})
    };
    let lines = [
        line("user", "u-1", Value::Null, "fix the oven"),
        line("assistant", "u-2", json!("u-1"), "It bakes again."),
    ];
    std::fs::write(folder.join(format!("{id}.jsonl")), lines.map(|it| format!("{it}\n")).concat())
        .unwrap();
}

#[test]
fn other_agents_sessions_are_listed_if_the_user_wants_that_and_loading_one_imports_it() {
    let id = "7be2d940-15c3-4a41-9c55-0c5f1f6f0a11";
    for wanted in [false, true] {
        let env = TestEnv::new("- {text: one}\n- {text: I went on.}\n").with_home(wanted);
        claudes(&env, id);
        let mut client = env.greeted(&json!({}));
        let listed = |client: &mut Client| {
            let asked = json!({"cwd": env.root()});
            let page = client.ask("session/list", &asked).unwrap();
            page["sessions"].as_array().unwrap().clone()
        };
        let found = listed(&mut client);
        let load = json!({"sessionId": id, "cwd": env.root(), "mcpServers": []});
        if !wanted {
            assert!(found.is_empty(), "{found:?}");
            assert!(client.ask("session/load", &load).is_err());
            continue;
        }
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["sessionId"], &found[0]["title"]),
            (&json!(id), &json!("fix the oven"))
        );
        // Listing imports nothing.
        assert!(env.runtime().workspace().open_if_present().unwrap().is_none());
        client.ask("session/load", &load).unwrap();
        assert!(client.said("agent_message_chunk").contains("It bakes again."));
        let prompt = client.prompt(id, "and now?");
        assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
        assert!(client.said("agent_message_chunk").contains("I went on."));
        // It is listed once, as what it has become.
        let found = listed(&mut client);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["_meta"]["stepwell"]["importedFrom"], "claude-code");
    }
}

/// An MCP server in shell, which counts how often it was called.
const COUNTS: &str = r#"
echo started >> "$NOTES"
n=0
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) say='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}';;
    *'"tools/list"'*) say='{"tools":[{"name":"more","description":"counts","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) n=$((n+1)); say='{"content":[{"type":"text","text":"called '$n' times"}]}';;
    *) continue;;
  esac
  echo '{"jsonrpc":"2.0","id":'$id',"result":'$say'}'
done
echo ended >> "$NOTES"
"#;

#[test]
fn the_clients_mcp_servers_live_over_its_turns_and_end_with_the_session() {
    let call = "{text: I count., calls: [{tool: counter__more, arguments: {}}]}";
    let env = TestEnv::new(&format!("- {call}\n- {{text: one}}\n- {call}\n- {{text: two}}\n"));
    let notes = env.root().join("notes.txt");
    std::fs::write(env.root().join("counts.sh"), COUNTS).unwrap();
    let server = json!({
        "name": "counter", "command": "/bin/sh", "args": [env.root().join("counts.sh")],
        "env": [{"name": "NOTES", "value": notes}],
    });
    let mut client = env.greeted(&json!({}));
    let params = json!({"cwd": env.root(), "mcpServers": [server]});
    let made = client.ask("session/new", &params).unwrap();
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let mode = json!({"sessionId": session, "modeId": "yolo"});
    client.ask("session/set_mode", &mode).unwrap();
    for turn in ["count", "again"] {
        let prompt = client.prompt(&session, turn);
        assert_eq!(client.answered(prompt).unwrap()["stopReason"], "end_turn");
    }
    let told = |text: &str| client.heard.iter().any(|it| it.to_string().contains(text));
    assert!(told("called 1 times") && told("called 2 times"), "{:?}", client.heard);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "started\n");
    client.ask("session/close", &json!({"sessionId": session})).unwrap();
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "started\nended\n");
}

#[test]
fn the_thought_level_is_an_option_like_the_others() {
    let env = TestEnv::new("[]");
    let mut client = env.greeted(&json!({}));
    let params = json!({"cwd": env.root(), "mcpServers": []});
    let made = client.ask("session/new", &params).unwrap();
    let level = |answer: &Value| {
        let options = answer["configOptions"].as_array().unwrap();
        let found = options.iter().find(|it| it["category"] == "thought_level").unwrap();
        found["currentValue"].clone()
    };
    assert_eq!(level(&made), "default");
    let set = |value: &str| json!({"sessionId": made["sessionId"], "configId": "thought_level", "value": value});
    let changed = client.ask("session/set_config_option", &set("high")).unwrap();
    assert_eq!(level(&changed), "high");
    assert_eq!(client.ask("session/set_config_option", &set("endless")), Err(-32602));
    let changed = client.ask("session/set_config_option", &set("default")).unwrap();
    assert_eq!(level(&changed), "default");
}
