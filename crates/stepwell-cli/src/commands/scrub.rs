use regex::Regex;
use serde_json::Value;
use stepwell::{
    Access, Digest, Event, FileState, Filter, Lane, Place, Query, Recorded, Scrub, Seq, SessionId,
    Span, Standing,
};
use stepwell_wire::Scrubbed;
use stepwell_workspace::atomic_file::replace_users_file;

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

/// What stands in the place of a lane's name, in which brackets are not allowed.
const ERASED_NAME: &str = "scrubbed";

/// What is to be erased in one session.
struct Found {
    id: SessionId,
    trashed: bool,
    events: usize,
    /// Events that match but are kept in another session.
    shared: usize,
    /// Why it could not be looked into, as a whole or in part.
    unseen: Option<String>,
}

/// How often sessions are looked at again for what came while others were scrubbed.
const PASSES: usize = 10;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let pattern = compile(args)?;
    let rule = args.rule.clone().unwrap_or_else(|| {
        // A pattern may be the secret itself; its digest tells two scrubs apart.
        format!("pattern {}", &Digest::of(args.pattern.as_bytes()).to_string()[..8])
    });
    let mut found = look(args, &pattern, app)?;
    let matching = |found: &[Found]| found.iter().map(|found| found.events).sum::<usize>();
    let in_logs = logs(app, &pattern, Logs::Look)?;
    let erased = matching(&found);
    if erased > 0 || in_logs > 0 {
        for found in found.iter().filter(|found| found.events > 0) {
            let place = if found.trashed { " (in the trash)" } else { "" };
            note(format_args!("{}{place}: {}", found.id, count(found.events, "event")));
        }
        if in_logs > 0 {
            note(format_args!("the hooks' log: {}", count(in_logs, "line")));
        }
        let what = count(erased + in_logs, "place");
        args.consent.ask(
            app,
            &format!("Erase the matches in {what} for good?"),
            Unasked::Refuse,
        )?;
        let well = app.existing(Access::Write)?;
        for _ in 0..PASSES {
            for found in found.iter().filter(|found| found.events > 0) {
                erase(&well, found, &pattern, &rule, app)?;
            }
            // What was recorded meanwhile is looked at as well.
            found = look(args, &pattern, app)?;
            if matching(&found) == 0 {
                break;
            }
        }
        logs(app, &pattern, Logs::Erase)?;
    }
    conclude(&found, erased + in_logs, app)
}

fn compile(args: &Args) -> Result<Regex> {
    let pattern = if args.fixed { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let pattern = Regex::new(&pattern).map_err(|error| {
        Failure::new(Exit::Usage, format_args!("the pattern is wrong: {error}"))
    })?;
    if pattern.is_match("") {
        return Err(Failure::new(Exit::Usage, "the pattern matches everything, even nothing"));
    }
    if pattern.is_match(ERASED) {
        let message = format!("the pattern matches {ERASED}, which stands for what was erased");
        return Err(Failure::new(Exit::Usage, message));
    }
    if args.rule.as_ref().is_some_and(|rule| pattern.is_match(rule)) {
        return Err(Failure::new(Exit::Usage, "the rule, which is recorded, matches the pattern"));
    }
    Ok(pattern)
}

/// Says what could not be erased. That something matches nothing is only said if all of it
/// was seen.
fn conclude(found: &[Found], erased: usize, app: &mut App) -> Result<Exit> {
    let mut unseen = false;
    for Found { id, unseen: why, .. } in found {
        if let Some(why) = why {
            unseen = true;
            note(format_args!(
                "error: {id} was not scrubbed: {why}; stepwell purge {id} erases it"
            ));
        }
    }
    if unseen {
        return Ok(Exit::Damaged);
    }
    let left: usize = found.iter().map(|found| found.events).sum();
    if left > 0 {
        let message =
            format!("{} still match: they are written faster than erased", count(left, "event"));
        return Err(Failure::new(Exit::Busy, message));
    }
    let shared: usize = found.iter().map(|found| found.shared).sum();
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
    if let Some(name) = &args.session {
        let (well, id) = app.session_in(Place::Anywhere, name, Access::Read)?;
        let standing = well.standing(&id)?;
        found.push(matches(&well, &standing, Seq::FIRST, pattern)?);
    } else if let Some(well) = app.look()? {
        let filter = Filter { place: Place::Anywhere, ..Filter::default() };
        each_session(&well, Query { filter, ..Query::default() }, |standing| {
            found.push(matches(&well, &standing, standing.own_from, pattern)?);
            Ok(Go::On)
        })?;
    }
    Ok(found)
}

fn matches(well: &Well, standing: &Standing, from: Seq, pattern: &Regex) -> Result<Found> {
    let id = standing.head.id.clone();
    let trashed = standing.trashed_at.is_some();
    let mut found = Found { id: id.clone(), trashed, events: 0, shared: 0, unseen: None };
    let damage = each_event(well, &id, Span { from, ..Span::ALL }, |event| {
        match scrubbed(well, &event, pattern) {
            Ok(None) => {}
            Ok(Some(_)) if event.seq < standing.own_from => found.shared += 1,
            Ok(Some(_)) => found.events += 1,
            Err(failure) => found.unseen = Some(failure.to_string()),
        }
        Ok(())
    })?;
    if let Some(damage) = damage.or_else(|| standing.damage.clone()) {
        found.unseen = Some(format!("it is damaged at seq {}", damage.seq));
    }
    // A session that cannot be scrubbed as a whole is not scrubbed at all.
    if found.unseen.is_some() {
        found.events = 0;
    }
    Ok(found)
}

fn erase(well: &Well, found: &Found, pattern: &Regex, rule: &str, app: &mut App) -> Result<()> {
    // The lease keeps others from writing while what matches is read again.
    let held = if found.trashed { None } else { Some(well.hold(&found.id)?) };
    let from = well.standing(&found.id)?.own_from;
    let mut replacements = Vec::new();
    let damage = each_event(well, &found.id, Span { from, ..Span::ALL }, |event| {
        if let Some(scrubbed) = scrubbed(well, &event, pattern)? {
            replacements.push((scrubbed.seq, scrubbed.event));
        }
        Ok(())
    })?;
    if let Some(damage) = damage {
        return Err(damage.into_error(&found.id).into());
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
    app.out.answer(&Scrubbed { session: found.id.clone(), events, scrubbed_at: seq }, line)
}

/// What is done about the hooks' logs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Logs {
    Look,
    Erase,
}

/// The hooks' logs, which name agents: how many lines of them match.
fn logs(app: &App, pattern: &Regex, what: Logs) -> Result<usize> {
    let mut lines = 0;
    for name in ["hooks.log", "hooks.log.1"] {
        let path = app.place.store.join(name);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let matching = text.lines().filter(|line| pattern.is_match(line)).count();
        lines += matching;
        if matching > 0 && what == Logs::Erase {
            let scrubbed = pattern.replace_all(&text, ERASED);
            replace_users_file(&path, &scrubbed)
                .map_err(|error| Failure::file(&path, "scrubbing it", &error))?;
        }
    }
    Ok(lines)
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
    let mut changed = replace(&mut value["body"], &event.event, whose, "", pattern);
    let mut scrubbed: Recorded = serde_json::from_value(value).map_err(fault)?;
    if let Event::File(file) = &mut scrubbed.event {
        for state in [&mut file.before, &mut file.after] {
            changed |= forget(well, state, pattern)?;
        }
    }
    // Whatever another program keeps in a blob: one that matches goes as a whole.
    if let Event::Record(record) = &mut scrubbed.event {
        let mut kept = Vec::with_capacity(record.blobs.len());
        for blob in &record.blobs {
            if !blob_matches(well, blob, pattern)? {
                kept.push(*blob);
            }
        }
        changed |= kept.len() < record.blobs.len();
        record.blobs = kept;
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

/// Replaces matches in every text of a body; `path` is where in it this value stands. Says
/// whether there were any.
fn replace(value: &mut Value, event: &Event, fields: Fields, path: &str, pattern: &Regex) -> bool {
    match value {
        // The lane that every session has is our word.
        Value::String(text) if path == "lane" && text == Lane::main().as_str() => false,
        Value::String(text) if pattern.is_match(text) => {
            let erased = if path == "lane" { ERASED_NAME } else { ERASED };
            *text = pattern.replace_all(text, erased).into_owned();
            true
        }
        // A number of the user's may be what is to be erased; ours count things.
        Value::Number(number)
            if fields == Fields::Users && pattern.is_match(&number.to_string()) =>
        {
            *value = ERASED.into();
            true
        }
        Value::Array(values) => {
            values.iter_mut().fold(false, |any, it| replace(it, event, fields, path, pattern) | any)
        }
        Value::Object(entries) => {
            let mut changed = false;
            for (name, mut value) in std::mem::take(entries) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let key = match fields {
                    Fields::Ours => name.clone(),
                    Fields::Users => pattern.replace_all(&name, ERASED).into_owned(),
                };
                let below = if holds_users(event, &path) { Fields::Users } else { fields };
                if fields == Fields::Users || !is_structure(event, &path) {
                    changed |= replace(&mut value, event, below, &path, pattern);
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
fn holds_users(event: &Event, path: &str) -> bool {
    match event {
        Event::Created(_) => matches!(path, "flow.variables" | "project.answers"),
        Event::Edited(_) | Event::Checkpoint(_) => path == "metadata",
        Event::Node(_) => path == "output",
        _ => false,
    }
}

/// Fields of ours that say how a record hangs together, not what anyone said.
fn is_structure(event: &Event, path: &str) -> bool {
    let fields: &[&str] = match event {
        Event::Created(_) => {
            &["id", "driver", "phases", "origin", "flow.hash", "source.started_at"]
        }
        Event::Message(_) => &["role", "cost", "call.asked_at", "call.first_at"],
        Event::Compacted(_) => &["cost"],
        Event::ToolStarted(_) => {
            &["effect", "arguments", "targets.before", "targets.after", "child"]
        }
        Event::ToolFinished(_) => &["outcome"],
        Event::Status(_) => &["status", "reason"],
        Event::Phase(_) => &["from", "to"],
        Event::File(_) => &[
            "before.file",
            "after.file",
            "before.not_captured.digest",
            "after.not_captured.digest",
        ],
        Event::Node(_) => &["state"],
        Event::Gate(_) => &["deadline"],
        Event::Checkpoint(_) => &["reason"],
        Event::Rewinding(_) => &["begun.to", "begun.scope", "begun.undoes", "dropped.of"],
        Event::Rewound(_) => &["to", "scope", "restored.phase"],
        Event::Undone(_) => &["rewind.of", "rewind.scope", "rewind.restored.phase"],
        Event::Scrubbed(_) => &["erased", "pruned", "hidden"],
        Event::Artifact(_) => &["digest"],
        Event::Task(_) => &["status"],
        Event::Edited(_) => &["budget", "elsewhere.cost"],
        Event::Foreign(_) => &["about"],
        Event::GateAnswered(_) => &["answer.allow.scope"],
        Event::Settings(_) => &["mode"],
        Event::Record(_) => &["system", "topic", "blobs"],
        _ => &[],
    };
    fields.contains(&path)
}

fn blob_matches(well: &Well, blob: &Digest, pattern: &Regex) -> Result<bool> {
    let bytes = well.store().blob(blob)?;
    Ok(pattern.is_match(&String::from_utf8_lossy(&bytes)))
}

/// Forgets a file's contents if they match.
fn forget(well: &Well, state: &mut FileState, pattern: &Regex) -> Result<bool> {
    let FileState::File { blob, .. } = state else { return Ok(false) };
    if !blob_matches(well, blob, pattern)? {
        return Ok(false);
    }
    *state = FileState::NotCaptured { digest: Some(*blob), why: "scrubbed".to_owned() };
    Ok(true)
}
