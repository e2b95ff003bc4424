//! Runs agents and flows, and sends them messages, until it is killed.
//!
//! Its only argument is an [`Order`] as JSON. It prints its reports as one JSON value a line.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a process under test: a panic is how it fails, and stdout is what it says"
)]

mod run;
mod terminal;

use std::io::{BufRead as _, Write as _};

use stepwell_runtime::Runtime;
use stepwell_torture::{Order, Said, Task};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

fn main() {
    let order: Order = serde_json::from_str(&std::env::args().nth(1).unwrap()).unwrap();
    let runtime = runtime(&order);
    match &order.task {
        Task::Start { asker, person } => run::start(&order, &runtime, *asker, *person),
        Task::Resume { session, person } => run::resume(&runtime, session, *person),
        Task::Say { session, words } => {
            for (n, _) in std::io::stdin().lock().lines().enumerate() {
                let text = format!("{words} {n}");
                let words = stepwell_runtime::SayRequest { text, lane: None, now: false };
                runtime.say(session, words).unwrap();
            }
        }
    }
}

fn say(said: &Said) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(said).unwrap()).unwrap();
    out.flush().unwrap();
}

fn runtime(order: &Order) -> Runtime {
    let folder = &order.folder;
    let root = folder.join("work");
    let host = Host {
        folder: Some(root.clone()),
        home: Some(folder.join("home")),
        // The program's own folders, with XDG_CONFIG_HOME and XDG_STATE_HOME in that folder.
        config: Some(folder.join("config/stepwell")),
        state: Some(folder.join("state/stepwell")),
        ..Host::bare()
    };
    let store = order.store.as_ref().map(Into::into);
    let wanted = Wanted { folder: Some(root), store, ..Wanted::default() };
    Runtime::new(Workspace::locate(host, wanted, Notices::to_nobody()).unwrap())
}
