//! Talking to a run that goes on anywhere: words and stops.

use stepwell::error::Action;
use stepwell::model::{Change, Edited, Money, Owner, Said, Settings, StopAsked};
use stepwell::{Lane, Remedy, SessionId, SessionInfo, Status, Stepwell};
use stepwell_workspace::ownership;

use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::runtime::Runtime;

/// Something to be said to a session.
#[derive(Clone, Debug)]
pub struct SayRequest {
    /// What is said.
    pub text: String,
    /// To which conversation; a flow has several, and none that is meant by itself.
    pub lane: Option<Lane>,
    /// Does the current call of the model end for it?
    pub now: bool,
}

/// Who hears what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// A runner, before its next call of the model.
    Runner,
    /// A runner, in place of its current call of the model.
    Now,
    /// A runner, once a question that it waits with is answered.
    RunnerThatWaits,
    /// The session's next run.
    NextRun,
}

impl Hears {
    /// Does somebody run the session?
    #[must_use]
    pub const fn is_running(self) -> bool {
        !matches!(self, Self::NextRun)
    }
}

/// A runner that was asked to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequested {
    /// Who runs the session.
    pub holder: Owner,
}

impl Runtime {
    /// Says something to a session. It needs no lease: whoever runs it takes it in.
    ///
    /// # Errors
    /// If the session is a flow and no lane was named, or another program drives it.
    pub fn say(&self, id: &SessionId, words: SayRequest) -> Result<Hears> {
        let well = self.writing()?;
        let info = well.info(id)?;
        crate::resume::refuse_external(&info.head)?;
        self.refuse_in_run("saying something to a session")?;
        let lane = match (words.lane, info.head.flow.is_some()) {
            (Some(lane), _) => {
                refuse_unknown(&well, id, &lane)?;
                lane
            }
            (None, true) => {
                let known = lane_names(&well, id)?;
                let why = format!("{id} is a flow: say to which of its lanes");
                return Err(Error::usage(why).helped_by(Remedy::Choose(known)));
            }
            (None, false) => Lane::main(),
        };
        let (text, who, now) = (words.text, self.who(), words.now);
        self.acting_well(&well).say(id, Said { text, lane, who, now })?;
        self.tell_whose(&well, &info);
        // The lanes of a flow that runs wait one by one.
        let (open, running) = (info.head.open_gates > 0, info.head.status == Status::Running);
        Ok(match info.held.is_some() {
            false => Hears::NextRun,
            true if open && !(running && info.head.flow.is_some()) => Hears::RunnerThatWaits,
            true if now => Hears::Now,
            true => Hears::Runner,
        })
    }

    /// Tells whoever speaks to somebody else's session what that counts there: to one that another
    /// role of a team began, or that another user of this folder runs. What was said is on record
    /// already, and a server that cannot be asked whose the session is does not undo that.
    pub(crate) fn tell_whose(&self, well: &Stepwell, info: &SessionInfo) {
        if self.is_somebody_elses(well, info) {
            self.tell(Notice::SomebodyElses { session: info.head.id.clone() });
        }
    }

    /// The same for an answer. On the machine where the session was begun the user's answers are
    /// noted, so there they count under any login.
    pub(crate) fn tell_whose_answers(&self, well: &Stepwell, info: &SessionInfo) {
        if !ownership::is_own(self.workspace(), &info.head.id) {
            self.tell_whose(well, info);
        }
    }

    /// Asks whoever runs a session to make its conversation shorter. Tells whether somebody does.
    ///
    /// # Errors
    /// If it cannot be recorded.
    pub fn ask_to_compact(&self, id: &SessionId) -> Result<bool> {
        let well = self.writing()?;
        let asked = self.acting_well(&well).ask_to_compact(id)?.is_some();
        if asked {
            self.tell_whose(&well, &well.info(id)?);
        }
        Ok(asked)
    }

    /// Did another role of a team begin a session, or does another user of this folder run it?
    pub(crate) fn is_somebody_elses(&self, well: &Stepwell, info: &SessionInfo) -> bool {
        match self.workspace().place.team.is_some() {
            true => !ownership::began_by_user(self.workspace(), well, &info.head).unwrap_or(true),
            false => info.held.as_ref().is_some_and(|held| {
                let me = self.workspace().host.processes.this();
                !held.holder.user.is_empty() && held.holder.user != me.user
            }),
        }
    }

    /// Refuses what only a person may do, if a run's command started this process: an agent must
    /// not approve what it asks for, or speak in its user's name.
    ///
    /// # Errors
    /// [`Error::OnlyPeople`].
    pub fn refuse_in_run(&self, what: &'static str) -> Result<()> {
        match self.workspace().host.environment.is_in_run() {
            true => Err(Error::OnlyPeople { what }),
            false => Ok(()),
        }
    }

    /// Sets what all of a session may cost, in the user's name. It is on record at once. A run that
    /// goes on keeps to it if it is less than before; whoever holds the run can also
    /// [set more](crate::RunHandle::set_budget).
    ///
    /// # Errors
    /// If the session cannot be written to.
    pub fn set_budget(&self, id: &SessionId, most: Money) -> Result<()> {
        self.refuse_in_run("setting a budget")?;
        let well = self.writing()?;
        let well = self.acting_well(&well);
        let edited = Edited { budget: Change::Set(most), ..Edited::default() };
        if well.info(id)?.held.is_some() {
            well.edit(id, edited)?;
            return Ok(());
        }
        let settings = Settings { budget: Some(most), who: self.who(), ..Settings::default() };
        let session = well.hold_briefly(id)?;
        session.append_all(vec![settings.into(), edited.into()])?;
        Ok(())
    }

    /// Asks whoever runs a session to stop, on whichever machine: on record, so that it is seen at
    /// the next renewal of the lease at the latest. A later runner ignores it.
    ///
    /// # Errors
    /// If nobody runs it.
    pub fn stop(&self, id: &SessionId, reason: Option<String>) -> Result<StopRequested> {
        let well = self.writing()?;
        let Some(held) = well.info(id)?.held else {
            return Err(Error::invalid(format!("{id} does not run")).helped(Action::Show, id));
        };
        let stop = StopAsked { epoch: held.epoch, who: self.who(), reason };
        self.acting_well(&well).ask_to_stop(id, stop)?;
        Ok(StopRequested { holder: held.holder })
    }
}

/// Refuses words to a conversation that has not begun: nobody would hear them.
fn refuse_unknown(well: &Stepwell, id: &SessionId, lane: &Lane) -> Result<()> {
    if *lane == Lane::main() || well.store().lanes(id)?.contains_key(lane) {
        return Ok(());
    }
    let known = lane_names(well, id)?;
    let why = format!("{id} has no conversation {:?}", lane.as_str());
    Err(Error::usage(why).helped_by(Remedy::Choose(known)))
}

fn lane_names(well: &Stepwell, id: &SessionId) -> Result<Vec<String>> {
    Ok(well.store().lanes(id)?.into_keys().map(|lane| lane.to_string()).collect())
}
