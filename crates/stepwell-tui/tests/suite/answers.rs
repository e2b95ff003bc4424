//! Commands that the terminal wants carried out, and their answers.

use std::sync::Arc;

use stepwell::store::Removal;
use stepwell_runtime::command::{
    Command, MoveCommand, Reply as Answer, RewindTo, SessionCommand, SettingReply,
};
use stepwell_tui::{Clean, Effect, Outcome, Ran, Reply, Visit};
use stepwell_wire::Forked;

use crate::stage::id;

/// A command, typed during the first visit.
pub(crate) fn run(command: Command) -> Effect {
    Effect::Run { command, visit: Visit(1) }
}

/// A command about a session.
pub(crate) fn of(session: &str, what: SessionCommand) -> Effect {
    run(about(session, what))
}

pub(crate) fn about(session: &str, what: SessionCommand) -> Command {
    Command::Session(session.to_owned(), what)
}

pub(crate) fn point(seq: &str) -> MoveCommand {
    MoveCommand::to(RewindTo::Point(seq.to_owned()))
}

fn undo(session: &str) -> Command {
    about(session, SessionCommand::Rewind(MoveCommand::to(RewindTo::Undo)))
}

/// A command that was carried out.
pub(crate) fn ran(command: Command, answer: Answer, text: &str) -> Reply {
    let (reply, text, notes) = (Arc::new(answer), Clean::new(text), Clean::default());
    let outcome = Outcome::Done { reply, text, notes };
    Reply::Ran(Box::new(Ran { command, visit: Visit(1), outcome }))
}

/// A command that failed.
pub(crate) fn not_run(command: Command, why: &str, hint: Option<&str>) -> Reply {
    let outcome = Outcome::Failed { why: Clean::new(why), hint: hint.map(Clean::new) };
    Reply::Ran(Box::new(Ran { command, visit: Visit(1), outcome }))
}

/// A session that was moved back.
pub(crate) fn moved(session: &str) -> Reply {
    let answer = Answer::RewindFinished { id: id(session), was_cut_off: true };
    ran(undo(session), answer, "")
}

/// A session that was not moved back.
pub(crate) fn not_moved(session: &str, why: &str, hint: Option<&str>) -> Reply {
    not_run(undo(session), why, hint)
}

/// A session that went to the trash.
pub(crate) fn deleted(session: &str) -> Reply {
    let removal = Removal { taken: vec![id(session)], left: Vec::new() };
    let answer = Answer::Deleted { asked: vec![id(session)], removal, days: 30 };
    ran(Command::Delete(vec![session.to_owned()]), answer, "")
}

/// A session that came back from the trash.
pub(crate) fn restored(session: &str) -> Reply {
    let answer = Answer::Restored(Removal { taken: vec![id(session)], left: Vec::new() });
    ran(Command::Restore(vec![session.to_owned()]), answer, "")
}

/// A fork that was made.
pub(crate) fn forked(parent: &str, fork: &str) -> Reply {
    let at = stepwell::Seq::new(4);
    let answer = Answer::Forked(Forked { id: id(fork), parent: id(parent), at });
    let command = about(parent, SessionCommand::Fork { at: None, label: None });
    ran(command, answer, &format!("{fork}\n"))
}

/// A setting that was changed.
pub(crate) fn configured() -> Reply {
    let (key, file) = ("model.name".to_owned(), "stepwell.toml".into());
    let answer = Answer::Setting(SettingReply::Unset { key, was_set: true, file });
    ran(Command::Models, answer, "")
}
