//! Random sessions, as an agent would have them.

use proptest::prelude::*;
use stepwell::model::{Part, Role, StatusChanged, Time, ToolResult, Usage};
use stepwell::{Created, Message, SessionId, Status, Stepwell, StopReason};

/// One turn: what the user said, what the model said and called, and what came back.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) asked: Option<String>,
    pub(crate) said: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Option<Usage>,
}

/// A call and its result; the last one of a session may have none.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: serde_json::Value,
    pub(crate) result: Option<(String, bool)>,
}

/// Texts with all that breaks formats: line ends, quotes, pipes, tags, emoji.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,12}( [a-z]{1,8}){0,6}",
        2 => "\\PC{1,40}",
        1 => Just("line\nbreak\r\nand\ttab".to_owned()),
        1 => Just("| a pipe | and `code` | \"quotes\" \\ backslash".to_owned()),
        1 => Just("{\"json\": [1, 2]}".to_owned()),
        1 => Just("<tag> & \u{1F600} \u{0000} \u{2028}".to_owned()),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let arguments = proptest::collection::btree_map("[a-z]{1,6}", text(), 0..3);
    let result = prop_oneof![
        9 => (text(), any::<bool>()).prop_map(Some),
        1 => Just(None),
    ];
    ("[A-Za-z_]{1,12}", arguments, result).prop_map(|(tool, arguments, result)| Call {
        tool,
        arguments: serde_json::to_value(arguments).unwrap(),
        result,
    })
}

pub(crate) fn turn() -> impl Strategy<Value = Turn> {
    let calls = proptest::collection::vec(call(), 0..3);
    let usage = proptest::option::of((0..9999_u64, 0..999_u64));
    (proptest::option::of(text()), text(), calls, usage).prop_map(|(asked, said, calls, usage)| {
        let usage = usage.map(|(input, output)| Usage { input, output, ..Usage::default() });
        Turn { asked, said, calls, usage }
    })
}

/// The turns of a session.
pub(crate) fn turns() -> impl Strategy<Value = Vec<Turn>> {
    proptest::collection::vec(turn(), 1..6)
}

/// Records a session in a store.
pub(crate) fn record(well: &Stepwell, name: &str, turns: &[Turn]) -> SessionId {
    let id: SessionId = name.parse().unwrap();
    let task = turns.iter().find_map(|turn| turn.asked.clone()).unwrap_or_default();
    let created = Created::new(id.clone(), task).with_model("anthropic", "claude-opus-4-6");
    let mut session = well.create(created.in_workspace("/home/dev/shop")).unwrap();
    let mut now = Time::from_micros(1_787_216_400_000_000);
    let mut add = |session: &mut stepwell::Session, event: stepwell::Event| {
        now = now.plus(std::time::Duration::from_millis(1500));
        session.append(stepwell::NewEvent::from(event).at(now)).unwrap();
    };
    for (n, turn) in turns.iter().enumerate() {
        if let Some(asked) = &turn.asked {
            add(&mut session, Message::user(asked.as_str()).into());
        }
        let mut said = Message::assistant(turn.said.as_str());
        said.model = Some("claude-opus-4-6".to_owned());
        said.usage = turn.usage;
        for (k, call) in turn.calls.iter().enumerate() {
            said = said.calling(format!("toolu_{n}_{k}"), &*call.tool, call.arguments.to_string());
        }
        add(&mut session, said.into());
        let results = turn.calls.iter().enumerate().filter_map(|(k, call)| {
            let (text, is_error) = call.result.clone()?;
            let call_id = format!("toolu_{n}_{k}");
            Some(Part::ToolResult(ToolResult { call_id, text, is_error, ..ToolResult::default() }))
        });
        let results: Vec<Part> = results.collect();
        if !results.is_empty() {
            add(&mut session, Message::new(Role::Tool, results).into());
        }
    }
    let (status, reason) = (Status::Success, Some(StopReason::LlmDone));
    add(&mut session, StatusChanged { status, reason, error: None }.into());
    id
}
