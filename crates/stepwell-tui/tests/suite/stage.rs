//! A terminal to press keys on, without a run or a store behind it.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use stepwell::model::{Mode, Time};
use stepwell::{Event, Message, Recorded, Seq, SessionId, Status};
use stepwell_tui::{
    Always, Clean, Effect, Ended, Input, Look, Opened, Question, QuestionKind, Reply, SessionCard,
    SessionRow, State, Theme, Told, ToolRun, Visit, draw, printed,
};
use unicode_width::UnicodeWidthStr;

/// A terminal to press keys on.
pub(crate) struct Stage {
    pub(crate) state: State,
    pub(crate) now: Duration,
    seq: u64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::sized(60, 20)
    }

    pub(crate) fn sized(columns: u16, rows: u16) -> Self {
        let look = Look {
            columns,
            rows,
            theme: Theme::PLAIN,
            model: Clean::new("anthropic/sonnet"),
            mode: Mode::ConfirmSensitive,
            folder: Clean::new("~/project"),
        };
        Self { state: State::new(look), now: Duration::from_secs(100), seq: 0 }
    }

    /// One on which a session is open.
    pub(crate) fn open() -> Self {
        let mut stage = Self::new();
        stage.reply(Reply::Opened(Box::new(opened(Status::Success))));
        stage
    }

    pub(crate) fn input(&mut self, input: Input) -> Vec<Effect> {
        self.state.update(self.now, input)
    }

    pub(crate) fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Presses a key: `a`, `enter`, `ctrl+c`, `shift+tab`.
    pub(crate) fn key(&mut self, name: &str) -> Vec<Effect> {
        self.input(Input::Key(key(name)))
    }

    /// Types a text, key by key.
    pub(crate) fn type_text(&mut self, text: &str) -> Vec<Effect> {
        text.chars()
            .flat_map(|c| self.input(Input::Key(KeyEvent::from(KeyCode::Char(c)))))
            .collect()
    }

    /// Types a line and sends it.
    pub(crate) fn send(&mut self, text: &str) -> Vec<Effect> {
        self.input(Input::Paste(text.to_owned()));
        self.key("enter")
    }

    pub(crate) fn told(&mut self, told: Told) -> Vec<Effect> {
        self.input(Input::Run(told))
    }

    /// An answer. A session that is opened was asked for.
    pub(crate) fn reply(&mut self, mut reply: Reply) -> Vec<Effect> {
        if let Reply::Opened(opened) = &mut reply {
            if !self.state.is_opening() {
                self.state.open_session(opened.card.id.to_string(), None, opened.resume);
            }
            opened.opening = self.state.passage.opening().map_or(0, |opening| opening.number);
        }
        self.input(Input::Reply(reply))
    }

    pub(crate) fn record(&mut self, event: impl Into<Event>) -> Vec<Effect> {
        self.seq += 1;
        let event = recorded(self.seq, event);
        self.told(Told::Recorded(Box::new(event)))
    }

    pub(crate) fn end(&mut self, status: Status) -> Vec<Effect> {
        self.told(Told::Ended(Ended { status, why: Clean::default(), hint: None }))
    }

    pub(crate) fn start_tool(&mut self, call: &str, preview: &str) {
        let run = ToolRun {
            call: call.into(),
            tool: Clean::new("run_command"),
            preview: Clean::new(preview),
        };
        self.told(Told::ToolStarted(run));
    }

    /// Chooses an answer with the arrow keys, and gives it.
    pub(crate) fn choose(&mut self, label: &str) -> Vec<Effect> {
        // To the first one, wherever the choice is.
        (0..8).for_each(|_| drop(self.key("up")));
        let is_chosen = |stage: &Self| {
            let asked = stage.state.asked().expect("something is asked");
            asked.choice.is_some_and(|it| it.label(&asked.question).starts_with(label))
        };
        let mut left = 8;
        while !is_chosen(self) {
            assert!(left > 0, "{label} is not offered: {}", self.screen());
            left -= 1;
            self.key("down");
        }
        self.key("enter")
    }

    /// What would be printed into the scrollback now.
    pub(crate) fn printed(&mut self) -> String {
        let blocks = self.state.take_printable();
        let lines = blocks.iter().flat_map(|block| printed(&self.state, block));
        lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
    }

    /// What is on the screen, drawn by ratatui.
    pub(crate) fn screen(&self) -> String {
        let picture = draw(&self.state);
        let (columns, rows) = (self.state.look.columns, picture.lines.len() as u16);
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal
            .draw(|frame| {
                let area = frame.area();
                if let Some(at) = picture.render(area, frame.buffer_mut()) {
                    frame.set_cursor_position(at);
                }
            })
            .unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            let (mut text, mut x) = (String::new(), 0);
            while x < columns {
                let symbol = buffer[(x, y)].symbol();
                text.push_str(symbol);
                // A wide one covers the next.
                x += if symbol.width() > 1 { 2 } else { 1 };
            }
            text.trim_end().to_owned()
        };
        (0..rows).map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.rsplit_once('+') {
        Some((modifier, name)) if !name.is_empty() => (modifier, name),
        _ => ("", name),
    };
    let modifiers = match modifiers {
        "ctrl" => KeyModifiers::CONTROL,
        "alt" => KeyModifiers::ALT,
        "shift" => KeyModifiers::SHIFT,
        _ => KeyModifiers::NONE,
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" if modifiers == KeyModifiers::SHIFT => KeyCode::BackTab,
        "tab" => KeyCode::Tab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        name => KeyCode::Char(name.chars().next().expect("a key has a name")),
    };
    KeyEvent::new(code, modifiers)
}

pub(crate) fn id(name: &str) -> SessionId {
    name.parse().expect("a name of a session")
}

pub(crate) fn recorded(seq: u64, event: impl Into<Event>) -> Recorded {
    Recorded { seq: Seq::new(seq), at: Time::from_micros(0), id: None, event: event.into() }
}

pub(crate) fn card(status: Status) -> SessionCard {
    SessionCard {
        id: id("s-one"),
        title: Clean::new("tidy up"),
        status,
        model: Clean::new("anthropic/sonnet"),
        mode: None,
        phase: Some(Clean::new("plan")),
        cost: Clean::new("$0.12"),
        left: Some(Clean::new("$0.88")),
        context: Some(12),
        is_flow: false,
        is_guided: false,
    }
}

/// The opening of a session of this store.
pub(crate) fn open(session: &str, resume: bool, opening: u64) -> Effect {
    Effect::Open { session: session.into(), store: None, resume, opening }
}

/// A command of the user's own, in the session that was opened first.
pub(crate) fn shell(command: &str) -> Effect {
    Effect::Shell { command: command.into(), visit: Visit(1) }
}

pub(crate) fn opened(status: Status) -> Opened {
    let events = vec![
        recorded(1, Message::user("tidy up")),
        recorded(2, Message::assistant("").calling("c1", "read_file", r#"{"path":"a.txt"}"#)),
        recorded(3, Message::tool_result("c1", "one\ntwo\nthree\nfour\nfive")),
        recorded(4, Message::assistant("Done: **all** is tidy.")),
    ];
    Opened {
        opening: 0,
        place: None,
        card: card(status),
        events,
        more: false,
        unheard: 0,
        resume: true,
        rests: false,
        stopped: false,
        waiting: 0,
        seq: Seq::new(4),
        elsewhere: None,
    }
}

pub(crate) fn row(name: &str, task: &str) -> SessionRow {
    SessionRow {
        id: id(name),
        store: None,
        label: None,
        task: Clean::new(task),
        status: Status::Success,
        cut_off: false,
        rests: false,
        waiting: 0,
        used_at: Time::from_micros(0),
        when: Clean::new("3m ago"),
        agent: Clean::new("coder"),
        tags: Vec::new(),
        pinned: false,
        hits: Vec::new(),
        foreign: None,
    }
}

pub(crate) fn question(gate: &str) -> Question {
    Question {
        session: id("s-one"),
        gate: gate.into(),
        prompt: Clean::new("May write_file change notes.md?"),
        kind: QuestionKind::Approval,
        detail: Some(Clean::new("--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n")),
        asker: None,
        default: None,
        tool: Some(Clean::new("write_file")),
        always: Some(Always { call: None }),
    }
}
