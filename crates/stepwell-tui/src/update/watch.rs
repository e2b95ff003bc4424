//! A run that goes on elsewhere, and is watched here.

use stepwell::{Event, Recorded, Seq, SessionId, Status};

use crate::effect::{Effect, Elsewhere, Grown};
use crate::gates::Asked;
use crate::state::{Detach, State, Work};
use crate::told::{Told, ToolOutcome};

impl State {
    /// Watches the session that was opened: somebody else runs it.
    pub(super) fn watch(&mut self, elsewhere: Elsewhere, after: Seq) -> Vec<Effect> {
        let Some(session) = self.phase.card().map(|card| card.id.clone()) else {
            return Vec::new();
        };
        let Elsewhere { holder, questions } = elsewhere;
        self.note(format!("{holder} runs it: what you say reaches it there, /stop stops it"));
        self.work = Work::Watching { since: self.now, holder };
        let since = self.now;
        let asked = |question| Asked::new(question, since);
        self.gates.questions = questions.into_iter().map(asked).collect();
        vec![Effect::Watch { session, after }]
    }

    /// Something happened in a run elsewhere. What was watched before is no longer of interest.
    pub(super) fn told_elsewhere(&mut self, session: &SessionId, told: Told) -> Vec<Effect> {
        match self.is_watching() && self.is_open(session) {
            true => self.told(told),
            false => Vec::new(),
        }
    }

    /// The open session changed. What a run of this process does is told by the run, and what a
    /// command changes is read when it is done.
    pub(super) fn changed(&self, session: &SessionId) -> Vec<Effect> {
        match self.is_open(session) && !self.is_in_flux() {
            true => vec![Effect::ReadNew { session: session.clone(), after: self.phase.seen() }],
            false => Vec::new(),
        }
    }

    /// Shows what others added to the open session. If one of them runs it now, it is watched.
    pub(super) fn grown(&mut self, grown: Grown) -> Vec<Effect> {
        let Grown { card, events, too_much, seq, waiting, elsewhere } = grown;
        if !self.is_open(&card.id) || self.is_in_flux() {
            return Vec::new();
        }
        let seen = self.phase.seen();
        let events: Vec<_> = events.into_iter().filter(|event| event.seq > seen).collect();
        let moved = |event: &Recorded| matches!(event.event, Event::Rewound(_) | Event::Undone(_));
        if too_much || events.iter().any(moved) {
            return self.open_anew();
        }
        for event in &events {
            self.transcript.record(event);
            if let Event::GateAnswered(given) = &event.event {
                self.gates.settle(&card.id, &given.id);
                self.take_away(&card.id, &given.id);
            }
        }
        let seen = seen.max(seq);
        if let Some(open) = self.phase.open_mut() {
            (open.seen, open.card) = (seen, card);
        }
        match elsewhere {
            Some(elsewhere) => self.watch(elsewhere, seen),
            None => {
                self.transcript.end_open_calls(left_open(waiting));
                Vec::new()
            }
        }
    }

    /// Is the open session about to be read anyway, by the run, a command or an opening? A run that
    /// goes to the background is not watched from here.
    fn is_in_flux(&self) -> bool {
        let is_changed = self.phase.card().map(|card| &card.id) == self.changing.as_ref();
        self.is_busy() || is_changed || self.is_opening() || self.detach != Detach::No
    }

    /// Watches no longer.
    pub(super) fn let_go(&mut self) -> Vec<Effect> {
        match self.is_watching() {
            true => {
                self.work = Work::Idle;
                vec![Effect::LetGo]
            }
            false => Vec::new(),
        }
    }

    /// What was watched has ended there.
    pub(super) fn note_end_elsewhere(&mut self, status: Status) {
        let goes_on = matches!(
            status,
            Status::Interrupted | Status::Partial | Status::Paused | Status::Failed
        );
        let how = match (goes_on, self.gates.questions.is_empty()) {
            (false, _) => "",
            (true, true) => "; /continue goes on here",
            (true, false) => "; its question waits, and after your answer /continue goes on here",
        };
        self.note(format!("it ended there: {status}{how}"));
    }

    /// Goes on with the session where it stopped.
    pub(super) fn go_on(&mut self) -> Vec<Effect> {
        let why_not = match self.phase.card() {
            None => "no session is open yet",
            Some(_) if self.is_working() => "it works already",
            Some(_) if self.is_watching() => "it runs elsewhere",
            Some(_) if self.is_opening() => "one moment: the session is being opened",
            Some(card) if self.changing.as_ref() == Some(&card.id) => {
                "one moment: the session is being changed"
            }
            Some(card) if card.status == Status::Success => "it is done: say what is next",
            Some(card) => {
                let session = card.id.clone();
                self.begin_work();
                let settings = self.settings.clone();
                return vec![Effect::Resume { session, say: None, settings }];
            }
        };
        self.say_briefly(why_not);
        Vec::new()
    }
}

/// What became of calls that have no result, where nothing runs any more.
pub(super) const fn left_open(waiting: u64) -> ToolOutcome {
    if waiting > 0 { ToolOutcome::Waits } else { ToolOutcome::CutOff }
}
