//! An MCP server for the tests, over stdio or HTTP, with configurable behaviour.
//!
//! `stepwell-test-mcp stdio|http [BEHAVIOUR…]`. Over HTTP it prints its port first.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and a server speaks through its streams"
)]

mod http;
mod tools;

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::sync::Mutex;

use serde_json::{Value, json};

/// The server, with the behaviours from its command line.
pub(crate) struct Server {
    words: Vec<String>,
    /// Open calls, each with the file to write when it is cancelled.
    waiting: Mutex<BTreeMap<String, String>>,
}

impl Server {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    /// The number after a word, as in `many=3000`.
    pub(crate) fn number(&self, word: &str) -> Option<usize> {
        let find = |it: &String| it.strip_prefix(word)?.strip_prefix('=')?.parse().ok();
        self.words.iter().find_map(find)
    }

    /// The answer to a message, if it has one.
    pub(crate) fn answer(&self, message: &Value) -> Option<Value> {
        let (method, params) = (message["method"].as_str()?, &message["params"]);
        if method == "notifications/cancelled" {
            let cancelled = params["requestId"].to_string();
            if let Some(file) = self.waiting.lock().unwrap().remove(&cancelled) {
                std::fs::write(file, "cancelled").unwrap();
            }
        }
        let id = message.get("id")?;
        let info = json!({"name": "test", "version": "1"});
        let answer = |result: Value| Some(json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let refuse = |code: i64, why: &str| {
            let error = json!({"code": code, "message": why});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        };
        match method {
            "initialize" if self.is("modern") => refuse(-32601, "no such method"),
            "initialize" if self.is("refuses") => refuse(-32000, "not today"),
            "initialize" => answer(json!({
                "protocolVersion": params["protocolVersion"], "serverInfo": info,
                "capabilities": if self.is("toolless") { json!({}) } else { json!({"tools": {}}) },
            })),
            "server/discover" => answer(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
            })),
            "tools/list" => answer(tools::list(self, params)),
            "tools/call" => match tools::call(params) {
                tools::Called::Done(result) => answer(result),
                tools::Called::Refused(why) => refuse(-32602, why),
                tools::Called::Waits(cancelled) => {
                    self.waiting.lock().unwrap().insert(id.to_string(), cancelled);
                    None
                }
            },
            _ => refuse(-32601, "no such method"),
        }
    }

    fn stdio(&self) {
        if self.is("dies") {
            eprintln!("I cannot live without a license");
            std::process::exit(7);
        }
        if self.is("loud") {
            eprintln!("{}", "noise\n".repeat(100_000));
        }
        if self.is("nonsense") {
            println!("Welcome to the server!");
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.unwrap();
            if self.is("mute") || self.is("nonsense") {
                continue;
            }
            if self.is("deaf") && line.contains("notifications/initialized") {
                std::thread::park();
            }
            if self.is("stalls") && line.contains("tools/call") {
                std::thread::park();
            }
            if let Some(answer) = self.answer(&serde_json::from_str(&line).unwrap()) {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{answer}").and_then(|()| out.flush()).unwrap();
            }
        }
        if self.is("stubborn") {
            loop {
                std::thread::park();
            }
        }
    }
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let how = words.remove(0);
    let server = Server { words, waiting: Mutex::default() };
    match how.as_str() {
        "stdio" => server.stdio(),
        "http" => http::serve(server),
        other => panic!("{other}"),
    }
}
