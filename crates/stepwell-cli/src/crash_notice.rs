//! What a person is told of sessions that crashed, when work begins again in their workspace.

use stepwell::{SessionId, Standing};

use crate::app::{App, Well};
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
    match app.unannounced_crashes(well, taken_up) {
        Ok(untold) if untold.is_empty() => {}
        Ok(untold) => note(notice(&untold, app)),
        Err(error) => note(format_args!("warning: who was cut off is not known: {error}")),
    }
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
