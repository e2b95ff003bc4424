//! A supervisor for the tests, and a process that runs a command under one and can be killed.
//!
//! `supervise WHAT…` supervises; `run ROOT LINE` runs the line through the tool, under `supervise`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use stepwell_agent::tool::{Supervisor, ToolEnv, Watched, builtin, is_private_variable, supervise};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.iter().map(OsString::as_os_str).collect::<Vec<_>>()[..] {
        [mode, ..] if mode == "supervise" => match Watched::parse(&arguments[1..]) {
            Some(watched) => ExitCode::from(u8::try_from(supervise(&watched)).unwrap_or(u8::MAX)),
            None => ExitCode::from(2),
        },
        [mode, root, line] if mode == "run" => {
            let line = line.to_str().expect("the tests give text");
            run(root.into(), line);
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

fn run(root: PathBuf, line: &str) {
    let own = std::env::current_exe().expect("a process knows its program");
    let arguments = vec!["supervise".to_owned()];
    let supervisor = Some(Supervisor { program: own, arguments });
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let withheld = names.filter(|name| is_private_variable(name)).collect();
    let place = ToolEnv { supervisor, withheld, ..ToolEnv::new(root) };
    let tools = builtin();
    let tool = tools.iter().find(|tool| tool.spec().name == "run_command");
    let tool = tool.expect("it is a builtin");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(tool.run(&json!({ "command": line }), &place));
}
