use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use stepwell::{
    Access, Driver, Error, Filter, Phase, PhaseSet, Policy, Query, ResumeDecision, SessionId,
};

use super::cleanup::{Mode, clean};
use crate::app::{App, Go, Well, each_session};
use crate::ask::Consent;
use crate::failure::{Exit, Result};
use crate::housekeeping::tidy;
use crate::lifecycle::{self, Begin, Finalized, Outcome, Update};
use crate::table::{Align, Column, Table};
use crate::text::{ago, one_line};
use crate::wire::word;

/// Follows agents that Stepwell does not run itself.
///
/// An agent's session begins in phase initializing and moves through investigating,
/// planning, approval, executing and validating to completed, failed or abandoned. In
/// investigating, planning and approval it can be taken up again.
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
    /// Records what the agent tells of itself.
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
        /// Says that it can be taken up again.
        #[arg(long, conflicts_with = "not_ready")]
        ready: bool,
        /// Says that it cannot.
        #[arg(long)]
        not_ready: bool,
    },
    /// Prints a session as JSON.
    Get {
        /// The session.
        #[arg(value_name = "ID")]
        session: String,
    },
    /// Says whether a session can be taken up again; the exit code is 0 or 1.
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
        #[arg(value_enum)]
        outcome: Outcome,
        /// Its last word.
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
    },
    /// Lists agents' sessions, newest first.
    List {
        /// Only those that have not ended.
        #[arg(long)]
        active_only: bool,
        /// Only this agent's.
        #[arg(long)]
        agent: Option<String>,
    },
    /// Moves agents' sessions without activity for so long to the trash.
    Cleanup {
        /// After so many hours.
        #[arg(long, value_name = "N", default_value_t = 24, allow_negative_numbers = true)]
        hours: u32,
        /// Only shows what would go.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Metadata as typed.
#[derive(Debug, clap::Args)]
struct Metadata {
    /// Remembers a text; `k:=JSON` remembers any value, and null forgets the key.
    #[arg(long = "meta", value_name = "K=V", value_parser = pair)]
    pairs: Vec<(String, Value)>,
}

impl Metadata {
    fn map(&self) -> BTreeMap<String, Value> {
        self.pairs.iter().cloned().collect()
    }
}

fn pair(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("use K=V, or K:=JSON")?;
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let value =
                serde_json::from_str(value).map_err(|error| format!("not JSON: {error}"))?;
            (name, value)
        }
        None => (name, Value::from(value)),
    };
    if name.is_empty() {
        return Err("the key is empty".to_owned());
    }
    Ok((name.to_owned(), value))
}

const COLUMNS: &[Column] = &[
    Column { name: "ID", align: Align::Left },
    Column { name: "AGENT", align: Align::Left },
    Column { name: "PHASE", align: Align::Left },
    Column { name: "READY", align: Align::Left },
    Column { name: "ERRORS", align: Align::Right },
    Column { name: "UPDATED", align: Align::Left },
    Column { name: "PURPOSE", align: Align::Left },
];

/// An agent whose session is damaged.
#[derive(Serialize)]
struct Unreadable<'a> {
    agent_id: &'a SessionId,
    damage: &'a str,
}

#[derive(Serialize)]
struct Made<'a> {
    agent_id: &'a SessionId,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    match &args.action {
        Action::Create { agent, purpose, metadata, id } => {
            let id = id.as_ref().map(|id| id.parse()).transpose().map_err(Error::from)?;
            let begin = Begin {
                id,
                agent: agent.clone(),
                purpose: purpose.clone(),
                workspace: app.place.root.display().to_string(),
                metadata: metadata.map(),
            };
            let well = app.make()?;
            let id = lifecycle::create(&well, begin)?;
            app.out.answer(&Made { agent_id: &id }, &id)?;
            tidy(app, &well)?;
            Ok(Exit::Done)
        }
        Action::Update { session, phase, metadata, error, ready, not_ready } => {
            let update = Update {
                phase: phase.as_deref().map(lifecycle::phase).transpose()?,
                metadata: metadata.map(),
                error: error.clone(),
                ready: (*ready || *not_ready).then_some(*ready),
            };
            let (well, id) = app.session(session, Access::Write)?;
            lifecycle::update(&well, &id, update)?;
            told(&well, &id, app)
        }
        Action::Get { session } => {
            let (well, id) = app.session(session, Access::Read)?;
            app.out.object(&lifecycle::read(&well, &id)?)?;
            Ok(Exit::Done)
        }
        Action::ShouldResume { session } => should_resume(session, app),
        Action::Finalize { session, outcome, summary } => {
            let (well, id) = app.session(session, Access::Write)?;
            let summary = lifecycle::summary(summary.clone());
            if let Finalized::Otherwise(phase) = lifecycle::finalize(&well, &id, *outcome, summary)?
            {
                return Err(lifecycle::is_final(&id, phase));
            }
            told(&well, &id, app)
        }
        Action::List { active_only, agent } => list(*active_only, agent.clone(), app),
        Action::Cleanup { hours, dry_run, consent } => {
            let older_than = Some(Duration::from_secs(u64::from(*hours) * 3600));
            let driver = Some(Driver::External);
            let silence = app.config.settings.resume_timeout;
            let policy = Policy { older_than, driver, silence, ..Policy::default() };
            clean(&policy, Mode { dry_run: *dry_run, consent: *consent }, app)
        }
    }
}

/// Says where the session is now.
fn told(well: &Well, id: &SessionId, app: &mut App) -> Result<Exit> {
    let phase = well.standing(id)?.head.phase.map_or("", Phase::as_str);
    match app.out.is_json() {
        true => app.out.object(&lifecycle::read(well, id)?)?,
        false => app.out.line(format_args!("{id} {phase}"))?,
    }
    tidy(app, well)?;
    Ok(Exit::Done)
}

fn should_resume(name: &str, app: &mut App) -> Result<Exit> {
    let limits = lifecycle::limits(app);
    let decision = match app.look()? {
        None => ResumeDecision::of(None, app.now(), limits),
        Some(well) => match well.find(name) {
            Ok(id) => well.resume_decision(&id, limits)?,
            Err(Error::NoMatch(_)) => ResumeDecision::of(None, app.now(), limits),
            Err(error) => return Err(error.into()),
        },
    };
    let line = format!("{} {}", decision.should_resume, word(decision.reason));
    app.out.answer(&decision, line)?;
    Ok(if decision.should_resume { Exit::Done } else { Exit::Failed })
}

fn list(active_only: bool, agent: Option<String>, app: &mut App) -> Result<Exit> {
    let mut table = Table::new(COLUMNS);
    let (mut found, mut damaged) = (false, false);
    if let Some(well) = app.look()? {
        let filter = Filter { driver: Some(Driver::External), agent, ..Filter::default() };
        each_session(&well, Query { filter, ..Query::default() }, |standing| {
            let head = &standing.head;
            let ended = head.phase.is_some_and(|phase| PhaseSet::Lifecycle.is_final(phase));
            if active_only && (ended || standing.damage.is_some()) {
                return Ok(Go::On);
            }
            found = true;
            if app.out.is_json() {
                // One that cannot be read hides no other.
                match (&standing.damage, lifecycle::read(&well, &head.id)) {
                    (None, Ok(agent)) => app.out.object(&agent)?,
                    (damage, read) => {
                        damaged = true;
                        let what = damage.as_ref().map(|damage| damage.what.clone());
                        let what = what.or_else(|| read.err().map(|failure| failure.to_string()));
                        let what = what.unwrap_or_default();
                        app.out.object(&Unreadable { agent_id: &head.id, damage: &what })?;
                    }
                }
                return Ok(Go::On);
            }
            damaged |= standing.damage.is_some();
            let phase = match &standing.damage {
                Some(_) => "damaged",
                None => head.phase.map_or("-", Phase::as_str),
            };
            table.push(vec![
                head.id.to_string().into(),
                one_line(&head.agent).into(),
                phase.into(),
                if head.ready { "yes" } else { "no" }.into(),
                head.errors.to_string().into(),
                ago(head.updated_at, app.now()).into(),
                one_line(&head.task).into(),
            ]);
            Ok(Go::On)
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_text_unless_it_says_that_it_is_json() {
        assert_eq!(pair("n=1.10"), Ok(("n".into(), Value::from("1.10"))));
        assert_eq!(pair("n:=1.5"), Ok(("n".into(), Value::from(1.5))));
        assert_eq!(pair("tags:=[\"a\"]"), Ok(("tags".into(), serde_json::json!(["a"]))));
        assert_eq!(pair("a=b=c"), Ok(("a".into(), Value::from("b=c"))));
        assert_eq!(pair("gone:=null"), Ok(("gone".into(), Value::Null)));
        for wrong in ["", "x", "=1", ":=1", "n:=nonsense"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
