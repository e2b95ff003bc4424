//! Serves a workspace over stdin and stdout: `stepwell-test-mcp-server ROOT [everywhere] [record]
//! [manage]`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use stepwell_mcp::{Access, Options, Scope, Server};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    let root = Path::new(&words[0]);
    let host = Host { state: Some(root.join(".state")), ..Host::bare() };
    let wanted = Wanted { folder: Some(root.to_owned()), ..Wanted::default() };
    let workspace = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
    let all = [Access::Record, Access::Manage];
    let allow = all.into_iter().filter(|access| has(access.as_str())).collect();
    let scope = if has("everywhere") { Scope::Everywhere } else { Scope::Workspace };
    let server = Server::new(workspace, Options { scope, allow });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(server.serve(std::io::stdin(), std::io::stdout())).unwrap();
}
