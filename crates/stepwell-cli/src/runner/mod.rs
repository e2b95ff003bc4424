//! Running agents and flows at a terminal: what was typed becomes a request, events become a screen
//! and questions, signals become an interrupt, and how it ended becomes an answer and an exit code.

mod report;
mod signals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stepwell::model::Money;
use stepwell_agent::permission::Mode;
use stepwell_runtime::detached::DetachedOptions;
use stepwell_runtime::{
    Attached, FlowOptions, Interrupt, Patience, RunHandle, RunOptions, Runtime, Supervisor,
};
use stepwell_terminal::lines::{self, AgentLines, Answers, Elsewhere, FlowLines};
use stepwell_terminal::{Console, Form, note, wording};
use stepwell_workspace::{Host, Workspace, parse_duration};

use crate::failure::{Exit, Result};
use crate::output::Output;
use crate::reach::Reach;

/// What `run` and `resume` both take.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it runs")]
pub(crate) struct Flags {
    /// The agent: build, explore, plan, review, or one of your own.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model: openai/NAME, anthropic/NAME, gemini/NAME, ollama/NAME, or script:FILE.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// When you are asked: confirm-all, confirm-sensitive (before changes) or yolo (never).
    #[arg(long)]
    pub(crate) mode: Option<Mode>,
    /// Stops before this run costs more than this many dollars.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) budget: Option<Money>,
    /// Stops before the whole session costs more than this many dollars; kept for resumes.
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) budget_total: Option<Money>,
    /// Stops before this run uses more than this many tokens.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Stops this run after this many steps.
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u64>,
    /// Stops after this time: 90s, 30m, or a number of seconds.
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,
    /// Asks the model, and changes nothing outside the session: tools say what they would do.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Repeats a command that was cut off, although its effect is unknown.
    #[arg(long)]
    pub(crate) retry_unsafe: bool,
    /// Writes the model's answers to a script that replays them.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Prints every event as JSON, one per line, as it is recorded.
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
    /// Waits for answers to questions instead of pausing, also without a terminal.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// What a dry run of a flow is: an agent's asks its model.
pub(crate) const FLOW_DRY_RUN: &str = "Shows the plan with its variables filled in, and ends: no model is asked, and no session or \
     file is made";

/// What `flow run` and `resume` of a flow both take.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flows")]
pub(crate) struct FlowFlags {
    /// Where to write artifacts. Default: the folder in which the flow was started.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrites existing files with artifacts.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Who runs: it says how it is shown, and who may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    Agent,
    Flow,
}

impl Flags {
    /// How far a run reaches: one that asks less than usual, or that repeats a command whose effect is
    /// not known, is the user's to start. A mode from elsewhere is judged when the run is prepared.
    pub(crate) fn reach(&self) -> Reach {
        let asks_less = self.mode.is_some_and(|mode| mode > Mode::ConfirmSensitive);
        Reach::widens_if(asks_less || self.retry_unsafe, Reach::Writes)
    }

    /// What was typed, for a run that nobody sits at.
    pub(crate) fn detached(&self) -> DetachedOptions {
        DetachedOptions {
            agent: self.agent.clone(),
            model: self.model.clone(),
            mode: self.mode,
            budget: self.budget,
            budget_total: self.budget_total,
            max_tokens: self.max_tokens,
            max_steps: self.max_steps,
            timeout: self.timeout,
            dry_run: self.dry_run,
            retry_unsafe: self.retry_unsafe,
            record_script: self.record.clone(),
        }
    }

    /// What was typed, as the runtime understands it. A run at a terminal waits for answers.
    pub(crate) fn options(&self, runner: Runner, console: Console) -> RunOptions {
        let waits = self.wait || can_ask(runner, self, console);
        let patience = if waits { Patience::Wait } else { Patience::Pause };
        RunOptions { patience, ..self.detached().into() }
    }
}

impl FlowFlags {
    /// What was typed, as the runtime understands it.
    pub(crate) fn options(&self) -> FlowOptions {
        let (output, force) = (self.output.clone(), self.force);
        FlowOptions { output, force, ..FlowOptions::default() }
    }
}

/// Can questions be asked at this terminal?
fn can_ask(runner: Runner, flags: &Flags, console: Console) -> bool {
    let reads = runner == Runner::Agent || !(flags.events || console.form == Form::Json);
    console.terminal.can_ask && reads
}

pub(crate) fn dollars(text: &str) -> Result<Money, String> {
    let money: Money =
        text.parse().map_err(|error: stepwell::model::NotMoney| error.to_string())?;
    if money < Money::ZERO { Err("a budget is not negative".to_owned()) } else { Ok(money) }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => parse_duration(text),
    }
}

/// The command that watches over a run's commands.
pub(crate) const SUPERVISE: &str = "__supervise";

/// The program that ends what a command started, if this one is killed: itself.
pub(crate) fn supervisor() -> Option<Supervisor> {
    let arguments = vec![SUPERVISE.to_owned(), "--".to_owned()];
    std::env::current_exe().ok().map(|program| Supervisor { program, arguments })
}

/// The runtime of a command.
pub(crate) fn runtime(workspace: &Workspace, console: Console) -> Runtime {
    let (now, is_live) = (workspace.now(), console.is_live());
    let notices = stepwell_runtime::Notices::to(move |notice| {
        if let Some(text) = wording::runtime_notice(notice, now, is_live) {
            note(text);
        }
    });
    // A program does not read of crashes, and a person should not miss them because one ran.
    let reads = console.form != Form::Json;
    Runtime::new(workspace.clone()).telling(notices).supervised_by(supervisor()).with_reader(reads)
}

/// An interrupt that signals ask for. It is caught from now on: whoever stops a run at once finds
/// it stopped, not crashed.
pub(crate) fn interrupt() -> Interrupt {
    let interrupt = Interrupt::default();
    signals::watch(&interrupt);
    interrupt
}

/// Where a run is shown, and its end is told.
pub(crate) struct RunView<'a> {
    pub(crate) out: &'a mut Output,
    pub(crate) console: Console,
    pub(crate) host: &'a Host,
}

impl RunView<'_> {
    /// Shows a run until it is over, and answers.
    pub(crate) fn show(self, handle: RunHandle, runner: Runner, flags: &Flags) -> Result<Exit> {
        let answers = match (can_ask(runner, flags, self.console), flags.wait) {
            (true, _) => Answers::Here,
            (false, true) => Answers::Elsewhere,
            (false, false) => Answers::Later,
        };
        let written = match runner {
            Runner::Agent => {
                let mut screen = self.screen(flags, handle.budget());
                lines::watch(&handle, &mut screen, answers);
                screen.finish()
            }
            Runner::Flow => {
                let clock = Arc::clone(&self.host.clock);
                let mut screen = FlowLines::new(self.console, clock, flags.events);
                lines::watch(&handle, &mut screen, answers);
                screen.finish()
            }
        };
        let report = match handle.join() {
            Ok(report) => report,
            Err(error) => {
                report::unsaved(&error, self.out)?;
                return Err(error.into());
            }
        };
        report::print(&report, flags, self.out)?;
        written?;
        Ok(report::exit(&report))
    }

    /// Shows a run that goes on elsewhere.
    pub(crate) fn show_attached(
        self,
        runtime: &Runtime,
        attached: &Attached,
        flags: &Flags,
    ) -> Result<Exit> {
        let asks = can_ask(Runner::Flow, flags, self.console) && !self.host.environment.is_in_run();
        let mut screen = self.screen(flags, None);
        let there = Elsewhere { runtime, attached };
        let is_over = lines::attend(&there, &mut screen, asks);
        screen.finish()?;
        if !is_over {
            note(format_args!("{} goes on; stepwell attach {0} comes back to it", attached.id()));
        }
        Ok(Exit::Done)
    }

    /// A screen for an agent's run, which may have cost so much in the end.
    fn screen(&self, flags: &Flags, budget: Option<Money>) -> AgentLines {
        let clock = Arc::clone(&self.host.clock);
        AgentLines::new(self.console, clock, flags.events, budget)
    }
}
