use std::fs;
use std::io::{BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use stepwell_terminal::text::{cut, visible};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Shows what Stepwell does, offline: an agent works, is killed, and is resumed.
///
/// Everything happens in a temporary folder, with a model that answers from a script.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leaves the folder there, to look around in it.
    #[arg(long)]
    keep: bool,
}

/// The program that the agent is to change.
const PROGRAM: &str = "#!/bin/sh\necho \"Hello, world!\"\n";

/// The test that it is to pass.
const TEST: &str = "#!/bin/sh\n\
    [ \"$(sh greet.sh Ada)\" = \"Hello, Ada!\" ] && echo \"ok: greets by name\"\n";

/// What the model says. The command of its third answer takes longer than it is given.
const SCRIPT: &str = r#"
prices: {input: "3", output: "15"}
answers:
  - text: I look at the program first.
    calls: [{tool: read_file, arguments: {path: greet.sh}}]
    usage: {input: 812, output: 41}
  - text: It ignores its argument. I change that.
    calls:
      - tool: edit_file
        arguments: {path: greet.sh, old_text: "Hello, world!", new_text: "Hello, ${1:-world}!"}
    usage: {input: 905, output: 77}
  - text: Now the test.
    calls: [{tool: run_command, arguments: {command: "sleep 600; sh test.sh"}}]
    usage: {input: 1010, output: 38}
  - text: The test was interrupted, so its outcome is unknown. I run it again, without the wait.
    calls: [{tool: run_command, arguments: {command: sh test.sh}}]
    usage: {input: 1102, output: 52}
  - text: greet.sh now greets by name, and the test passes.
    usage: {input: 1176, output: 24}
"#;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let folder = std::env::temp_dir().join(format!("stepwell-demo-{}", std::process::id()));
    let shown = visible(&folder.display().to_string());
    let ended = play(&folder, app);
    if args.keep {
        app.out.line(format_args!("\nIt is all in {shown}"))?;
    } else if let Err(error) = fs::remove_dir_all(&folder) {
        stepwell_terminal::note(format_args!("warning: {shown} is still there: {error}"));
    }
    ended
}

fn play(folder: &Path, app: &mut App) -> Result<Exit> {
    let fault = |error| Failure::file(folder, "making the demo's folder", &error);
    fs::create_dir_all(folder.join("home")).map_err(fault)?;
    for (name, text) in [("greet.sh", PROGRAM), ("test.sh", TEST), ("model.yaml", SCRIPT)] {
        fs::write(folder.join(name), text).map_err(fault)?;
    }
    let stage = Stage { folder: folder.to_owned(), program: program()? };
    app.out
        .line("An agent works on a small program, and is killed in the middle of a command:\n")?;
    stage.killed(app)?;
    app.out.line("\nNothing is lost, and the session is listed as interrupted:\n")?;
    stage.act(&["sessions"], app)?;
    app.out.line("\nIt is resumed at that point. The interrupted command is not repeated:")?;
    app.out.line("the model reads that its outcome is unknown, and decides.\n")?;
    stage.act(&["resume"], app)?;
    app.out.line("\nIt is done:\n")?;
    stage.act(&["sessions"], app)?;
    app.out.line("\nThe log has all of it:\n")?;
    stage.act(&["show", "@last", "--events"], app)?;
    app.out.line("\nAnd this is what changed:\n")?;
    stage.difference(app)?;
    Ok(Exit::Done)
}

fn program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failed, format_args!("where am I? {error}")))
}

/// How wide the demo is: its log has long lines, and their fronts are enough.
const WIDTH: usize = 100;

/// Where the demo happens.
struct Stage {
    folder: PathBuf,
    program: PathBuf,
}

impl Stage {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let home = self.folder.join("home");
        command.args(args).current_dir(&self.folder).env("HOME", &home).stdin(Stdio::null());
        for folder in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "STEPWELL_STORE"] {
            command.env_remove(folder);
        }
        command
    }

    fn say(args: &[&str], app: &mut App) -> Result<()> {
        let quoted = args.iter().map(|arg| match arg.contains(' ') {
            true => format!("{arg:?}"),
            false => (*arg).to_owned(),
        });
        app.out.line(format_args!("$ stepwell {}", quoted.collect::<Vec<_>>().join(" ")))?;
        app.out.flush()
    }

    /// Starts a command. What it answers and what it tells come through one pipe, so that they
    /// stand in the order in which they happened.
    fn begin(&self, args: &[&str]) -> std::io::Result<(Child, BufReader<PipeReader>)> {
        let (reader, writer) = std::io::pipe()?;
        // The command, which holds the other end, is dropped here: the pipe then ends with the
        // child.
        let child = self.command(args).stdout(writer.try_clone()?).stderr(writer).spawn()?;
        Ok((child, BufReader::new(reader)))
    }

    /// Runs a command and shows what it says.
    fn act(&self, args: &[&str], app: &mut App) -> Result<()> {
        Self::say(args, app)?;
        let fault = |error| Failure::file(&self.program, "starting it", &error);
        let (mut child, told) = self.begin(args).map_err(fault)?;
        for line in told.lines().map_while(std::io::Result::ok) {
            app.out.line(cut(&line, WIDTH))?;
        }
        match child.wait().map_err(fault)?.success() {
            true => Ok(()),
            false => Err(Failure::new(Exit::Failed, "the demo did not go as it should")),
        }
    }

    /// Starts the run, and kills it once its long command has begun.
    fn killed(&self, app: &mut App) -> Result<()> {
        let task = "make greet.sh greet by name";
        let args = ["run", task, "--model", "script:model.yaml", "--mode", "yolo"];
        Self::say(&args, app)?;
        let fault = |error| Failure::file(&self.program, "starting it", &error);
        let (mut child, told) = self.begin(&args).map_err(fault)?;
        for line in told.lines().map_while(std::io::Result::ok) {
            app.out.line(&line)?;
            if line.contains("sleep 600") {
                break;
            }
        }
        child.kill().map_err(fault)?;
        child.wait().map_err(fault)?;
        app.out.line("kill -9")
    }

    /// What the agent changed.
    fn difference(&self, app: &mut App) -> Result<()> {
        let after = fs::read_to_string(self.folder.join("greet.sh")).unwrap_or_default();
        for (old, new) in PROGRAM.lines().zip(after.lines()) {
            match old == new {
                true => app.out.line(format_args!("  {}", visible(old)))?,
                false => {
                    app.out.line(format_args!("- {}", visible(old)))?;
                    app.out.line(format_args!("+ {}", visible(new)))?;
                }
            }
        }
        Ok(())
    }
}
