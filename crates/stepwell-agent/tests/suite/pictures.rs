//! Pictures that some vendors refuse: the rest of the conversation is still sent.

use serde_json::json;
use stepwell::Message;
use stepwell::model::{Image, Part};
use stepwell_strict::Say;

use crate::gemini;
use crate::providers::{BOTH, PIXEL, ask, remote, results, strict, user};

/// `<svg/>`, `%PDF-1.7`, `BM1234` and `hello`.
const REFUSED: [(&str, &str); 6] = [
    ("image/svg+xml", "PHN2Zy8+"),
    ("application/pdf", "JVBERi0xLjc="),
    ("image/bmp", "Qk0xMjM0"),
    ("image/png", "aGVsbG8="),
    ("image/gif", ""),
    ("image/jpeg", "/home/me/owl.jpeg"),
];

fn image(media_type: &str, data: &str) -> Image {
    Image { media_type: media_type.to_owned(), data: data.to_owned(), opaque: None }
}

/// A conversation with all of them, twice, and one picture with a wrong type.
fn conversation() -> Vec<Message> {
    let pictures = || REFUSED.map(|(media_type, data)| image(media_type, data));
    let mut first = user();
    first.parts.extend(pictures().map(Part::Image));
    first.parts.push(Part::Image(image("image/jpeg", PIXEL)));
    let asks = Message::assistant("").calling("call_1", "read_file", "{}");
    let mut tool = results(&asks);
    let Part::ToolResult(result) = &mut tool.parts[0] else { unreachable!() };
    result.text = String::new();
    result.images = pictures().into();
    vec![first, asks, tool]
}

fn check(sent: &str) {
    for (media_type, data) in REFUSED {
        let named = if data.starts_with('/') { "owl.jpeg" } else { media_type };
        let told = format!("[a picture that is not shown: {named}");
        assert_eq!(sent.matches(&told).count(), 2, "{named}: {sent}");
        assert!(data.is_empty() || !sent.contains(data), "{data}: {sent}");
    }
    assert!(sent.contains("image/png") && sent.contains(PIXEL), "{sent}");
}

#[tokio::test]
async fn pictures_that_are_refused_become_a_line_of_text() {
    for protocol in BOTH {
        let strict = strict().await;
        strict.push(Say::text("I see one."));
        let answer = ask(&remote(&strict, protocol), &conversation()).await;
        let asked = strict.asked();
        assert!(answer.is_ok(), "{protocol:?}: {answer:?} {:?}", asked[0].rejected);
        check(&asked[0].text);
    }
}

#[tokio::test]
async fn gemini_is_sent_them_as_text_as_well() {
    let answer = vec![gemini::chunk(&json!([{"text": "I see one."}]), Some("STOP"))];
    let (provider, mut asked) = gemini::canned(vec![answer]).await;
    gemini::ask(&provider, &conversation()).await.unwrap();
    let (_, body) = asked.recv().await.unwrap();
    check(&body.to_string());
}
