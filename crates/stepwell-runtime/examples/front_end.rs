//! A front end in a page: it starts a run, shows it, answers its approval from another thread,
//! interrupts it, resumes, forks and rewinds it, and does the same with a flow.
//! `cargo run -p stepwell-runtime --example front_end`
#![allow(clippy::print_stdout, reason = "this front end is a terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use stepwell::model::{Answer, Scope};
use stepwell_flow::spec::Spec;
use stepwell_runtime::{
    FlowOptions, FlowRequest, ForkRequest, Interrupt, Patience, ResumeRequest, RewindRequest,
    RunEvent, RunHandle, RunOptions, RunReport, RunRequest, Runtime,
};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

/// In place of a model: it wants to run a command, which needs leave.
const SCRIPT: &str = "
- {text: I make it., calls: [{tool: run_command, arguments: {command: 'echo hello > made.txt'}}]}
- {text: Made.}
";

const FLOW: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: any}
agents: {writer: {prompt: Write.}}
pattern:
  type: chain
  config:
    steps:
      - {agent: writer, input: Draft it.}
      - {type: hitl, prompt: Send it?}
";

/// Shows a run, and has every question answered by whoever sits at another thread.
fn show(handle: RunHandle, answer: &Answer) -> Result<RunReport, stepwell_runtime::Error> {
    std::thread::scope(|scope| {
        for event in handle.events() {
            match event {
                RunEvent::Delta(delta) => println!("  {delta:?}"),
                RunEvent::ToolStarted { preview, .. } => println!("> {preview}"),
                RunEvent::Node(node) => println!("{} {:?}", node.key, node.state),
                RunEvent::Answered(it) => println!("{} said {}", it.who, it.answer),
                RunEvent::Approval(open) => {
                    println!("? {}", open.gate.prompt);
                    let handle = &handle;
                    scope.spawn(move || handle.answer(&open.gate.id, answer.clone(), "ann@desk"));
                }
                RunEvent::Ended { status, .. } => println!("= {status}"),
                _ => {}
            }
        }
    });
    handle.join()
}

/// A workspace in a scratch folder; a real front end fills the host in from its surroundings.
fn workspace(folder: &Path) -> Result<Workspace, stepwell_workspace::Error> {
    let state = Some(folder.join("state"));
    let host = Host { folder: Some(folder.to_owned()), state, ..Host::bare() };
    let wanted = Wanted { folder: Some(folder.to_owned()), ..Wanted::default() };
    Workspace::locate(host, wanted, Notices::to_nobody())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::new(workspace(folder.path())?);
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, SCRIPT)?;
    let model = Some(format!("script:{}", script.display()));
    let options = RunOptions { model, patience: Patience::Wait, ..RunOptions::default() };
    // Start it, and interrupt it while it asks.
    let request = RunRequest { options: options.clone(), ..RunRequest::new("make it") };
    let handle = runtime.start(request)?;
    let asked = handle.events().find(|event| matches!(event, RunEvent::Approval(_)));
    let Some(RunEvent::Approval(asked)) = asked else { return Err("it did not ask".into()) };
    handle.interrupt();
    let session = handle.join()?.session;
    // Resume it: the same question waits, and is answered now.
    let resume = ResumeRequest::new(session.clone(), runtime.trust(&session));
    let resume = ResumeRequest { options: options.clone(), ..resume };
    let report = show(runtime.resume(resume)?, &Answer::ALLOW_ONCE)?;
    println!("{}: {:?}", report.output, report.files_modified);
    // Fork it, and rewind it: what it made is gone again.
    let fork = ForkRequest { session: session.clone(), at: None, label: None };
    println!("forked as {}", runtime.fork(&fork)?.session);
    runtime.rewind(&RewindRequest::new(session, asked.seq, Scope::Both))?;
    // The same with a flow.
    let (path, variables) = (folder.path().join("flow.yaml"), BTreeMap::new());
    std::fs::write(&path, FLOW)?;
    let (text, reading) = Spec::load(&path, "flow.yaml")?;
    let (reading, interrupt) = (Arc::new(reading), Interrupt::default());
    let flow = FlowOptions::default();
    let request = FlowRequest { path, text, reading, variables, options, flow, interrupt };
    show(runtime.start_flow(request)?, &Answer::from("yes"))?;
    Ok(())
}
