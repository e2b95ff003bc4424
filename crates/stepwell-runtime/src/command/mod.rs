//! What a user can do to sessions: a [`Command`] and its [`Reply`], for every front end.
//!
//! A command line, a slash line, a request over HTTP become a [`Command`]; [`Runtime::run`] carries
//! it out, and the front end words the [`Reply`]. What only one front end has (a page that is turned, a
//! file that is written to stdout) is no command.

mod asked;
mod config;
mod files;
mod history;
pub mod import;
mod naming;
mod page;
mod reply;
pub mod slash;
mod table;
mod work;

pub use asked::{
    Command, ConfigCommand, Export, Folder, GatesWanted, ImportRequest, LedgerWanted, MoveCommand,
    RewindTo, SearchWanted, SessionCommand, SettingsFile, Shortening, TaskChange,
};
pub use history::rewind_answer;
pub use import::{ImportReport, ImportedPlace};
pub use page::{LAST_MESSAGES, SessionPage};
pub use reply::{
    CompactionReply, Exported, FilesReply, MessagePinned, MoveOutcome, MoveReply, PhaseReply,
    Reply, SettingReply, SettingShown, TasksReply, WorkReply,
};
pub use table::{Group, Invocation, SLASH_COMMANDS, SlashCommand, UnknownCommand, Verb};

use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;
use stepwell::{SessionId, Stepwell};
use stepwell_workspace::handoff;
use stepwell_workspace::housekeeping::tidy;

use crate::error::{Error, Result};
use crate::request::Interrupt;
use crate::runtime::Runtime;

impl Runtime {
    /// Carries a command out. What changes something tidies the store afterwards.
    ///
    /// # Errors
    /// If it cannot be done. Nothing is half done then.
    pub fn run(&self, command: Command, interrupt: &Interrupt) -> Result<Reply> {
        match command {
            Command::Session(name, what) => {
                let access = what.access();
                let (well, id) = self.workspace().open_session(&name, access)?;
                let reply = self.run_in(&well, &id, what, interrupt)?;
                if access == Access::Write {
                    tidy(self.workspace(), &well);
                }
                Ok(reply)
            }
            Command::Delete(names) => self.delete(&names),
            Command::Restore(names) => self.restore(&names),
            Command::Gates(wanted) => self.gates(&wanted).map(Reply::Gates),
            Command::Search(wanted) => self.search(wanted).map(Reply::Found),
            Command::Models => self.recent_model_names().map(Reply::Models),
            Command::Ledger(wanted) => self.ledger(&wanted).map(Reply::Ledger),
            Command::Config(command) => self.configure(command),
            Command::Servers(query) => {
                let named_in = self.workspace().host.user_config();
                Ok(Reply::Servers { servers: self.mcp_servers(&query)?, named_in })
            }
            Command::Import(request) => {
                self.import(&request, &mut import::Silent).map(Box::new).map(Reply::Imported)
            }
        }
    }

    /// Carries out what is about one session, in a store that is open already.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn run_in(
        &self,
        well: &Stepwell,
        id: &SessionId,
        what: SessionCommand,
        interrupt: &Interrupt,
    ) -> Result<Reply> {
        use SessionCommand as Do;
        let acting = self.acting_well(well);
        Ok(match what {
            Do::Show(depth) => Reply::Details(Box::new(page::read(self, well, id, depth)?)),
            Do::Label(change) => Reply::Label(naming::label(&acting, id, change)?),
            Do::Tag { add, remove } => Reply::Tags(naming::tag(&acting, id, add, remove)?),
            Do::Pin => Reply::Pin(naming::pin(&acting, id)?),
            Do::Unpin => Reply::Pin(naming::unpin(&acting, id)?),
            Do::PinMessage(seq) => Reply::MessagePin(naming::pin_message(&acting, id, seq)?),
            Do::UnpinMessage(seq) => Reply::MessagePin(naming::unpin_message(&acting, id, seq)?),
            Do::Checkpoints => Reply::Checkpoints(id.clone(), history::checkpoints(well, id)?),
            Do::Checkpoint { name, metadata } => {
                Reply::CheckpointMade(self.checkpoint(&acting, id, name, metadata)?)
            }
            Do::Rewind(command) => {
                Reply::Rewind(Box::new(self.move_session(&acting, id, &command)?))
            }
            Do::FinishRewind => Reply::RewindFinished {
                id: id.clone(),
                was_cut_off: history::finish(self, &acting, id)?,
            },
            Do::Fork { at, label } => {
                Reply::Forked(self.fork_at(well, id, at.as_deref(), label)?)
            }
            Do::Compact(how) => Reply::Compaction(Box::new(self.shorten(id, how, interrupt)?)),
            Do::UndoCompaction => self.undo_compaction(&acting, id)?,
            Do::CompactionDiff => Reply::CompactionDiff(id.clone(), well.compaction_changes(id)?),
            Do::Export(export) => Reply::Exported(Box::new(self.export(well, id, export)?)),
            Do::HandOver { agent, how } => Reply::HandedOver(Box::new(handoff::hand_over(
                self.workspace(),
                well,
                id,
                agent,
                how,
            )?)),
            Do::Diff { from, to } => Reply::Diff(files::diff(well, id, from, to)?),
            Do::Files(path) => Reply::Files(files::list(well, id, path.as_deref())?),
            Do::Context => Reply::Context(Box::new(self.context_of(well, id)?)),
            Do::State => Reply::State(Box::new(work::state(well, id)?)),
            Do::Goal(goal) => {
                acting.set_goal(id, &goal)?;
                Reply::State(Box::new(work::state(well, id)?))
            }
            Do::Ask(text) => {
                acting.ask(id, &text)?;
                Reply::State(Box::new(work::state(well, id)?))
            }
            Do::AnswerQuestion { question, text } => {
                acting.answer_question(id, &question, &text)?;
                Reply::State(Box::new(work::state(well, id)?))
            }
            Do::Tasks(statuses) => Reply::Tasks(work::tasks(well, id, &statuses)?),
            Do::ChangeTasks(change) => {
                Reply::TasksChanged(work::change(self, &acting, id, change)?)
            }
            Do::Phase => Reply::Phase(work::phase(&well.info(id)?.head)),
            Do::EnterPhase(name) => Reply::Phase(work::enter_phase(&acting, id, &name)?),
        })
    }

    fn delete(&self, names: &[String]) -> Result<Reply> {
        let Some((first, others)) = names.split_first() else { return Err(no_name()) };
        let (well, first) = self.workspace().open_session(first, Access::Write)?;
        // All names are understood before anything is done.
        let mut ids = vec![first];
        for name in others {
            let id = self.workspace().find_session(&well, name)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let reply = self.delete_in(&well, ids)?;
        tidy(self.workspace(), &well);
        Ok(reply)
    }

    /// Moves sessions of an open store to the trash.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn delete_in(&self, well: &Stepwell, ids: Vec<SessionId>) -> Result<Reply> {
        let can_finish =
            |head: &stepwell::log::Head| crate::files::root(head, self.workspace()).is_ok();
        let removal = self.acting_well(well).delete_all(&ids, &can_finish)?;
        let days = self.workspace().config.settings.retention_days.get();
        Ok(Reply::Deleted { asked: ids, removal, days: days.into() })
    }

    fn restore(&self, names: &[String]) -> Result<Reply> {
        let Some((first, others)) = names.split_first() else { return Err(no_name()) };
        let (place, access) = (TrashScope::Trash, Access::Write);
        let (well, first) = self.workspace().open_session_in(place, first, access)?;
        let mut ids = vec![first];
        for name in others {
            ids.push(self.workspace().find_session_in(&well, place, name)?);
        }
        let removal = well.restore_all(&ids)?;
        tidy(self.workspace(), &well);
        Ok(Reply::Restored(removal))
    }
}

fn no_name() -> Error {
    Error::usage("no session is named")
}
