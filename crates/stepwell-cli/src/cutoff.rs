//! Sessions whose process died in the middle of their work: told of once, when work begins
//! again in their workspace.

use std::collections::HashSet;
use std::fmt::Write;

use stepwell::{Driver, Family, Filter, Query, SessionId, Standing, Status, StopReason};
use stepwell_workspace::locked_file;

use crate::app::{App, Go, Well, each_session};
use crate::failure::{Failure, Result};
use crate::output::note;
use crate::text::{ago, cut, one_line};

/// How many are named; the others are counted.
const NAMED: usize = 5;

/// How much of a task is shown.
const TASK: usize = 60;

/// Tells of the sessions that were cut off and that nobody was told of, but the one that is
/// about to be taken up. Not being able to is no reason not to begin.
pub(crate) fn tell(app: &App, well: &Well, taken_up: Option<&SessionId>) {
    // A program does not read it, and a person should not miss it because one ran.
    if app.out.is_json() {
        return;
    }
    match untold(app, well, taken_up) {
        Ok(untold) if untold.is_empty() => {}
        Ok(untold) => note(notice(&untold, app)),
        Err(failure) => note(format_args!("warning: who was cut off is not known: {failure}")),
    }
}

/// The sessions that were cut off and not told of, newest first. They count as told from
/// now on.
fn untold(app: &App, well: &Well, taken_up: Option<&SessionId>) -> Result<Vec<Standing>> {
    let path = app.place.store.join("cut-off");
    let fault = |error| Failure::file(&path, "noting who was cut off", &error);
    let lock = app.place.store.join("cut-off.lock");
    let held = locked_file::lock(&lock).map_err(fault)?;
    let text = locked_file::read(&path).map_err(fault)?.unwrap_or_default();
    let told: HashSet<&str> = text.lines().collect();
    let filter = Filter {
        status: vec![Status::Interrupted],
        family: Family::Roots,
        driver: Some(Driver::Own),
        ..Filter::default()
    };
    // Only those that are cut off now are remembered, so that the file does not grow.
    let (mut untold, mut now) = (Vec::new(), String::new());
    each_session(well, Query { filter, ..Query::default() }, |standing| {
        if standing.head.stop_reason == Some(StopReason::Crashed) {
            // One that was taken up since, and is cut off again, is told of again.
            let mark = format!("{} {}", standing.head.id, standing.head.resumes);
            if !told.contains(mark.as_str()) && Some(&standing.head.id) != taken_up {
                untold.push(standing);
            }
            let _ = writeln!(now, "{mark}");
        }
        Ok(Go::On)
    })?;
    if now != text {
        held.write(&path, &now).map_err(fault)?;
    }
    Ok(untold)
}

fn notice(untold: &[Standing], app: &App) -> String {
    let mut text = match untold {
        [_] => "A session was cut off here:".to_owned(),
        all => format!("{} sessions were cut off here:", all.len()),
    };
    for standing in untold.iter().take(NAMED) {
        let head = &standing.head;
        let (when, task) = (ago(head.updated_at, app.now()), cut(&one_line(&head.task), TASK));
        text.push_str(&format!("\n  {}  {when}  {task}", head.id));
    }
    if untold.len() > NAMED {
        text.push_str("\n  and more: stepwell sessions --status interrupted");
    }
    let id = untold.first().map_or("ID", |standing| standing.head.id.as_str());
    text.push_str(&format!("\nhint: stepwell resume {id}"));
    text
}
