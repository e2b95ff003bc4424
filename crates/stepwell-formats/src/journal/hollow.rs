//! A line without what the message holds that it became: its texts are taken out, and put back when
//! the line is written. Both together are the line again, byte for byte.

use stepwell::Message;
use stepwell::model::Part;

use crate::json::fields::{Fields, quoted};

/// The shortest text that is taken out: a mark is not much shorter.
const MIN_TEXT: usize = 16;

/// What stands where a text was taken out, before its number. No program writes that.
const MARK: &str = "\"\\u0000";

/// The texts of a message, each as it stands in JSON, and by its number. A short one has none.
fn texts(message: &Message) -> Vec<String> {
    let mut texts = Vec::new();
    let mut add = |text: String| texts.push(text);
    for part in &message.parts {
        match part {
            Part::Text(it) | Part::Thinking(it) => {
                add(quoted(&it.text));
                add(it.opaque.as_ref().map(|it| quoted(&it.data)).unwrap_or_default());
            }
            Part::Image(image) => add(quoted(&image.data)),
            Part::ToolCall(call) => add(call.arguments.clone()),
            Part::ToolResult(result) => {
                add(quoted(&result.text));
                result.images.iter().for_each(|image| add(quoted(&image.data)));
            }
        }
    }
    texts
}

/// A line without the texts of its message. Where it could not be put together again byte for byte,
/// it is the whole line behind a space.
pub(crate) fn hollow(line: &str, message: &Message) -> String {
    let texts = texts(message);
    let mut rest = line.to_owned();
    for (n, text) in texts.iter().enumerate() {
        if text.len() > MIN_TEXT && rest.contains(text.as_str()) {
            rest = rest.replace(text.as_str(), &format!("{MARK}{n}\""));
        }
    }
    match Fields::parse(&rest).is_ok() && put_back(&rest, &texts) == line {
        true => rest,
        false => whole(line),
    }
}

/// A line from which nothing is taken out.
pub(crate) fn whole(line: &str) -> String {
    format!(" {line}")
}

/// The line again, with the texts of its message as they are now.
pub(crate) fn refill(line: &str, message: &Message) -> String {
    match line.strip_prefix(' ') {
        Some(whole) => whole.to_owned(),
        None => put_back(line, &texts(message)),
    }
}

fn put_back(line: &str, texts: &[String]) -> String {
    let mut pieces = line.split(MARK);
    let mut back = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (number, rest) = piece.split_once('"').unwrap_or((piece, ""));
        match number.parse::<usize>().ok().and_then(|n| texts.get(n)) {
            Some(text) => back.push_str(text),
            None => back.push_str("null"),
        }
        back.push_str(rest);
    }
    back
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stepwell::model::{Role, ToolResult};

    use super::*;

    #[test]
    fn a_long_text_is_taken_out_and_a_short_one_stays() {
        let said = Message::user("The loaf is burnt, \"again\".");
        let line = r#"{"a":1,"text":"The loaf is burnt, \"again\".","more":"The loaf"}"#;
        let rest = hollow(line, &said);
        assert_eq!(rest, "{\"a\":1,\"text\":\"\\u00000\",\"more\":\"The loaf\"}");
        assert_eq!(refill(&rest, &said), line);
        let scrubbed = Message::user("[erased]");
        assert_eq!(refill(&rest, &scrubbed), r#"{"a":1,"text":"[erased]","more":"The loaf"}"#);
    }

    #[test]
    fn a_line_that_could_not_be_put_together_again_stays_whole() {
        let said = Message::user("The loaf is burnt again.");
        for line in [
            "{\"a\":\"\\u00000\",\"b\":\"The loaf is burnt again.\"}",
            r#"{"a":"x\\"The loaf is burnt again.""#,
        ] {
            assert_eq!(hollow(line, &said), format!(" {line}"));
            assert_eq!(refill(&hollow(line, &said), &said), line);
        }
    }

    proptest! {
        #[test]
        fn every_line_comes_back(
            texts in prop::collection::vec(".{0,40}", 1..5),
            arguments in "[a-z\"]{0,40}",
            more in ".{0,30}",
        ) {
            let mut message = Message::new(Role::Assistant, Vec::new());
            message.parts = texts.iter().map(|text| Part::text(text.as_str())).collect();
            let result = ToolResult { text: texts.concat(), ..ToolResult::default() };
            message.parts.push(Part::ToolResult(result));
            let call = serde_json::json!({ "x": arguments, "y": texts });
            let message = message.calling("c", "run", call.to_string());
            let line = serde_json::json!({
                "all": texts.concat(), "args": call, "texts": texts, "more": more,
            }).to_string();
            prop_assert_eq!(refill(&hollow(&line, &message), &message), line);
        }
    }
}
