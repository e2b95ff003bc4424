//! A run as far as it was recorded, for the answer of one that could not be saved: its
//! store may be gone by then, or another's.

use std::collections::BTreeMap;

use stepwell::{Event, Gate, Head, Lane, LaneState, Recorded, Role, Seq, SessionId, Spent, State};
use stepwell_agent::run::{Happening, Question, Reply, Watcher};
use stepwell_flow::{FlowEvent, Observer};

/// What is known of a run by what it recorded.
pub(super) struct Tally {
    pub(super) state: State,
    /// The sessions of its subagents, as far as they were seen.
    pub(super) below: BTreeMap<SessionId, Head>,
    /// The model's last words.
    pub(super) output: String,
    /// Tools that were used in this invocation, each once.
    pub(super) tools_used: Vec<String>,
    /// Files that were changed in this invocation, each once.
    pub(super) files_modified: Vec<String>,
}

impl Tally {
    /// How the session stood when the run began.
    pub(super) fn new(head: Head, lanes: BTreeMap<Lane, LaneState>, below: Vec<Head>) -> Self {
        Self {
            state: State { head, lanes },
            below: below.into_iter().map(|head| (head.id.clone(), head)).collect(),
            output: String::new(),
            tools_used: Vec::new(),
            files_modified: Vec::new(),
        }
    }

    /// Takes in an event that was recorded.
    fn take(&mut self, event: &Recorded) {
        if event.seq > self.state.head.seq {
            self.state.apply(event);
        }
        match &event.event {
            Event::Message(said) if said.role == Role::Assistant && said.lane == Lane::main() => {
                self.output = said.text();
            }
            Event::ToolStarted(started) => once(&mut self.tools_used, &started.tool),
            Event::File(file) if file.path != "." => once(&mut self.files_modified, &file.path),
            _ => {}
        }
    }

    fn take_below(&mut self, id: &SessionId, happening: &Happening<'_>) {
        match happening {
            Happening::Recorded(event) => {
                // Its own beginning was recorded by its parent: only what follows is seen.
                let begun = || Head {
                    id: id.clone(),
                    seq: Seq::ZERO,
                    spent: Spent::default(),
                    ..self.state.head.clone()
                };
                let head = self.below.entry(id.clone()).or_insert_with(begun);
                if event.seq > head.seq {
                    head.apply(event);
                }
            }
            Happening::Below(id, happening) => self.take_below(id, happening),
            _ => {}
        }
    }

    fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Recorded(event) => self.take(event),
            Happening::Below(id, happening) => self.take_below(id, happening),
            _ => {}
        }
    }
}

fn once(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// A watcher of a run, beside whom a tally is kept.
pub(super) struct Tallying<W> {
    pub(super) watcher: W,
    pub(super) tally: Tally,
}

impl<W: Watcher> Watcher for Tallying<W> {
    fn saw(&mut self, happening: Happening<'_>) {
        self.tally.see(&happening);
        self.watcher.saw(happening);
    }

    fn ask(&mut self, question: &Question<'_>, is_over: &dyn Fn() -> bool) -> Reply {
        self.watcher.ask(question, is_over)
    }
}

impl<A: Observer> Observer for Tallying<A> {
    fn on_event(&mut self, event: FlowEvent<'_>) {
        match &event {
            FlowEvent::Recorded(event) => self.tally.take(event),
            FlowEvent::Within(_, Happening::Below(id, happening)) => {
                self.tally.take_below(id, happening);
            }
            _ => {}
        }
        self.watcher.on_event(event);
    }

    fn can_ask(&self) -> bool {
        self.watcher.can_ask()
    }

    fn ask(&mut self, gate: &Gate, is_over: &dyn Fn() -> bool) -> Option<String> {
        self.watcher.ask(gate, is_over)
    }

    fn who(&self) -> String {
        self.watcher.who()
    }
}
