//! What a flow shows as it goes: its nodes, live on a terminal, as plain lines in a pipe, as
//! events for programs; and the questions that it asks.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use stepwell::Event;
use stepwell::clock::Clock;
use stepwell::model::{NodeState, Spent, TaskStatus, Time};
use stepwell_flow::{NO_PERSON, NOBODY};
use stepwell_runtime::{NodeStatus, RunEvent};

use crate::console::{Console, Form, Paint, Style};
use crate::text::{cost, cut, grouped, one_line, took, visible};
use crate::wording;

/// How a flow is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Not at all: the answer comes at the end.
    Nothing,
    /// A line for each change.
    Lines,
    /// The nodes that are worked on, drawn anew as they change.
    Live,
    /// Every event on stdout.
    Events,
}

/// Shows a flow.
pub struct FlowLines {
    show: Show,
    paint: Paint,
    width: usize,
    clock: Arc<dyn Clock>,
    begun: Time,
    /// Nodes that are worked on, by their keys, and what they do.
    running: BTreeMap<String, String>,
    done: usize,
    /// Does it go through phases?
    is_guided: bool,
    spent: Spent,
    /// Lines that are drawn and can be drawn over.
    drawn: usize,
    unwritten: Option<io::Error>,
}

/// How many nodes are shown at once; the others are counted.
const SHOWN: usize = 12;

impl FlowLines {
    /// `wants_events` prints every event as JSON in place of lines for people.
    pub fn new(console: Console, clock: Arc<dyn Clock>, wants_events: bool) -> Self {
        let show = match (wants_events, console.form) {
            (true, _) => Show::Events,
            (_, Form::Json) => Show::Nothing,
            _ if console.is_live() => Show::Live,
            _ => Show::Lines,
        };
        Self {
            show,
            paint: console.paint,
            width: console.terminal.width.unwrap_or(100),
            begun: clock.now(),
            clock,
            running: BTreeMap::new(),
            done: 0,
            is_guided: false,
            spent: Spent::default(),
            drawn: 0,
            unwritten: None,
        }
    }

    /// Ends what was begun. An error says that the answer could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.wipe();
        self.unwritten.take().map_or(Ok(()), Err)
    }

    fn node(&mut self, status: &NodeStatus) {
        let key = status.key.clone();
        self.spent = status.spent;
        let who = match (status.agent.as_deref(), status.who.as_deref()) {
            (Some(agent), _) => agent,
            (None, Some(NO_PERSON)) => "nobody: agreed to beforehand",
            (None, Some(NOBODY)) => "its time was up: the default",
            (None, _) => "you",
        };
        let (style, word) = match status.state {
            NodeState::Started if status.agent.is_none() => (Style::Yellow, "asked"),
            NodeState::Started => (Style::Cyan, "started"),
            NodeState::Done => (Style::Green, "done"),
            NodeState::Failed => (Style::Red, "failed"),
            NodeState::Skipped => (Style::Dim, "skipped"),
        };
        match status.state {
            NodeState::Started if status.agent.is_some() => {
                self.running.insert(key.clone(), format!("{who}: begins"));
            }
            state => {
                self.running.remove(&key);
                self.done += usize::from(state == NodeState::Done);
            }
        }
        let error = status.error.as_deref();
        let why = error.map(|error| format!(": {}", one_line(error))).unwrap_or_default();
        self.aside(style, &format!("{key} {word} ({who}){why}"));
    }

    /// Says where guided work is: its phase, and its tasks.
    fn work(&mut self, event: &Event) {
        match event {
            Event::Phase(change) => {
                self.is_guided = true;
                self.aside(Style::Bold, &format!("== {} ==", change.to));
            }
            Event::Task(task) if self.is_guided && task.status != TaskStatus::Pending => {
                let text = format!("task {} {}: {}", task.id, task.status, task.description);
                self.aside(Style::Dim, &text);
            }
            _ => {}
        }
    }

    fn within(&mut self, key: &str, event: &RunEvent) {
        let does = match event {
            // A task's subagent works under the name of the task.
            RunEvent::Child { event, .. } => return self.within(key, event),
            RunEvent::ToolStarted { preview, .. } => format!("> {preview}"),
            RunEvent::Delta(_) => "answers".to_owned(),
            RunEvent::Step { .. } => "answered".to_owned(),
            RunEvent::Compacted { .. } => "its conversation was made shorter".to_owned(),
            _ => return,
        };
        if self.show == Show::Lines {
            if let RunEvent::ToolStarted { preview, .. } = event {
                self.aside(Style::Dim, &format!("  {key} > {}", one_line(preview)));
            }
            return;
        }
        let Some(line) = self.running.get_mut(key) else { return };
        let who = line.split(':').next().unwrap_or_default().to_owned();
        let next = format!("{who}: {}", one_line(&does));
        // Words come fast: only what reads differently is drawn.
        if *line != next {
            *line = next;
            self.wipe();
            self.draw();
        }
    }

    /// Says something above what is drawn.
    fn aside(&mut self, style: Style, text: &str) {
        if matches!(self.show, Show::Nothing | Show::Events) {
            return;
        }
        self.wipe();
        let line = cut(&one_line(text), self.width);
        // Nobody is left to tell if stderr is closed.
        let _ = writeln!(io::stderr(), "{}", self.paint.paint(style, &line));
        self.draw();
    }

    fn draw(&mut self) {
        if self.show != Show::Live {
            return;
        }
        let mut lines: Vec<String> = Vec::new();
        for (key, does) in self.running.iter().take(SHOWN) {
            lines.push(cut(&format!("  {key} {does}"), self.width));
        }
        if self.running.len() > SHOWN {
            lines.push(format!("  … and {} more", self.running.len() - SHOWN));
        }
        let time = took(self.clock.now().since(self.begun));
        lines.push(format!(
            "  {} done, {} running, {} tokens, {}, {time}",
            self.done,
            self.running.len(),
            grouped(self.spent.usage.total()),
            cost(&self.spent)
        ));
        let mut err = io::stderr();
        for line in &lines {
            let line = cut(&visible(line), self.width);
            let _ = writeln!(err, "{}", self.paint.paint(Style::Dim, &line));
        }
        self.drawn = lines.len();
    }

    fn wipe(&mut self) {
        let lines = std::mem::take(&mut self.drawn);
        if lines > 0 {
            let _ = write!(io::stderr(), "\u{1b}[{lines}A\u{1b}[0J");
        }
    }

    /// Writes to stdout. A flow does not stop because nobody reads it.
    fn say(&mut self, text: &str) {
        if self.unwritten.is_some() {
            return;
        }
        let mut out = io::stdout();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.unwritten = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
    }
}

impl super::questions::Show for FlowLines {
    fn see(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Recorded(event) if self.show == Show::Events => {
                if let Ok(line) = serde_json::to_string(event) {
                    self.say(&format!("{line}\n"));
                }
            }
            RunEvent::Recorded(event) => self.work(&event.event),
            RunEvent::Node(status) => self.node(status),
            RunEvent::Within { node, event, .. } => self.within(node, event),
            RunEvent::Notice(notice) => {
                self.wipe();
                let text = wording::run_notice(notice);
                let line = self.paint.paint(Style::Yellow, &one_line(&text));
                let _ = writeln!(io::stderr(), "{line}");
                self.draw();
            }
            _ => {}
        }
    }

    fn make_room(&mut self) {
        self.wipe();
    }

    fn paint(&self) -> Paint {
        self.paint
    }
}
