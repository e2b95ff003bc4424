//! A run that is interrupted and resumed: `cargo run --example interrupted`.
//!
//! The example starts itself a second time as the "agent", which kills itself in the middle of a
//! tool call. Its recorded events are still there, and the unfinished call reads as unknown.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::Path;
use std::process::Command;

use stepwell::model::{Part, Usage};
use stepwell::store::query::{Query, Search};
use stepwell::{Lane, Message, SessionId, Status, Stepwell, StopReason};

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Anything<()> {
    let mut args = std::env::args().skip(1);
    if let (Some("agent"), Some(folder)) = (args.next().as_deref(), args.next()) {
        return agent(Path::new(&folder));
    }
    let workspace = std::env::temp_dir().join(format!("stepwell-example-{}", std::process::id()));
    let folder = workspace.join(".stepwell");

    println!("An agent works, and is killed in the middle of a tool call:");
    let agent = Command::new(std::env::current_exe()?).arg("agent").arg(&folder).status()?;
    println!("  agent: {agent}\n");

    println!("Its session is listed as interrupted:");
    let well = Stepwell::open(&folder)?;
    list(&well)?;

    let id = well.find("@last")?;
    println!("\nIt is resumed. The model's view is a valid conversation:");
    let session = well.resume(&id)?;
    for shown in session.view(&Lane::main())?.messages {
        let parts: Vec<String> = shown.message.parts.iter().map(line).collect();
        println!(
            "  {:<9} {}",
            format!("{:?}", shown.message.role).to_lowercase(),
            parts.join(" | ")
        );
    }

    let usage = Usage { input: 950, output: 60, ..Usage::default() };
    let cost = Some("0.0012".parse()?);
    session.step([Message::assistant("The build is green. Done.").spending(usage, cost)])?;
    session.finish(Status::Success, Some(StopReason::LlmDone))?;
    println!("\nAnd finished:");
    list(&well)?;

    println!("\nIt can be searched:");
    for hit in well.search(&Search::new("login"))?.hits {
        println!("  {} #{} {}: {}", hit.session, hit.seq, hit.kind, hit.snippet.text());
    }
    let verdict = well.store().maintain().verify(&id)?;
    println!("\nIts log verifies: {} events, undamaged: {}", verdict.intact, verdict.is_sound());
    drop(well);
    std::fs::remove_dir_all(workspace)?;
    Ok(())
}

/// The agent: one step, then a tool call during which it dies.
fn agent(folder: &Path) -> Anything<()> {
    let well = Stepwell::open(folder)?;
    let session = well
        .create(well.draft("fix the login").with_agent("build").with_model("acme", "acme-large"))?;
    session.append(Message::user("fix the login"))?;
    let usage = Usage { input: 700, output: 40, ..Usage::default() };
    session.step([
        Message::assistant("I look at the code.")
            .calling("call_1", "read_file", r#"{"path":"src/login.rs"}"#)
            .spending(usage, Some("0.0009".parse()?)),
        Message::tool_result("call_1", "fn login() { todo!() }"),
    ])?;
    let usage = Usage { input: 800, output: 90, ..Usage::default() };
    let answer = Message::assistant("I wrote it. Now the build.")
        .calling("call_2", "run_command", r#"{"cmd":"make"}"#)
        .spending(usage, Some("0.0011".parse()?));
    session.append(answer)?;
    // Runs no destructor, like kill -9.
    std::process::abort()
}

fn list(well: &Stepwell) -> Anything<()> {
    println!("  {:<22} {:<12} {:>5} {:>8}  TASK", "ID", "STATUS", "STEPS", "COST");
    for info in well.list(&Query::default())?.sessions {
        let head = info.head;
        let id: &SessionId = &head.id;
        let cost = format!("${:.4}", head.spent.cost);
        println!("  {id:<22} {:<12} {:>5} {cost:>8}  {}", head.status, head.steps, head.task);
    }
    Ok(())
}

fn line(part: &Part) -> String {
    match part {
        Part::Text(text) | Part::Thinking(text) => text.text.clone(),
        Part::Image(image) => image.media_type.clone(),
        Part::ToolCall(call) => format!("{} calls {}{}", call.id, call.name, call.arguments),
        Part::ToolResult(result) => format!("{} = {}", result.call_id, result.text),
    }
}
