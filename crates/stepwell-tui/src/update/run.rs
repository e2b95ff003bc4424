//! What a run tells.

use stepwell::model::{OwnCommand, Role};
use stepwell::{Event, Recorded, SessionId, Status};

use super::watch::left_open;
use crate::clean::Clean;
use crate::effect::{Effect, Visit};
use crate::helper::Helper;
use crate::phase::{Open, Phase};
use crate::session::SessionCard;
use crate::state::{Detach, State, Work};
use crate::told::{Ended, Told};
use crate::transcript::Block;

/// How many subagents and nodes are kept to be looked at.
const HELPERS: usize = 100;

impl State {
    pub(super) fn told(&mut self, told: Told) -> Vec<Effect> {
        match told {
            Told::Began(session) => {
                self.name(&session);
                if let Some(open) = self.phase.open_mut() {
                    open.sending = None;
                }
                if let Work::Working { began, .. } = &mut self.work {
                    *began = true;
                }
                return vec![Effect::ReadCard(session)];
            }
            Told::Recorded(event) => {
                if let Event::Message(message) = &event.event
                    && message.role == Role::User
                {
                    self.take_from_queue(&message.text());
                }
                self.record_lane(&event);
                self.transcript.record(&event);
                if let Some(open) = self.phase.open_mut() {
                    open.seen = open.seen.max(event.seq);
                }
                if changes_card(&event.event) {
                    return self.read_card();
                }
            }
            Told::Waiting(_) => {}
            Told::Text(piece) => self.transcript.stream_answer(&piece),
            Told::Thinking(piece) => self.transcript.stream_thinking(&piece),
            Told::Void => self.transcript.void_stream(),
            Told::ToolStarted(run) => self.transcript.tool_started(run),
            Told::ToolOutput { call, ran, tail } => self.transcript.tool_output(&call, ran, tail),
            Told::ToolFinished { call, outcome, output } => {
                self.transcript.tool_over(&call, outcome, &output);
            }
            // What is watched was not counted from its beginning.
            Told::Step { .. } if self.is_watching() => return self.read_card(),
            Told::Step { cost, context } => {
                if let Some(card) = self.phase.card_mut() {
                    card.cost = cost;
                    card.context = context.or(card.context);
                }
            }
            Told::Asked(question) => {
                self.gates.ask(*question, self.now);
            }
            Told::Answered { session, gate, answer, who, at } => {
                // What was answered here was taken away then.
                self.gates.settle(&session, &gate);
                if self.take_away(&session, &gate) {
                    self.note(format!("Answered by {who} at {at} elsewhere: {answer}"));
                }
            }
            Told::Within { name, told } => self.told_within(&name, *told),
            Told::NodeOver { name, status } => {
                let named = self.helpers.iter_mut().find(|helper| helper.name == name);
                if let Some(helper) = named {
                    helper.end(status);
                }
            }
            Told::Notice(text) => self.note(text.as_str()),
            Told::Ended(ended) => return self.ended(&ended),
        }
        Vec::new()
    }

    fn read_card(&self) -> Vec<Effect> {
        self.phase.card().into_iter().map(|card| Effect::ReadCard(card.id.clone())).collect()
    }

    /// What the agents of a flow elsewhere say is known by its log alone: kept for whoever watches
    /// one of them.
    fn record_lane(&mut self, event: &Recorded) {
        let is_flow = self.phase.card().is_some_and(|card| card.is_flow);
        if let Event::Message(message) = &event.event
            && is_flow
            && self.is_watching()
        {
            let name = Clean::line(&message.lane.to_string());
            let told = Told::Recorded(Box::new(event.clone()));
            self.told_within(&name, told);
        }
    }

    /// The session has a name from now on; what else it is, is read.
    fn name(&mut self, session: &SessionId) {
        if self.phase.card().is_some_and(|card| card.id == *session) {
            return;
        }
        let model = self.settings.model.as_deref().map(Clean::line);
        let card = SessionCard {
            id: session.clone(),
            title: Clean::line(self.composer.queue.first().map_or("", Clean::as_str)),
            status: Status::Running,
            model: model.unwrap_or_else(|| self.default_model().clone()),
            mode: None,
            phase: None,
            cost: Clean::default(),
            left: None,
            context: None,
            is_flow: self.transcript.is_of_flow(),
            is_guided: false,
        };
        self.phase = Phase::Open(Box::new(Open::new(card)));
    }

    /// Something said is in the conversation now. What is recorded may be redacted, so the order
    /// decides if no text is the same.
    fn take_from_queue(&mut self, text: &str) {
        let text = Clean::new(text);
        let same = self.composer.queue.iter().position(|said| *said == text);
        // Where others speak too, only the same text is mine.
        if same.is_some() || (!self.composer.queue.is_empty() && !self.is_watching()) {
            self.composer.queue.remove(same.unwrap_or(0));
        }
    }

    /// What a subagent or a flow's node does: kept for whoever watches it, and its questions.
    fn told_within(&mut self, name: &Clean, told: Told) {
        let at = match self.helpers.iter().position(|helper| helper.name == *name) {
            Some(at) => at,
            None => {
                self.helpers.push(Helper::new(name.clone()));
                let too_many = self.helpers.len().saturating_sub(HELPERS);
                self.helpers.drain(..too_many);
                self.helpers.len() - 1
            }
        };
        self.helpers[at].apply(&told);
        self.pass_on(name, told);
    }

    /// What is of interest beyond whoever it happened to: questions, and how it ended.
    fn pass_on(&mut self, name: &Clean, told: Told) {
        match told {
            Told::Asked(mut question) => {
                question.asker.get_or_insert_with(|| name.clone());
                drop(self.told(Told::Asked(question)));
            }
            answered @ Told::Answered { .. } => drop(self.told(answered)),
            Told::Within { name, told } => self.pass_on(&name, *told),
            Told::Ended(ended) => self.note(format!("{name}: {}", ended.status)),
            _ => {}
        }
    }

    /// Nobody works for the session any more.
    fn end_helpers(&mut self) {
        for helper in &mut self.helpers {
            helper.end(Status::Interrupted);
        }
    }

    fn ended(&mut self, ended: &Ended) -> Vec<Effect> {
        let stopped = matches!(self.work, Work::Working { stopping: true, .. });
        let never_began = matches!(self.work, Work::Working { began: false, .. })
            && ended.status == Status::Failed;
        let was_elsewhere = self.is_watching();
        self.work = Work::Idle;
        if never_began {
            self.open_what_was_before();
        }
        self.transcript.drop_stream();
        // What a runner elsewhere asked is on record, and waits for an answer also when it is gone.
        let stays_open = was_elsewhere && ended.status != Status::Success;
        if !stays_open {
            self.gates.questions.clear();
        }
        // What goes on in the background is not cut off.
        let waits = matches!(ended.status, Status::Paused)
            || !self.gates.questions.is_empty()
            || self.detach == Detach::Asked;
        self.transcript.end_open_calls(left_open(u64::from(waits)));
        self.gates.answering.clear();
        self.end_helpers();
        self.tell_end(ended, stopped, was_elsewhere);
        let sending = self.phase.open_mut().and_then(|open| open.sending.take());
        let Some(card) = self.phase.card_mut() else {
            // It never began: what was said is typed again, so that nothing is lost.
            let said = self.composer.take_queue();
            self.give_back(&said);
            self.detach = Detach::No;
            return Vec::new();
        };
        if !never_began {
            card.status = ended.status;
        }
        let session = card.id.clone();
        if let Some(words) = sending.filter(|_| never_began) {
            self.take_from_queue(&words);
            self.give_back(&words);
        }
        let mut effects = vec![Effect::ReadCard(session.clone())];
        if ended.status == Status::Failed {
            // Somebody else may run it, and that is why it failed.
            effects.push(Effect::ReadNew { session: session.clone(), after: self.phase.seen() });
        }
        if never_began {
            // What was said meanwhile is on record, and waits for the next run.
            let keeps_words = !self.composer.queue.is_empty();
            if let Some(open) = self.phase.open_mut() {
                open.keeps_words = keeps_words;
            }
            self.detach = Detach::No;
            return effects;
        }
        if self.detach == Detach::Asked {
            return self.go_on_in_background(&session, ended.status);
        }
        if !self.composer.queue.is_empty() && ended.status == Status::Success {
            effects.extend(self.hear_queue(session));
        }
        effects
    }

    /// What was said as the turn ended is answered in the next one. What that one does not hear is
    /// not on record: it is typed again.
    fn hear_queue(&mut self, session: SessionId) -> Vec<Effect> {
        let Some(open) = self.phase.open_mut() else { return Vec::new() };
        if open.tried == self.composer.queue {
            open.tried.clear();
            let said = self.composer.take_queue();
            self.note("this was not heard, and is typed again");
            self.give_back(&said);
            return Vec::new();
        }
        open.tried.clone_from(&self.composer.queue);
        self.begin_work();
        vec![Effect::Resume { session, say: None, settings: self.settings.clone() }]
    }

    fn tell_end(&mut self, ended: &Ended, stopped: bool, was_elsewhere: bool) {
        match (ended.status, ended.why.is_empty()) {
            (status, _) if was_elsewhere => self.note_end_elsewhere(status),
            (Status::Interrupted, _) if self.detach == Detach::Asked => {}
            (Status::Interrupted, _) if stopped => self.note("stopped; say something to go on"),
            (Status::Failed, _) => {
                let why =
                    if ended.why.is_empty() { Clean::new("it failed") } else { ended.why.clone() };
                // What is on record of it was told already.
                if !self.transcript.tells_trouble(&why) {
                    self.trouble(&why, ended.hint.as_ref());
                }
            }
            (_, false) => {
                self.note(ended.why.as_str());
                if let Some(hint) = &ended.hint {
                    self.note(format!("hint: {hint}"));
                }
            }
            (_, true) => {}
        }
    }

    /// The run stopped here. What it was at goes on elsewhere; what is done is done.
    fn go_on_in_background(&mut self, session: &SessionId, status: Status) -> Vec<Effect> {
        if status == Status::Success && self.composer.queue.is_empty() {
            return self.leave();
        }
        vec![Effect::GoOnDetached(session.clone())]
    }

    /// Something went wrong before a run told of its end.
    pub(super) fn failed(&mut self, why: &Clean, hint: Option<&Clean>) {
        match &self.page {
            Some(_) => self.say_briefly(why.as_str()),
            None => self.trouble(why, hint),
        }
    }

    /// Adds what a command of the user's wrote, and lets the model know.
    pub(super) fn shell_done(
        &mut self,
        command: &str,
        output: &Clean,
        failed: Option<&Clean>,
        visit: Visit,
    ) -> Vec<Effect> {
        self.shells.running = self.shells.running.saturating_sub(1);
        let own = OwnCommand {
            command: command.to_owned(),
            output: output.as_str().to_owned(),
            failed: failed.map(ToString::to_string),
        };
        let mut effects = match visit == self.visit {
            true => self.show_own(own.told(), output, failed),
            false => self.tell_earlier(&own, visit),
        };
        effects.extend(match self.passage.is_leaving() && self.shells.running == 0 {
            true => self.leave(),
            false => self.send_held(),
        });
        effects
    }

    /// A command of a session that was left is done: that session is told.
    fn tell_earlier(&mut self, own: &OwnCommand, visit: Visit) -> Vec<Effect> {
        let session = self.shells.earlier.get(&visit).cloned();
        if self.shells.running == 0 {
            self.shells.earlier.clear();
        }
        let command = &own.command;
        match session {
            Some(session) => {
                self.note(format!("{command} is done; {session} is told what it wrote"));
                vec![Effect::Say { session, text: own.told() }]
            }
            None => {
                self.note(format!("{command} is done; its session was never begun"));
                Vec::new()
            }
        }
    }

    fn show_own(&mut self, text: String, output: &Clean, failed: Option<&Clean>) -> Vec<Effect> {
        self.transcript.push(Block::Output(output.clone()));
        if let Some(failed) = failed {
            self.transcript.push(Block::Trouble(failed.clone()));
        }
        let (is_idle, is_working) = (!self.is_busy(), self.is_working());
        match self.phase.open_mut() {
            Some(open) if !open.card.is_flow => {
                open.keeps_words = is_idle;
                vec![Effect::Say { session: open.card.id.clone(), text }]
            }
            Some(_) => Vec::new(),
            None if is_working => vec![Effect::SayFirst(text)],
            None => {
                self.composer.carried.push(text);
                Vec::new()
            }
        }
    }

    /// Sends what was typed while a command of the user's ran, in that order.
    fn send_held(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.shells.running == 0
            && !self.passage.is_leaving()
            && let Some(typed) = self.composer.held.pop_front()
        {
            self.composer.unqueue(&typed);
            effects.extend(self.say_or_run(&typed));
        }
        effects
    }
}

/// Does an event change what is said of the session as a whole? Of each answer of a model, what it
/// cost does.
fn changes_card(event: &Event) -> bool {
    match event {
        Event::Phase(_) | Event::Compacted(_) => true,
        Event::Message(message) => message.usage.is_some(),
        _ => false,
    }
}
