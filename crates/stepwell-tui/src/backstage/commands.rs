//! Commands: each is carried out on a thread of its own, and its answer put into words.

use std::path::PathBuf;
use std::sync::Arc;

use stepwell::SessionId;
use stepwell_runtime::command::{Command, ImportRequest, Reply as Answer};
use stepwell_runtime::detached::{DetachedAnswer, DetachedResume, Work};
use stepwell_runtime::{FlowOptions, Interrupt, Runtime};
use stepwell_terminal::Paint;
use stepwell_terminal::reply::{Rendered, Style, words};

use super::Program;
use crate::clean::Clean;
use crate::driver::Inputs;
use crate::effect::{Input, Outcome, Ran, Reply, Visit};
use crate::from_runtime::explained;

/// Carries a command out.
pub(super) fn run(runtime: &Runtime, command: Command, visit: Visit, inputs: &Inputs) {
    let (runtime, inputs) = (runtime.clone(), inputs.clone());
    std::thread::spawn(move || {
        let outcome = carry_out(&runtime, command.clone());
        let _ = inputs.send(Input::Reply(Reply::Ran(Box::new(Ran { command, visit, outcome }))));
    });
}

fn carry_out(runtime: &Runtime, command: Command) -> Outcome {
    let reply = match runtime.run(command, &Interrupt::default()) {
        Ok(reply) => reply,
        Err(error) => {
            let (why, hint) = explained(&error);
            return Outcome::Failed { why, hint };
        }
    };
    let redactor = runtime.workspace().redactor().with_own_count();
    // The answer is shown two columns in.
    let columns = crossterm::terminal::size().ok();
    let columns = columns.map(|(columns, _)| usize::from(columns.saturating_sub(2)));
    let now = runtime.workspace().now();
    let style = Style { paint: Paint::Plain, columns, redactor: redactor.clone(), now };
    let Rendered { lines, mut notes, hints, refused } = words(&reply, &style);
    notes.extend(hints);
    let clean = |lines: &[String]| {
        let each = lines.iter().map(|line| format!("{}\n", redactor.redact(line)));
        Clean::new(&each.collect::<String>())
    };
    match refused {
        None => Outcome::Done { reply: Arc::new(reply), text: clean(&lines), notes: clean(&notes) },
        Some(refusal) => {
            let why = format!("{}{}", clean(&notes), redactor.redact(&refusal.why.message));
            let hint = refusal.why.hint.map(|hint| Clean::new(&redactor.redact(&hint)));
            Outcome::Failed { why: Clean::new(&why), hint }
        }
    }
}

/// Imports a session of another agent, to be opened.
pub(super) fn import(
    runtime: &Runtime,
    path: PathBuf,
    (session, visit): (SessionId, Visit),
    inputs: &Inputs,
) {
    let (runtime, inputs) = (runtime.clone(), inputs.clone());
    std::thread::spawn(move || {
        let reply = match carry_out(&runtime, Command::Import(ImportRequest::of(path))) {
            Outcome::Done { reply, .. } if brought(&reply, &session) => {
                Reply::Imported { session, visit }
            }
            Outcome::Done { notes, .. } => Reply::Failed { why: notes, hint: None },
            Outcome::Failed { why, hint } => Reply::Failed { why, hint },
        };
        let _ = inputs.send(Input::Reply(reply));
    });
}

/// Is a session here after an import?
fn brought(reply: &Answer, session: &SessionId) -> bool {
    let Answer::Imported(report) = reply else { return false };
    let sessions = report.places.iter().flat_map(|place| &place.report.sessions);
    { sessions }.any(|taken| taken.id == *session)
}

/// Goes on with a session in the background.
pub(super) fn go_on_detached(
    program: &Program,
    runtime: &Runtime,
    session: SessionId,
    inputs: &Inputs,
) {
    let (launcher, inputs) = ((program.launcher)(runtime.workspace()), inputs.clone());
    std::thread::spawn(move || {
        let (options, flow) = (Default::default(), FlowOptions::default());
        let work = Work::Resume(DetachedResume { session, say: None, answer: None, options, flow });
        let not = |why: &str, hint: Option<String>| Reply::NotDetached {
            why: Clean::new(why),
            hint: hint.map(|hint| Clean::new(&hint)),
        };
        let reply = match launcher.and_then(|launcher| launcher.start(&work.into())) {
            Ok(DetachedAnswer::Started { .. } | DetachedAnswer::GoesOnElsewhere { .. }) => {
                Reply::Detached
            }
            Ok(DetachedAnswer::Done(_)) => not("nothing was started", None),
            Ok(DetachedAnswer::Failed { message, hint, .. }) => not(&message, hint),
            Err(error) => not(&error.to_string(), None),
        };
        let _ = inputs.send(Input::Reply(reply));
    });
}
