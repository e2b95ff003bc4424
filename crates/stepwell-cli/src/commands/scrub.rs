use regex::Regex;
use serde::Serialize;
use serde_json::Value;
use stepwell::{
    Access, Digest, Event, FileState, Filter, Place, Query, Recorded, Scrub, Seq, SessionId, Span,
    Standing,
};

use crate::app::{App, Go, Well, each_event, each_session};
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::count;

/// Erases what matches a pattern from a session, or from all, the trash included.
///
/// What was there is gone from events, files' contents and the search index; [scrubbed]
/// stands in its place, and the log says that it was scrubbed. The pattern itself is not
/// recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A regular expression.
    pattern: String,
    /// The session; without one, every session.
    session: Option<String>,
    /// Takes the pattern as it stands, not as a regular expression.
    #[arg(long, short = 'F')]
    fixed: bool,
    /// Why, for the log.
    #[arg(long, value_name = "TEXT")]
    rule: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

/// What stands in the place of what was erased.
const ERASED: &str = "[scrubbed]";

/// What is to be erased in one session.
struct Found {
    id: SessionId,
    trashed: bool,
    events: Vec<Seq>,
    /// Events that match but are kept in another session.
    shared: usize,
}

#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    events: usize,
    scrubbed_at: Seq,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let pattern = if args.fixed { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let pattern = Regex::new(&pattern).map_err(|error| {
        Failure::new(Exit::Usage, format_args!("the pattern is wrong: {error}"))
    })?;
    if pattern.is_match("") {
        return Err(Failure::new(Exit::Usage, "the pattern matches everything, even nothing"));
    }
    let found = look(args, &pattern, app)?;
    let erased: usize = found.iter().map(|found| found.events.len()).sum();
    let shared: usize = found.iter().map(|found| found.shared).sum();
    if erased > 0 {
        for found in found.iter().filter(|found| !found.events.is_empty()) {
            let place = if found.trashed { " (in the trash)" } else { "" };
            note(format_args!("{}{place}: {}", found.id, count(found.events.len(), "event")));
        }
        let question = format!("Erase the matches in {} for good?", count(erased, "event"));
        args.consent.ask(app, &question, Unasked::Refuse)?;
        let rule = args.rule.clone().unwrap_or_else(|| {
            // A pattern may be the secret itself; its digest tells two scrubs apart.
            format!("pattern {}", &Digest::of(args.pattern.as_bytes()).to_string()[..8])
        });
        let well = app.existing(Access::Write)?;
        for found in found.into_iter().filter(|found| !found.events.is_empty()) {
            erase(&well, &found, &pattern, &rule, app)?;
        }
    }
    if shared > 0 {
        let message = format!("matching events that are shared with other sessions: {shared}");
        return Err(Failure::new(Exit::Failed, message)
            .hint("stepwell scrub PATTERN, without a session, erases them where they are kept"));
    }
    if erased == 0 && !app.out.is_json() {
        app.out.line("Nothing matches.")?;
    }
    Ok(Exit::Done)
}

/// What matches, in the session that is named or in all of them.
fn look(args: &Args, pattern: &Regex, app: &App) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let Some(name) = &args.session else {
        if let Some(well) = app.look()? {
            let filter = Filter { place: Place::Anywhere, ..Filter::default() };
            each_session(&well, Query { filter, ..Query::default() }, |standing| {
                found.push(matches(&well, &standing, standing.own_from, pattern)?);
                Ok(Go::On)
            })?;
        }
        return Ok(found);
    };
    let well = app.existing(Access::Read)?;
    let id = app.find_in(&well, Place::Anywhere, name)?;
    let standing = well.standing(&id)?;
    found.push(matches(&well, &standing, Seq::FIRST, pattern)?);
    Ok(found)
}

fn matches(well: &Well, standing: &Standing, from: Seq, pattern: &Regex) -> Result<Found> {
    let id = standing.head.id.clone();
    let trashed = standing.trashed_at.is_some();
    let mut found = Found { id: id.clone(), trashed, events: Vec::new(), shared: 0 };
    let damage = each_event(well, &id, Span { from, ..Span::ALL }, |event| {
        if scrubbed(well, &event, pattern)?.is_some() {
            match event.seq < standing.own_from {
                true => found.shared += 1,
                false => found.events.push(event.seq),
            }
        }
        Ok(())
    })?;
    if let Some(damage) = damage {
        note(format_args!(
            "warning: {id} is damaged at seq {}; what lies behind cannot be looked into, \
             only purged",
            damage.seq
        ));
        found.events.clear();
    }
    Ok(found)
}

fn erase(well: &Well, found: &Found, pattern: &Regex, rule: &str, app: &mut App) -> Result<()> {
    // The lease keeps others from writing while what matched is read again.
    let held = if found.trashed { None } else { Some(well.hold(&found.id)?) };
    let mut replacements = Vec::new();
    for seq in &found.events {
        let span = Span { from: *seq, to: *seq, ..Span::ALL };
        for event in well.store().events(&found.id, span)?.intact(&found.id)? {
            if let Some(scrubbed) = scrubbed(well, &event, pattern)? {
                replacements.push((scrubbed.seq, scrubbed.event));
            }
        }
    }
    let events = replacements.len();
    let scrub = Scrub {
        session: found.id.clone(),
        epoch: held.as_ref().map(|session| session.lease().epoch),
        rule: rule.to_owned(),
        replacements,
    };
    let seq = well.store().scrub(scrub)?;
    tracing::info!(session = %found.id, events, "session_scrubbed");
    let line =
        format!("Scrubbed {} in {}, recorded at seq {seq}", count(events, "event"), found.id);
    app.out.answer(&Line { session: found.id.as_str(), events, scrubbed_at: seq }, line)
}

/// The event without what matches; nothing, if nothing does.
fn scrubbed(well: &Well, event: &Recorded, pattern: &Regex) -> Result<Option<Recorded>> {
    let (seq, kind) = (event.seq, event.event.kind().to_owned());
    let fault = |error: serde_json::Error| {
        let message = format!("event {seq} ({kind}) cannot be scrubbed: {error}");
        Failure::new(Exit::Failed, message)
    };
    let whose = match event.event {
        Event::Unknown(_) => Fields::Users,
        _ => Fields::Ours,
    };
    let mut value = serde_json::to_value(event).map_err(fault)?;
    let mut changed = replace(&mut value["body"], &event.event, whose, pattern);
    let mut scrubbed: Recorded = serde_json::from_value(value).map_err(fault)?;
    if let Event::File(file) = &mut scrubbed.event {
        for state in [&mut file.before, &mut file.after] {
            changed |= forget(well, state, pattern);
        }
    }
    Ok(changed.then_some(scrubbed))
}

/// Whose words the fields of a record are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    /// Ours: their names are fixed, and some say how records hang together.
    Ours,
    /// The user's: any of them may hold, or be, what is to be erased.
    Users,
}

/// Replaces matches in every text of a body. Says whether there were any.
fn replace(value: &mut Value, event: &Event, fields: Fields, pattern: &Regex) -> bool {
    match value {
        Value::String(text) if pattern.is_match(text) => {
            *text = pattern.replace_all(text, ERASED).into_owned();
            true
        }
        Value::Array(values) => {
            values.iter_mut().fold(false, |any, it| replace(it, event, fields, pattern) | any)
        }
        Value::Object(entries) => {
            let mut changed = false;
            for (name, mut value) in std::mem::take(entries) {
                let key = match fields {
                    Fields::Ours => name.clone(),
                    Fields::Users => pattern.replace_all(&name, ERASED).into_owned(),
                };
                let below = if holds_users(event, &name) { Fields::Users } else { fields };
                if fields == Fields::Users || !is_structure(event, &name) {
                    changed |= replace(&mut value, event, below, pattern);
                }
                changed |= key != name;
                entries.insert(key, value);
            }
            changed
        }
        _ => false,
    }
}

/// Does a field of ours hold JSON of the user's, of any shape?
fn holds_users(event: &Event, name: &str) -> bool {
    match event {
        Event::Created(_) => matches!(name, "variables" | "answers"),
        Event::Edited(_) | Event::Checkpoint(_) => name == "metadata",
        Event::Node(_) => name == "output",
        Event::Unknown(_) => true,
        _ => false,
    }
}

/// Fields of ours that say how a record hangs together, not what anyone said.
fn is_structure(event: &Event, name: &str) -> bool {
    let everywhere = [
        "lane",
        "role",
        "status",
        "reason",
        "effect",
        "outcome",
        "state",
        "scope",
        "blob",
        "digest",
        "hash",
        "phases",
        "driver",
        "origin",
        "started_at",
    ];
    let here: &[&str] = match event {
        Event::Phase(_) | Event::Scrubbed(_) | Event::Rewound(_) | Event::Undone(_) => return true,
        Event::ToolStarted(_) => &["arguments"],
        Event::Created(_) => &["id"],
        Event::Message(_) | Event::Compacted(_) => &["cost"],
        Event::Edited(_) => &["budget"],
        Event::Gate(_) => &["deadline"],
        _ => &[],
    };
    everywhere.contains(&name) || here.contains(&name)
}

/// Forgets a file's contents if they match.
fn forget(well: &Well, state: &mut FileState, pattern: &Regex) -> bool {
    let FileState::File { blob, .. } = state else { return false };
    let bytes = well.store().blob(blob).unwrap_or_default();
    if !pattern.is_match(&String::from_utf8_lossy(&bytes)) {
        return false;
    }
    *state = FileState::NotCaptured { digest: Some(*blob), why: "scrubbed".to_owned() };
    true
}
