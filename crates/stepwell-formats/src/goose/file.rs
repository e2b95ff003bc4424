//! Sessions of goose in files: one of lines, as it kept them before, and its export.

use stepwell::model::Time;

use super::telling::{Row, Session, attributes, opening, seconds};
use crate::json::fields::{Fields, elements};
use crate::read::input::Input;
use crate::read::neutral::{Sink, Wanted, Warning};
use crate::{Error, Result};

/// How many lines are looked at for what was asked.
const MAX_FRONT: usize = 50;

/// Reads a file of lines: first what is known of the session, then its messages.
pub(super) fn read_lines(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let path = input.root();
    let mut lines = input.lines(path)?;
    let first = lines.next_line()?.ok_or_else(|| fault(input, "it is empty"))?;
    let mended = first.mended();
    let (text, about) = match mended.as_deref().map(|text| (text, Fields::parse(text))) {
        Some((text, Ok(about))) => (text, about),
        _ => first.object().map_err(|why| fault(input, &why))?,
    };
    let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (asked, began) = front(input)?;
    let mut opening = opening(id, &about, asked);
    // Older versions do not say when it began.
    opening.started_at = opening.started_at.or(began);
    let attributes = attributes(&about);
    opening.file = Some(path.to_owned());
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    let provider = about.text("provider_name").unwrap_or_default().into_owned();
    // The line lasts until the next one is read.
    let told_of = text.to_owned();
    let mut session = Session::new(sink, &provider);
    let mut faults = Vec::new();
    while let Some(line) = lines.next_line()? {
        match line.object() {
            Ok((_, message)) => emit(&mut session, &message)?,
            Err(what) if faults.len() < 100 => faults.push((line.number, what)),
            Err(_) => {}
        }
    }
    session.end(&told_of, attributes)?;
    for (number, what) in faults {
        sink.warn(Warning { place: format!("{}, line {number}", path.display()), what });
    }
    Ok(())
}

/// Reads what `goose session export` wrote.
pub(super) fn read_export(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let text = input.text(input.root())?;
    let about = Fields::parse(&text).map_err(|error| fault(input, &error.to_string()))?;
    let id = about.text("id").unwrap_or_default();
    let messages = elements(about.raw("conversation").unwrap_or("[]"))
        .map_err(|error| fault(input, &error.to_string()))?;
    let task = messages.iter().find_map(|raw| asked(&Fields::parse(raw).ok()?));
    let mut opening = opening(&id, &about, task.unwrap_or_default());
    opening.file = Some(input.root().to_owned());
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    let provider = about.text("provider_name").unwrap_or_default();
    let mut session = Session::new(sink, &provider);
    for raw in messages {
        emit(&mut session, &Fields::parse(raw).unwrap_or_default())?;
    }
    session.end(&about.rewritten(&[("conversation", None)]), attributes(&about))
}

fn emit(session: &mut Session<'_>, message: &Fields<'_>) -> Result<()> {
    session.row(&Row {
        role: &message.text("role").unwrap_or_default(),
        content: message.raw("content").unwrap_or("null"),
        created: message.get("created"),
        metadata: message.raw("metadata"),
        rest: &message.rewritten(&[("content", None), ("role", None)]),
    })
}

/// What was asked first, and when something was said first.
fn front(input: &Input) -> Result<(String, Option<Time>)> {
    let (mut lines, mut began) = (input.lines(input.root())?, None);
    for _ in 0..MAX_FRONT {
        let Some(line) = lines.next_line()? else { break };
        let Ok((_, line)) = line.object() else { continue };
        began = began.or_else(|| line.get("created").and_then(seconds));
        if let Some(text) = asked(&line) {
            return Ok((text, began));
        }
    }
    Ok((String::new(), began))
}

/// What a user asked for, if the message says so.
pub(super) fn asked(message: &Fields<'_>) -> Option<String> {
    let is_user = message.text("role").as_deref() == Some("user");
    let content = super::content::read(message.raw("content")?, "").filter(|_| is_user)?;
    let text = stepwell::Message::new(stepwell::model::Role::User, content.parts).text();
    (!text.trim().is_empty()).then_some(text)
}

fn fault(input: &Input, why: &str) -> Error {
    Error::Foreign { path: input.root().to_owned(), why: why.to_owned() }
}
