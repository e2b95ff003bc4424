//! The server over HTTP, one thread a connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

use crate::Server;

pub(crate) fn serve(server: Server) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let server = Arc::new(server);
    for stream in listener.incoming() {
        let server = Arc::clone(&server);
        std::thread::spawn(move || connection(&server, stream.unwrap()));
    }
}

struct Request {
    method: String,
    headers: String,
    body: Vec<u8>,
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut first, mut headers) = (String::new(), String::new());
    stream.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim() {
            "" => break,
            line => headers.push_str(&format!("{}\n", line.to_lowercase())),
        }
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    let method = first.split(' ').next()?.to_owned();
    (!method.is_empty()).then_some(Request { method, headers, body })
}

fn connection(server: &Server, stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let (status, headers, body) = respond(server, &request);
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
        let out = stream.get_mut();
        if out.write_all(head.as_bytes()).and_then(|()| out.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn respond(server: &Server, request: &Request) -> (&'static str, &'static str, String) {
    let has = |header: &str| request.headers.lines().any(|line| line == header);
    let plain = |status| (status, "", String::new());
    if server.is("key") && !(has("authorization: bearer k3y-for-tests") && has("x-extra: more")) {
        return plain("401 Unauthorized");
    }
    if server.is("moved") {
        return ("307 Temporary Redirect", "location: http://127.0.0.1:9/\r\n", String::new());
    }
    if server.is("broken") {
        return plain("500 Internal Server Error");
    }
    if request.method != "POST" {
        return plain("405 Method Not Allowed");
    }
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    let is_first = message["method"] == "initialize";
    if !is_first && !has("mcp-session-id: s1") {
        return plain("400 Bad Request");
    }
    if message["params"]["name"] == "fail" && server.is("falters") {
        return plain("502 Bad Gateway");
    }
    let Some(answer) = server.answer(&message) else {
        if message.get("id").is_some() {
            // The call has no answer, and the connection stays open.
            std::thread::park();
        }
        return plain("202 Accepted");
    };
    if server.is("events") {
        let headers = "content-type: text/event-stream\r\nmcp-session-id: s1\r\n";
        return ("200 OK", headers, format!("event: message\ndata: {answer}\n\n"));
    }
    ("200 OK", "content-type: application/json\r\nmcp-session-id: s1\r\n", answer.to_string())
}
