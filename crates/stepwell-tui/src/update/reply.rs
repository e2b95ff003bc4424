//! What stores and commands answer.

use stepwell::SessionId;
use stepwell_runtime::command::{Command, Reply as Answer, SessionCommand, SettingReply};
use stepwell_runtime::inspect::Depth;

use crate::clean::Clean;
use crate::completion::{Completion, Wanted, wanted};
use crate::effect::{Effect, OtherAgents, Outcome, Ran, Reply, Visit};
use crate::page::{ChoicePage, Choosing, Content, Doing, Page, PointsPage};
use crate::phase::StartList;
use crate::session::{Reach, SessionRow};
use crate::state::{Detach, State};
use crate::transcript::Block;

/// An answer in words, and what it is about.
struct Words {
    text: Clean,
    notes: Clean,
    title: &'static str,
}

/// An answer of more lines goes to a page.
const SHORT: usize = 12;

impl State {
    pub(super) fn reply(&mut self, reply: Reply) -> Vec<Effect> {
        match reply {
            Reply::Start(rows) => {
                let is_idle = !self.is_working() && !self.is_opening();
                if let Some(start) = self.phase.start_mut().filter(|_| is_idle) {
                    start.list = Some(StartList { rows, selected: None });
                }
            }
            Reply::Opened(opened) => return self.opened(*opened),
            Reply::NotOpened { opening, why, hint } => {
                return self.not_opened(opening, &why, hint.as_ref());
            }
            Reply::NotSaid { text, why, hint } => self.not_said(&text, &why, hint.as_ref()),
            Reply::Configured { model, mode } => match &mut self.away {
                Some(place) => (place.model, place.mode) = (model, mode),
                None => (self.look.model, self.look.mode) = (model, mode),
            },
            Reply::Card(card) => {
                // One that was left meanwhile is not open again.
                if let Some(open) = self.phase.card_mut().filter(|open| open.id == card.id) {
                    *open = *card;
                }
            }
            Reply::Changed(session) => return self.changed(&session),
            Reply::Grown(grown) => return self.grown(*grown),
            Reply::Model { name, visit } if visit == self.visit => self.set_model(&name),
            Reply::Agent { name, visit } if visit == self.visit => self.set_agent(&name),
            Reply::Model { name, .. } | Reply::Agent { name, .. } => {
                self.say_briefly(format!("{name} was chosen for the session before"));
            }
            Reply::Earlier { session, events, more } => {
                if self.is_open(&session) {
                    self.put_before(&events, more);
                }
            }
            Reply::Found { search, rows, others } => return self.found(search, rows, others),
            Reply::OthersRead => {
                if let Some(Page::Picker(picker)) = &self.page
                    && picker.reach == Reach::Everywhere
                {
                    return self.find();
                }
            }
            Reply::Preview { session, text } => {
                if let Some(Page::Picker(picker)) = &mut self.page
                    && picker.row().is_some_and(|row| row.id == session)
                {
                    picker.preview = Some(text);
                }
            }
            Reply::Points { session, purpose, points } => {
                if !self.is_open(&session) {
                    return Vec::new();
                }
                if points.is_empty() {
                    self.say_briefly("there is nothing to go back to yet");
                    return Vec::new();
                }
                let page = PointsPage { purpose, points, selected: 0, way: None };
                self.open_page(Page::Points(page));
            }
            Reply::Files(files) => {
                if let Wanted::Files { from, .. } = wanted(&self.composer.editor) {
                    self.composer.completion = Completion::files(from, &files);
                }
            }
            Reply::Models(items) => self.choose_among(Choosing::Model, items),
            Reply::Agents(items) => self.choose_among(Choosing::Agent, items),
            Reply::Helpers { session, helpers } => return self.helpers_read(&session, helpers),
            Reply::Ran(ran) => return self.ran(*ran),
            Reply::Imported { session, visit } => {
                return self.open_made(session.as_str(), visit, None);
            }
            Reply::Detached => {
                self.detach = Detach::Done;
                return self.leave();
            }
            Reply::NotDetached { why, hint } => {
                self.detach = Detach::No;
                self.failed(&why, hint.as_ref());
            }
            Reply::ShellDone { command, output, failed, visit } => {
                return self.shell_done(&command, &output, failed.as_ref(), visit);
            }
            Reply::Edited(text) => self.composer.editor.set(text.trim_end()),
            Reply::NotAnswered { session, gate, why, again } => {
                self.gates.ask_again(&session, &gate, again);
                self.trouble(&why, None);
            }
            Reply::Failed { why, hint } => self.failed(&why, hint.as_ref()),
        }
        Vec::new()
    }

    pub(super) fn choose_among(&mut self, what: Choosing, items: Vec<Clean>) {
        let filter = crate::editor::Editor::default();
        self.open_page(Page::Choice(ChoicePage { what, items, filter, selected: 0 }));
    }

    fn put_before(&mut self, events: &[stepwell::Recorded], more: bool) {
        let before = self.transcript.blocks().len();
        self.transcript.put_before(events, more);
        let added = self.transcript.blocks().len() - before;
        let Some(Page::Text(page)) = &self.page else { return };
        if page.content != Content::Transcript || added == 0 {
            return;
        }
        let (old, from_end) = (page.lines.len(), page.lines.len() - page.top);
        self.lay_out_anew();
        if let Some(Page::Text(page)) = &mut self.page
            && page.lines.len() > old
        {
            // What was read stays where it was.
            page.top = page.lines.len() - from_end;
        }
    }

    fn found(&mut self, search: u64, rows: Vec<SessionRow>, others: OtherAgents) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        if picker.search != search {
            return Vec::new();
        }
        // What was selected stays selected, wherever it is listed now.
        let is_same = |row: &SessionRow| {
            picker.stays
                && picker.row().is_some_and(|old| old.id == row.id && old.store == row.store)
        };
        let same = rows.iter().position(is_same);
        picker.selected = same.unwrap_or(picker.selected).min(rows.len().saturating_sub(1));
        picker.stays = true;
        (picker.rows, picker.others) = (Some(rows), others);
        self.preview()
    }

    pub(super) fn preview(&mut self) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        picker.preview = None;
        let Some(row) = picker.row() else { return Vec::new() };
        if let Some(foreign) = &row.foreign {
            picker.preview = Some(foreign.about.clone());
            return Vec::new();
        }
        let (session, store) = (row.id.clone(), row.store.clone());
        vec![Effect::Preview { session, store, words: picker.words.text().to_owned() }]
    }

    fn ran(&mut self, Ran { command, visit, outcome }: Ran) -> Vec<Effect> {
        let moved = moved_by(&command);
        if moved.is_some() && self.changing == moved {
            self.changing = None;
        }
        let is_open = moved.as_ref().is_some_and(|session| self.is_open(session));
        let open = self.phase.open_mut().filter(|_| is_open);
        let retype = open.and_then(|open| open.retype.take());
        match outcome {
            Outcome::Failed { why, hint } => {
                let hint = if moved.is_some() { hint.map(for_rewind) } else { hint };
                self.failed(&why, hint.as_ref());
                Vec::new()
            }
            // What was moved is read anew where it is open.
            Outcome::Done { text, notes, .. } if moved.is_some() => {
                let said = format!("{text}{notes}");
                self.say_briefly(said.lines().next().unwrap_or("done"));
                // What was said there is typed again, to be said otherwise.
                if let Some(text) = retype.filter(|_| self.composer.editor.is_empty()) {
                    self.composer.editor.set(&text);
                }
                if is_open { self.open_anew() } else { Vec::new() }
            }
            Outcome::Done { reply, text, notes } => {
                self.answered(&reply, Words { text, notes, title: title(&command) }, visit)
            }
        }
    }

    fn answered(&mut self, answer: &Answer, words: Words, visit: Visit) -> Vec<Effect> {
        let is_picking = matches!(self.page, Some(Page::Picker(_)));
        match answer {
            Answer::Diff(_) => {
                match words.text.as_str().trim().is_empty() {
                    true => self.say_briefly("no file was changed"),
                    false => self.open_text("diff", Content::Diff(words.text)),
                }
                Vec::new()
            }
            Answer::Forked(forked) => {
                self.open_made(forked.id.as_str(), visit, Some(forked.parent.clone()))
            }
            Answer::Label(_) | Answer::Tags(_) | Answer::Pin(_) if is_picking => self.list_anew(),
            Answer::Restored(_) => {
                self.say_briefly("it is back");
                self.list_anew()
            }
            Answer::Setting(SettingReply::Set(_) | SettingReply::Unset { .. }) => {
                self.note(words.text.as_str().trim_end());
                vec![Effect::ReadConfig]
            }
            Answer::Deleted { asked, .. } => {
                asked.first().map_or_else(Vec::new, |session| self.was_deleted(session))
            }
            _ => self.show(&words),
        }
    }

    /// Shows an answer: a short one in the conversation, a long one on a page.
    fn show(&mut self, Words { text, notes, title }: &Words) -> Vec<Effect> {
        let (said, beside) = (text.as_str().trim_end(), notes.as_str().trim_end());
        match said.lines().count() {
            0 if beside.is_empty() => self.say_briefly(format!("{title}: done")),
            0 => self.note(beside),
            lines if lines <= SHORT => self.transcript.push(Block::Output(Clean::new(said))),
            _ => self.open_text(title, Content::Plain(text.clone())),
        }
        let card = self.phase.card();
        card.map_or_else(Vec::new, |card| vec![Effect::ReadCard(card.id.clone())])
    }

    fn was_deleted(&mut self, session: &SessionId) -> Vec<Effect> {
        self.deleted = Some(session.clone());
        if let Some(Page::Picker(picker)) = &mut self.page
            && picker.doing == Doing::Typing
        {
            picker.doing = Doing::Deleted;
            self.say_briefly("in the trash");
        } else {
            self.note(format!("in the trash; stepwell trash restore {session}"));
        }
        let mut effects = Vec::new();
        if self.is_open(session) {
            self.begin_anew();
            effects.extend(self.go_home());
            if let Some(start) = self.phase.start_mut() {
                start.list.get_or_insert_default();
            }
        }
        effects.extend(self.list_anew());
        effects
    }

    /// Words were not said: they are typed again.
    fn not_said(&mut self, text: &str, why: &Clean, hint: Option<&Clean>) {
        self.failed(why, hint);
        if self.composer.unqueue(text) {
            self.give_back(text);
        }
    }

    pub(super) fn is_open(&self, session: &SessionId) -> bool {
        self.phase.card().is_some_and(|card| card.id == *session)
    }

    /// Lists sessions again wherever they are listed: what is listed has changed.
    fn list_anew(&mut self) -> Vec<Effect> {
        let mut effects = self.find();
        effects.extend(self.start_list().map(|_| Effect::ListStart));
        effects
    }
}

/// The session that a command moves: what was known of its conversation no longer holds.
pub(super) fn moved_by(command: &Command) -> Option<SessionId> {
    use SessionCommand::{Compact, Rewind, UndoCompaction};
    match command {
        Command::Session(session, Compact(_) | Rewind(_) | UndoCompaction) => session.parse().ok(),
        _ => None,
    }
}

/// What an answer is about.
const fn title(command: &Command) -> &'static str {
    use SessionCommand as Do;
    let Command::Session(_, what) = command else {
        return match command {
            Command::Gates(_) => "gates",
            Command::Models => "models",
            Command::Ledger(_) => "ledger",
            Command::Config(_) => "config",
            Command::Servers(_) => "mcp",
            Command::Import(_) => "import",
            _ => "answer",
        };
    };
    match what {
        Do::Show(Depth::Alone) => "status",
        Do::Show(Depth::Family) => "family",
        Do::Label(_) => "rename",
        Do::Tag { .. } => "tags",
        Do::Pin => "pin",
        Do::Unpin => "unpin",
        Do::PinMessage(_) => "keep",
        Do::Checkpoints => "checkpoints",
        Do::Checkpoint { .. } => "save",
        Do::Export(_) => "export",
        Do::HandOver { .. } => "hand over",
        Do::Files(_) => "files",
        Do::Context => "context",
        Do::State | Do::Goal(_) => "goal",
        Do::Tasks(_) => "tasks",
        Do::Phase | Do::EnterPhase(_) => "phase",
        _ => "answer",
    }
}

/// What helps where a rewind was refused, in the words of the conversation: nobody types flags of
/// the command line here.
fn for_rewind(hint: Clean) -> Clean {
    match hint.as_str().contains("--force") {
        true => Clean::new(
            "Esc Esc goes back over what others changed, as does --force behind the command; \
             /undo takes that back. Or go back in the conversation only",
        ),
        false => hint,
    }
}
