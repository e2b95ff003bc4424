use std::num::{NonZeroU32, NonZeroU64};

use stepwell::model::Money;
use stepwell_flow::guided::{Outline, WorkAgent};
use stepwell_flow::spec::{Commit, OnFailure, TryProgram, YesPhase};
use stepwell_runtime::WorkRequest;
use stepwell_terminal::note;
use stepwell_terminal::text::visible;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;
use crate::runner::{self, Flags, Runner, dollars};
use crate::typed::{self, one_of, positive};

/// Leads from a goal to a commit: discuss, plan, execute, verify, run and ship.
///
/// Each phase is a checkpoint, and everything can be resumed. It asks what is unclear, has you
/// approve the plan, works on the tasks, runs the checks, repairs what fails, and proposes a
/// commit; it never pushes. Without a terminal it pauses at each question (exit code 8): answer
/// with stepwell resume --respond, or pass --yes so that it does not ask.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dry_run", |arg| arg.help(runner::FLOW_DRY_RUN)))]
#[command(mut_arg("agent", |arg| arg.hide(true)))]
pub(crate) struct Args {
    /// The goal; - reads it from stdin.
    goal: String,
    /// Does not ask you in these phases: discuss, plan, execute, ship, or all.
    #[arg(long, value_name = "PHASE", value_delimiter = ',', value_parser = one_of(YES))]
    yes: Vec<&'static [YesPhase]>,
    /// The model of one phase, such as plan=anthropic/NAME; may be repeated.
    #[arg(long, value_name = "PHASE=MODEL", value_parser = phase_model)]
    phase_model: Vec<(WorkAgent, String)>,
    /// A command that must succeed in the end, in addition to the plan's own checks; may be
    /// repeated.
    #[arg(long, value_name = "COMMAND")]
    check: Vec<String>,
    /// How to start the program. Overrides the plan.
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// A local address at which the program must answer.
    #[arg(long, requires = "run")]
    url: Option<String>,
    /// A text that must occur in the program's response or output.
    #[arg(long, value_name = "TEXT", requires = "run")]
    expect: Option<String>,
    /// Runs up to this many tasks at once, each by a subagent in its own git worktree. Finished
    /// work is merged into your files.
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroU32>)]
    parallel: Option<NonZeroU32>,
    /// What to do with a failed task.
    #[arg(long, value_name = "WHAT", value_parser = one_of(ON_FAILURE), default_value = "ask")]
    on_failure: OnFailure,
    /// How many rounds of checks and repairs there are at most. Default: 3.
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroU32>)]
    rounds: Option<NonZeroU32>,
    /// How many questions to ask at most. Default: 5.
    #[arg(long, value_name = "N")]
    questions: Option<u32>,
    /// The most that each task may cost, in dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    task_budget: Option<Money>,
    /// The most tokens that each task may use.
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroU64>)]
    task_tokens: Option<NonZeroU64>,
    /// Does not commit, and does not ask about it.
    #[arg(long)]
    no_commit: bool,
    #[command(flatten)]
    flags: Flags,
}

/// Phases in which nobody is asked, as they are typed.
const YES: &[(&str, &[YesPhase])] = &[
    ("discuss", &[YesPhase::Discuss]),
    ("plan", &[YesPhase::Plan]),
    ("execute", &[YesPhase::Execute]),
    ("ship", &[YesPhase::Ship]),
    ("all", &[YesPhase::Discuss, YesPhase::Plan, YesPhase::Execute, YesPhase::Ship]),
];

/// What becomes of a task that failed, as it is typed.
const ON_FAILURE: &[(&str, OnFailure)] = &[
    ("ask", OnFailure::Ask),
    ("retry", OnFailure::Retry),
    ("repair", OnFailure::Repair),
    ("skip", OnFailure::Skip),
    ("give-up", OnFailure::GiveUp),
];

/// `PHASE=MODEL`.
fn phase_model(text: &str) -> Result<(WorkAgent, String), String> {
    let phases = || WorkAgent::ALL.map(WorkAgent::phase).join(", ");
    let (phase, model) = text.split_once('=').ok_or("write PHASE=PROVIDER/NAME")?;
    let agent = WorkAgent::of_phase(phase.trim());
    let agent = agent.ok_or_else(|| format!("expected one of: {}", phases()))?;
    Ok((agent, model.trim().to_owned()))
}

impl Args {
    fn outline(&self) -> Outline {
        let run = self.run.as_ref().map(|command| TryProgram {
            command: command.clone(),
            url: self.url.clone(),
            expect: self.expect.clone(),
            seconds: None,
        });
        Outline {
            model: None,
            models: self.phase_model.iter().cloned().collect(),
            yes: self.yes.iter().copied().flatten().copied().collect(),
            max_questions: self.questions,
            rounds: self.rounds,
            parallel: self.parallel,
            on_failure: self.on_failure,
            task_budget: self.task_budget,
            task_tokens: self.task_tokens,
            checks: self.check.clone(),
            run,
            commit: if self.no_commit { Commit::Never } else { Commit::Ask },
        }
    }
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        Reach::widens_if(!self.yes.is_empty(), self.flags.reach())
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if args.flags.agent.is_some() {
        let message = "--agent has no meaning here: guided work has agents of its own";
        return Err(Failure::new(Exit::Usage, message));
    }
    let request = WorkRequest {
        goal: typed::task(args.goal.clone())?,
        outline: args.outline(),
        options: args.flags.options(Runner::Flow, app.console()),
        ..WorkRequest::default()
    };
    let runtime = app.runtime();
    if args.flags.dry_run {
        let plan = runtime.plan_flow(&request.flow()?)?;
        match app.out.is_json() {
            true => app.out.object(&stepwell_wire::Plan::from(&plan))?,
            false => app.out.line(visible(&plan.text()).trim_end())?,
        }
        note("This was a dry run: nobody was asked, and nothing was written.");
        return Ok(Exit::Done);
    }
    let handle = runtime.start_work(WorkRequest { interrupt: runner::interrupt(), ..request })?;
    app.run_view().show(handle, Runner::Flow, &args.flags)
}
