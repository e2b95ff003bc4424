use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use stepwell::model::{Driver, IdFormat, Phase, PhaseSet};
use stepwell::sessions::ResumeDecision;
use stepwell::sessions::lifecycle::{
    self, Begin, Finalized, NoTurns, Outcome, Said, Speaker, Update,
};
use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, Query};
use stepwell::upkeep::Policy;
use stepwell::{Error, Message, SessionId};
use stepwell_agent::redact::RedactMessages as _;
use stepwell_terminal::When;
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::{ago, indented, one_line, word};
use stepwell_wire::{Agent, AgentCreated, AgentTurn, AgentUnreadable};
use stepwell_workspace::config::AgentIds;
use stepwell_workspace::housekeeping::{Whose, tidy};

use super::cleanup::{Fate, Mode, ShorterAge, clean, tell_of_ignored};
use crate::app::{App, Well};
use crate::ask::Consent;
use crate::failure::{Exit, Failure, Result};
use crate::typed::{entry, one_of};

/// Follows agents that Stepwell does not run itself.
///
/// An agent's session begins in phase initializing and moves through investigating,
/// planning, approval, executing and validating to completed, failed or abandoned. In
/// investigating, planning and approval it can be resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Begins a session and prints its id.
    Create {
        /// The agent's name.
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// What it is to do.
        #[arg(long)]
        purpose: String,
        #[command(flatten)]
        metadata: Metadata,
        /// Its id, in place of a new one.
        #[arg(long)]
        id: Option<String>,
    },
    /// Records an update from the agent.
    Update {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
        /// Moves to this phase.
        #[arg(long)]
        phase: Option<String>,
        #[command(flatten)]
        metadata: Metadata,
        /// Counts an error.
        #[arg(long, value_name = "TEXT")]
        error: Option<String>,
        /// Says that it can be resumed.
        #[arg(long, conflicts_with = "not_ready")]
        ready: bool,
        /// Says that it cannot.
        #[arg(long)]
        not_ready: bool,
        /// Counts that it was resumed; hook pre-delegate does so by itself.
        #[arg(long)]
        resumed: bool,
    },
    /// Prints a session as JSON.
    Get {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Says whether a session can be resumed; the exit code is 0 or 1.
    ShouldResume {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Ends a session.
    Finalize {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
        /// How it ended.
        #[arg(value_parser = one_of(OUTCOMES))]
        outcome: Outcome,
        /// A summary of what it did.
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        /// What went wrong; counts as an error.
        #[arg(long, value_name = "TEXT")]
        error: Option<String>,
    },
    /// Records turns of the agent's conversation.
    Say {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
        /// What was said; - reads it from stdin. Without it, each line of stdin is
        /// {"role": …, "text": …}, whose text may be a list of the blocks text, tool_use and
        /// tool_result. All lines are recorded, or none.
        text: Option<String>,
        /// Who said it; of lines, those that name nobody. A TEXT without it is the assistant's.
        #[arg(long, value_parser = one_of(SPEAKERS))]
        role: Option<Speaker>,
    },
    /// Shows the last turns of the agent's conversation.
    Turns {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
        /// How many. Default: agent.shown_turns.
        #[arg(long, short = 'n', value_name = "N")]
        limit: Option<usize>,
    },
    /// Lists agents' sessions, newest first.
    List {
        /// Only sessions that have not ended.
        #[arg(long)]
        active_only: bool,
        /// Only sessions of this agent.
        #[arg(long)]
        agent: Option<String>,
        /// Only sessions updated at or after this time: 2026-02-23, 7d, yesterday.
        #[arg(long, value_name = "WHEN")]
        since: Option<When>,
        /// Only sessions updated before this time.
        #[arg(long, value_name = "WHEN")]
        until: Option<When>,
    },
    /// Moves inactive agents' sessions to the trash.
    Cleanup {
        /// After this many hours. Default: agent.cleanup_after_hours.
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        hours: Option<u32>,
        /// Only shows what would be removed.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

/// How an agent ended, as it is typed.
const OUTCOMES: &[(&str, Outcome)] = &[
    ("completed", Outcome::Completed),
    ("failed", Outcome::Failed),
    ("abandoned", Outcome::Abandoned),
];

/// Who says a turn.
const SPEAKERS: &[(&str, Speaker)] =
    &[("user", Speaker::User), ("assistant", Speaker::Assistant), ("system", Speaker::System)];

/// Turns from lines of stdin.
fn turns_of_stdin(usual: Option<Speaker>) -> Result<Vec<Message>> {
    lifecycle::read_turns(std::io::stdin().lock(), usual).map_err(|error| match error {
        NoTurns::Line { line, why } => {
            let message = format!("line {line} of stdin is not a turn: {why}");
            Failure::new(Exit::Usage, message).hint(r#"{"role": "user", "text": "…"}"#)
        }
        NoTurns::None => Failure::new(Exit::Usage, error),
    })
}

fn turns(session: &str, limit: Option<usize>, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(session, Access::Read)?;
    let shown = usize::try_from(app.config.settings.agent_turns.get()).unwrap_or(usize::MAX);
    for turn in lifecycle::turns(&well, &id, limit.unwrap_or(shown))? {
        let role = word(turn.role);
        let line = format!("{role}: {}", indented(&turn.text, "  ").trim_start());
        app.out.answer(&AgentTurn::from(turn), line)?;
    }
    Ok(Exit::Done)
}

/// Metadata as typed.
#[derive(Debug, clap::Args)]
struct Metadata {
    /// Remembers a text; `k:=JSON` remembers any value, and null forgets the key.
    #[arg(long = "meta", value_name = "K=V", value_parser = entry)]
    pairs: Vec<(String, Value)>,
}

impl Metadata {
    fn map(&self) -> BTreeMap<String, Value> {
        self.pairs.iter().cloned().collect()
    }
}

const COLUMNS: &[Column] = &[
    left("ID"),
    left("AGENT"),
    left("PHASE"),
    left("READY"),
    right("ERRORS"),
    left("UPDATED"),
    left("PURPOSE"),
];

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        Action::Create { agent, purpose, metadata, id } => {
            let id = id.as_ref().map(|id| id.parse()).transpose().map_err(Error::from)?;
            let well = app.make()?;
            let made = || well.new_id_like(IdFormat::Agent);
            let id = match app.config.settings.agent_ids {
                AgentIds::Agent => Some(id.unwrap_or_else(made)),
                AgentIds::Sessions => id,
            };
            let begin = Begin {
                id,
                agent: agent.clone(),
                purpose: purpose.clone(),
                workspace: app.place.root.display().to_string(),
                metadata: metadata.map(),
            };
            let id = lifecycle::create(&well, begin)?;
            app.out.answer(&AgentCreated { agent_id: id.clone() }, &id)?;
            tidy(app, &well);
            Ok(Exit::Done)
        }
        Action::Update { session, phase, metadata, error, ready, not_ready, resumed } => {
            let update = Update {
                phase: phase.as_deref().map(lifecycle::phase).transpose()?,
                metadata: metadata.map(),
                error: error.clone(),
                ready: (*ready || *not_ready).then_some(*ready),
                ..Update::default()
            };
            let (well, id) = app.session(session, Access::Write)?;
            if *resumed {
                lifecycle::count_resume(&well, &id)?;
            }
            lifecycle::update(&well, &id, update)?;
            told(&well, &id, app)
        }
        Action::Get { session } => {
            let (well, id) = app.session(session, Access::Read)?;
            app.out.object(&Agent::from(lifecycle::read(&well, &id)?))?;
            Ok(Exit::Done)
        }
        Action::ShouldResume { session } => should_resume(session, app),
        Action::Finalize { session, outcome, summary, error } => {
            let (well, id) = app.session(session, Access::Write)?;
            let said = Said { metadata: lifecycle::summary(summary.clone()), error: error.clone() };
            if let Finalized::Otherwise(phase) = lifecycle::finalize(&well, &id, *outcome, said)? {
                return Err(lifecycle::is_final(&id, phase).into());
            }
            told(&well, &id, app)
        }
        Action::Say { session, text, role } => {
            let turns = match text {
                Some(text) => {
                    let text = crate::typed::task(text.clone())?;
                    let role = role.unwrap_or(Speaker::Assistant);
                    vec![role.says(text.trim_end_matches('\n'))]
                }
                None => turns_of_stdin(*role)?,
            };
            let (well, id) = app.session(session, Access::Write)?;
            let redactor = app.runtime().typed_redactor()?;
            let plain = turns.into_iter().map(|turn| redactor.redact_message(turn).0).collect();
            lifecycle::say(&well, &id, plain)?;
            told(&well, &id, app)
        }
        Action::Turns { session, limit } => turns(session, *limit, app),
        Action::List { active_only, agent, since, until } => {
            let now = app.look()?.map_or_else(|| app.now(), |well| well.now());
            let (since, until) = (since.map(|it| it.resolve(now)), until.map(|it| it.resolve(now)));
            let (driver, agent) = (Some(Driver::External), agent.clone());
            list(*active_only, Filter { driver, agent, since, until, ..Filter::default() }, app)
        }
        Action::Cleanup { hours, dry_run, consent } => {
            let hours = hours.unwrap_or_else(|| cleanup_hours(app));
            let older_than = Some(Duration::from_secs(u64::from(hours) * 3600));
            let driver = Some(Driver::External);
            let silence = app.config.settings.resume_timeout;
            let policy = Policy { older_than, driver, silence, ..Policy::default() };
            let (dry_run, consent) = (*dry_run, *consent);
            let (fate, whose) = (Fate::Trash, Whose::Mine);
            clean(&policy, Mode { dry_run, fate, whose, consent }, app)
        }
    }
}

/// The configured age of what a cleanup takes.
fn cleanup_hours(app: &App) -> u32 {
    let own = app.config.settings.agent_cleanup_hours.get();
    let (key, by_hand) = ("agent.cleanup_after_hours", "agent cleanup --hours");
    tell_of_ignored(&ShorterAge { key, own, unit: "hours", by_hand }, app);
    own
}

/// Says where the session is now.
fn told(well: &Well, id: &SessionId, app: &mut App) -> Result<Exit> {
    let phase = well.info(id)?.head.phase.map_or("", Phase::as_str);
    match app.out.is_json() {
        true => app.out.object(&Agent::from(lifecycle::read(well, id)?))?,
        false => app.out.line(format_args!("{id} {phase}"))?,
    }
    tidy(app, well);
    Ok(Exit::Done)
}

fn should_resume(name: &str, app: &mut App) -> Result<Exit> {
    let limits = app.resume_limits();
    let decision = match app.look()? {
        None => ResumeDecision::of(None, app.now(), limits),
        Some(well) => match well.find(name) {
            Ok(id) => well.resume_decision(&id, limits)?,
            Err(Error::NoMatch(_)) => ResumeDecision::of(None, well.now(), limits),
            Err(error) => return Err(error.into()),
        },
    };
    let line = format!("{} {}", decision.should_resume, word(decision.reason));
    app.out.answer(&decision, line)?;
    Ok(if decision.should_resume { Exit::Done } else { Exit::Failed })
}

fn list(active_only: bool, filter: Filter, app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    let (mut found, mut damaged) = (false, false);
    if let Some(well) = app.look()? {
        for info in well.sessions(Query { filter, ..Query::default() }) {
            let info = info?;
            let head = &info.head;
            let ended = head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase));
            if active_only && (ended || info.damage.is_some()) {
                continue;
            }
            found = true;
            if app.out.is_json() {
                // One that cannot be read hides no other.
                match (&info.damage, lifecycle::read(&well, &head.id)) {
                    (None, Ok(agent)) => app.out.object(&Agent::from(agent))?,
                    (damage, read) => {
                        damaged = true;
                        let what = damage.as_ref().map(|damage| damage.what.clone());
                        let what = what.or_else(|| read.err().map(|failure| failure.to_string()));
                        let (agent_id, damage) = (head.id.clone(), what.unwrap_or_default());
                        app.out.object(&AgentUnreadable { agent_id, damage })?;
                    }
                }
                continue;
            }
            damaged |= info.damage.is_some();
            let phase = match &info.damage {
                Some(_) => "damaged",
                None => head.phase.map_or("-", Phase::as_str),
            };
            table.push(vec![
                head.id.to_string().into(),
                one_line(&head.agent).into(),
                phase.into(),
                if head.ready { "yes" } else { "no" }.into(),
                head.errors.to_string().into(),
                ago(head.updated_at, well.now()).into(),
                one_line(&head.task).into(),
            ]);
        }
    }
    let exit = if damaged { Exit::Damaged } else { Exit::Done };
    if app.out.is_json() {
        return Ok(exit);
    }
    if !found {
        app.out.line("No agents' sessions.")?;
        return Ok(Exit::Done);
    }
    app.print(&table)?;
    Ok(exit)
}
