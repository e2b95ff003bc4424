//! The server's tools.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::Server;

/// Tools on a page of the list.
const PAGE: usize = 100;

/// The outcome of a call.
pub(crate) enum Called {
    Done(Value),
    Refused(&'static str),
    /// No answer; a cancellation writes this file.
    Waits(String),
}

pub(crate) fn list(server: &Server, params: &Value) -> Value {
    let reads = json!({"readOnlyHint": true});
    let mut all = vec![
        json!({"name": "echo", "description": "Says it again.", "annotations": reads,
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}),
        json!({"name": "env", "inputSchema": {}, "annotations": reads}),
    ];
    let unsafe_ones =
        ["append", "fail", "refuse", "picture", "long", "wait", "die", "odd", "huge", "two words"];
    all.extend(unsafe_ones.map(|name| json!({"name": name, "inputSchema": {"type": "object"}})));
    if server.is("twice") {
        all.push(json!({"name": "echo", "description": "Another.", "inputSchema": {}}));
    }
    if server.is("schemaless") {
        all.push(json!({"name": "bare", "description": "Has no schema."}));
    }
    if server.is("large") {
        let large = "x".repeat(40_000);
        let schema = |n| json!({"name": format!("l{n}"), "inputSchema": {"description": large}});
        all.extend((0..9).map(schema));
    }
    let more = server.number("many").unwrap_or(0);
    all.extend((0..more).map(|n| json!({"name": format!("n{n}"), "inputSchema": {}})));
    let start = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let next = if server.is("endless") { Some(0) } else { Some(start + PAGE) };
    let next = next.filter(|next| server.is("endless") || *next < all.len());
    let page: Vec<Value> = all.into_iter().skip(start).take(PAGE).collect();
    match next {
        Some(next) => json!({"tools": page, "nextCursor": next.to_string()}),
        None => json!({"tools": page}),
    }
}

pub(crate) fn call(params: &Value) -> Called {
    let arguments = &params["arguments"];
    let word = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    Called::Done(match params["name"].as_str().unwrap() {
        "echo" => text(word("text")),
        "two words" => text("two words it is".to_owned()),
        "env" if arguments.get("name").is_none() => {
            text(std::env::current_dir().unwrap().display().to_string())
        }
        "env" => text(std::env::var(word("name")).unwrap_or_else(|_| "unset".to_owned())),
        "append" => {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(word("file"));
            writeln!(file.unwrap(), "{}", word("text")).unwrap();
            text("appended".to_owned())
        }
        "fail" => json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}),
        "refuse" => return Called::Refused("such arguments are not for me"),
        "picture" => json!({"content": [
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}
        ]}),
        "long" => text(format!("first\n{}last", "line\n".repeat(100_000))),
        "odd" => json!(["what", "is", "this"]),
        "huge" => text("x".repeat(9 << 20)),
        "die" => {
            std::fs::write(word("file"), "dying").unwrap();
            eprintln!("I fall");
            std::process::exit(3);
        }
        "wait" => {
            std::fs::write(word("begun"), "begun").unwrap();
            return Called::Waits(word("cancelled"));
        }
        _ => return Called::Refused("there is no such tool"),
    })
}
