//! Sessions of Stepwell that other agents go on with, and what their model must be shown.

use stepwell::model::{Compacted, Digest, Effect, Gate, Image, Part, Scope, ToolStarted};
use stepwell::{Created, Lane, Message, Session, SessionId, Stepwell};

use crate::mirror::shown;

/// The smallest picture that is one: a PNG of one point.
pub(super) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg\
                                  YGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==";

/// A session that Stepwell ran with a model of that provider.
pub(super) fn begin(well: &Stepwell, provider: &str) -> Session {
    let id: SessionId = "20260223-143022-a1b2c3".parse().unwrap();
    let created = Created::new(id, "Weigh the flour").with_model(provider, "some-model");
    let session = well.create(created.in_workspace("/home/mila/scales")).unwrap();
    session.append(Message::user("Weigh the flour")).unwrap();
    call(&session, "call_1", "read_file", r#"{"path":"scales.txt"}"#);
    started(&session, "call_1", "read_file");
    session.append(Message::tool_result("call_1", "9 kg")).unwrap();
    session.append(Message::assistant("It is 9 kg.")).unwrap();
    session
}

pub(super) fn call(session: &Session, id: &str, tool: &str, arguments: &str) {
    session.append(Message::assistant("I look.").calling(id, tool, arguments)).unwrap();
}

pub(super) fn started(session: &Session, id: &str, tool: &str) {
    let (call_id, tool) = (id.to_owned(), tool.to_owned());
    let (effect, arguments) = (Effect::Unsafe, Digest::of(b"{}"));
    let (lane, targets, child) = (Lane::main(), Vec::new(), None);
    session.append(ToolStarted { lane, call_id, tool, effect, arguments, targets, child }).unwrap();
}

/// Two commands were asked for; the first was cut off while it ran, the second never began.
pub(super) fn cut_off(session: &Session) {
    session.append(Message::user("Clean the scales")).unwrap();
    let both = Message::assistant("I clean.")
        .calling("call_2", "run_command", r#"{"command":"clean --all"}"#)
        .calling("call_3", "run_command", r#"{"command":"dry --all"}"#);
    session.append(both).unwrap();
    started(session, "call_2", "run_command");
}

/// A command waits for somebody to allow it.
pub(super) fn waits(session: &Session) {
    session.append(Message::user("Sell the scales")).unwrap();
    call(session, "call_4", "run_command", r#"{"command":"sell"}"#);
    let gate = Gate::new("call_4", "sell?");
    session.append(gate).unwrap();
}

/// The front was summarised, and the user went on.
pub(super) fn compacted(session: &Session) {
    let first = session.append(Message::user("And the water?")).unwrap();
    session.append(Message::assistant("It is 5 kg.")).unwrap();
    let mut compacted = Compacted::new(Lane::main(), stepwell::Seq::FIRST, first);
    compacted.summary = Some("The flour was weighed.".to_owned());
    session.append(compacted).unwrap();
    session.append(Message::user("Add the two.")).unwrap();
    session.append(Message::assistant("14 kg.")).unwrap();
}

/// The user showed a picture.
pub(super) fn pictured(session: &Session) {
    let mut asked = Message::user("What is on it?");
    let (media_type, data) = ("image/png".to_owned(), PICTURE.to_owned());
    asked.parts.push(Part::Image(Image { media_type, data, opaque: None }));
    session.append(asked).unwrap();
    session.append(Message::assistant("One point.")).unwrap();
}

/// What a model is shown of a session, a line for each part, in the words in which the tests
/// read requests.
pub(super) fn view(well: &Stepwell, id: &SessionId) -> Vec<String> {
    let mut lines = Vec::new();
    for message in shown(well, id) {
        for part in &message.parts {
            let line = match part {
                Part::Text(text) if message.role == stepwell::model::Role::Assistant => {
                    format!("assistant: {}", text.text)
                }
                Part::Text(text) => format!("user: {}", text.text),
                Part::Image(image) => format!("image: {} {}", image.media_type, image.data),
                Part::ToolCall(call) => {
                    let arguments: serde_json::Value =
                        serde_json::from_str(&call.arguments).unwrap();
                    format!("call: {} {} {arguments}", call.id, call.name)
                }
                Part::ToolResult(result) => format!("result: {} {}", result.call_id, result.text),
                Part::Thinking(_) => continue,
            };
            lines.push(line);
        }
    }
    lines
}

/// The last question and its answer were taken back, and nothing was said after that.
pub(super) fn rewound(session: &Session) {
    let first = session.append(Message::assistant("And 5 kg of water.")).unwrap();
    session.append(Message::user("And the salt?")).unwrap();
    session.append(Message::assistant("It is 200 g.")).unwrap();
    session.rewind(first, Scope::Chat).unwrap();
}

/// The same, and the user went on.
pub(super) fn rewound_and_gone_on(session: &Session) {
    rewound(session);
    session.append(Message::user("And the yeast?")).unwrap();
    session.append(Message::assistant("It is 20 g.")).unwrap();
}

/// The result of a call was taken back.
pub(super) fn rewound_to_a_call(session: &Session) {
    session.append(Message::user("And the salt?")).unwrap();
    let asked = Message::assistant("I look.").calling("call_5", "read_file", "{}");
    let asked = session.append(asked).unwrap();
    started(session, "call_5", "read_file");
    session.append(Message::tool_result("call_5", "200 g")).unwrap();
    session.rewind(asked, Scope::Chat).unwrap();
}

/// A compaction was taken back with what came after it.
pub(super) fn rewound_before_a_compaction(session: &Session) {
    let first = session.append(Message::assistant("And 5 kg of water.")).unwrap();
    compacted(session);
    session.rewind(first, Scope::Chat).unwrap();
}

/// What was taken back was taken back twice: first a little, then more.
pub(super) fn rewound_twice(session: &Session) {
    let first = session.append(Message::assistant("And 5 kg of water.")).unwrap();
    session.append(Message::user("And the salt?")).unwrap();
    rewound(session);
    session.append(Message::user("And the oil?")).unwrap();
    session.rewind(first, Scope::Chat).unwrap();
}
