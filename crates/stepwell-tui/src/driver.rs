//! The loop: waits for keys, runs and stores together, draws, and has effects carried out.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use base64::Engine as _;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use ratatui::text::Line;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::draw::{draw, printed};
use crate::effect::{Effect, Input, Reply};
use crate::own_editor;
use crate::raw::Raw;
use crate::screen::Screen;
use crate::state::State;
use crate::told::Told;

/// Where what happened goes: answers to effects, and what runs tell.
pub type Inputs = UnboundedSender<Input>;

/// How often the clock of a run that works is drawn.
const TICK: Duration = Duration::from_millis(250);
/// How many bytes of a frame are written at once: a terminal has a whole one to show, and a long
/// conversation is not written line by line.
const FRAME: usize = 64 << 10;
/// How many inputs are taken in before the next frame: a quick model does not draw a frame for each
/// of its pieces.
const BATCH: usize = 256;

/// Carries out what the terminal wants done.
pub trait Backstage {
    /// Carries an effect out. It never waits: what comes of it is sent as an input.
    fn carry_out(&mut self, effect: Effect);

    /// The user's own editor, as words of a command.
    fn editor(&self) -> Vec<String>;

    /// Stops what still runs, and waits until it is saved.
    fn close(&mut self);
}

/// A channel for inputs.
#[derive(Debug)]
pub struct InputChannel {
    /// The end of those who carry effects out.
    pub to: Inputs,
    /// The loop's end.
    pub from: UnboundedReceiver<Input>,
}

/// Opens a channel for inputs.
#[must_use]
pub fn inputs() -> InputChannel {
    let (to, from) = unbounded_channel();
    InputChannel { to, from }
}

/// Shows a state on the terminal until the user leaves.
///
/// # Errors
/// If the terminal is gone.
pub fn run(
    state: State,
    backstage: &mut dyn Backstage,
    inputs: UnboundedReceiver<Input>,
    first: Vec<Effect>,
) -> io::Result<State> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let raw = Raw::enter()?;
    let row = crossterm::cursor::position().ok().map(|(_, row)| row);
    let size = crossterm::terminal::size()?;
    let writer = BufWriter::with_capacity(FRAME, io::stdout());
    let screen = Screen::new(writer, size, row);
    first.into_iter().for_each(|effect| backstage.carry_out(effect));
    let left = tokio.block_on(async {
        let driver = Driver {
            state,
            backstage,
            inputs,
            screen,
            raw,
            keys: Some(EventStream::new()),
            began: Instant::now(),
            ticks: ticks(),
            hang_up: signal(SignalKind::hangup())?,
            goes_on: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            suspends: false,
            terminate: signal(SignalKind::terminate())?,
        };
        driver.run().await
    });
    backstage.close();
    let (mut state, mut inputs) = left?;
    drain_inputs(&mut state, &mut inputs);
    Ok(state)
}

/// Takes in what became of what was still to be said when the user left.
pub(crate) fn drain_inputs(state: &mut State, inputs: &mut UnboundedReceiver<Input>) {
    while let Ok(input) = inputs.try_recv() {
        let counts = matches!(
            input,
            Input::Run(Told::Began(_) | Told::Ended(_)) | Input::Reply(Reply::NotSaid { .. })
        );
        if counts {
            // Nobody is there to carry out more.
            drop(state.update(state.now, input));
        }
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

struct Driver<'a> {
    state: State,
    backstage: &'a mut dyn Backstage,
    inputs: UnboundedReceiver<Input>,
    screen: Screen<BufWriter<io::Stdout>>,
    raw: Raw,
    /// Absent while something else reads the terminal.
    keys: Option<EventStream>,
    began: Instant,
    ticks: Interval,
    hang_up: Signal,
    terminate: Signal,
    /// The process goes on after it was stopped.
    goes_on: Signal,
    /// Is the process to be stopped before the next frame?
    suspends: bool,
}

impl Driver<'_> {
    async fn run(mut self) -> io::Result<(State, UnboundedReceiver<Input>)> {
        loop {
            self.show()?;
            let Some(input) = self.next().await else {
                self.end_at_once()?;
                break;
            };
            self.handle(input)?;
            for _ in 0..BATCH {
                let Ok(input) = self.inputs.try_recv() else { break };
                self.handle(input)?;
            }
            if self.state.has_left() {
                break;
            }
            if std::mem::take(&mut self.suspends) {
                self.suspend().await?;
            }
        }
        self.keys = None;
        self.screen.close()?;
        drop(self.raw);
        Ok((self.state, self.inputs))
    }

    /// The terminal is gone: nothing is waited for, and what waits is kept.
    fn end_at_once(&mut self) -> io::Result<()> {
        while !self.state.has_left() {
            self.handle(Input::Ending)?;
        }
        Ok(())
    }

    fn show(&mut self) -> io::Result<()> {
        let blocks = self.state.take_printable();
        let lines: Vec<Line<'static>> =
            blocks.iter().flat_map(|block| printed(&self.state, block)).collect();
        let picture = draw(&self.state);
        if self.screen.is_lost() && !picture.full {
            let row = self.cursor_row();
            self.screen.found(row);
        }
        self.screen.show(lines, &picture)
    }

    /// Where the cursor is. The terminal answers on its input, which nobody else may read then.
    fn cursor_row(&mut self) -> Option<u16> {
        self.keys = None;
        let row = ask_row();
        self.keys = Some(EventStream::new());
        row
    }

    /// What happens next; nothing, if the terminal or the process is to end.
    async fn next(&mut self) -> Option<Input> {
        let works =
            self.state.is_busy() || self.state.shells.running > 0 || self.state.is_opening();
        let moves = works || self.state.flash().is_some();
        let keys = self.keys.get_or_insert_with(EventStream::new);
        tokio::select! {
            biased;
            event = keys.next() => match event {
                Some(Ok(event)) => Some(read(event)),
                Some(Err(_)) | None => None,
            },
            input = self.inputs.recv() => input,
            _ = self.ticks.tick(), if moves => Some(Input::Tick),
            _ = self.hang_up.recv() => None,
            _ = self.terminate.recv() => None,
        }
    }

    fn handle(&mut self, input: Input) -> io::Result<()> {
        if let Input::Resize { columns, rows } = input {
            self.screen.resize(columns, rows);
        }
        let effects = self.state.update(self.began.elapsed(), input);
        effects.into_iter().try_for_each(|effect| self.carry_out(effect))
    }

    fn carry_out(&mut self, effect: Effect) -> io::Result<()> {
        match effect {
            Effect::Copy(text) => {
                let text = base64::engine::general_purpose::STANDARD.encode(text);
                let writer = self.screen.writer();
                write!(writer, "\u{1b}]52;c;{text}\u{7}")?;
                writer.flush()
            }
            Effect::Edit(text) => {
                let words = self.backstage.editor();
                let edited = self.aside(|| own_editor::edit(&words, &text))?;
                let reply = match edited {
                    Ok(text) => Reply::Edited(text),
                    Err(why) => Reply::Failed { why: why.into(), hint: None },
                };
                self.handle(Input::Reply(reply))
            }
            Effect::Suspend => {
                self.suspends = true;
                Ok(())
            }
            Effect::Redraw => {
                let (columns, rows) = crossterm::terminal::size()?;
                self.screen.resize(columns, rows);
                Ok(())
            }
            Effect::Leave => Ok(()),
            effect => {
                self.backstage.carry_out(effect);
                Ok(())
            }
        }
    }

    /// Stops the process, as a shell's user wants. It stops some time after it asked for that, so
    /// the terminal is left alone until the process is told to go on.
    async fn suspend(&mut self) -> io::Result<()> {
        self.step_aside()?;
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.goes_on.recv().await;
        self.come_back()
    }

    /// Leaves the terminal to something else for a while.
    fn aside<T>(&mut self, what: impl FnOnce() -> T) -> io::Result<T> {
        self.step_aside()?;
        let answer = what();
        self.come_back()?;
        Ok(answer)
    }

    fn step_aside(&mut self) -> io::Result<()> {
        self.keys = None;
        self.screen.close()?;
        self.raw.leave();
        Ok(())
    }

    fn come_back(&mut self) -> io::Result<()> {
        self.raw.again()?;
        let (columns, rows) = crossterm::terminal::size()?;
        self.screen.reopen((columns, rows), ask_row());
        self.state.update(self.began.elapsed(), Input::Resize { columns, rows });
        Ok(())
    }
}

/// Asks the terminal in which row the cursor is. Some do not say.
fn ask_row() -> Option<u16> {
    // A stream of keys that was just let go of leaves a call to wake up behind, which would be taken
    // for a terminal that does not answer.
    let _ = crossterm::event::poll(Duration::ZERO);
    crossterm::cursor::position().ok().map(|(_, row)| row)
}

fn read(event: Event) -> Input {
    match event {
        Event::Key(key) => Input::Key(key),
        Event::Paste(text) => Input::Paste(text),
        Event::Resize(columns, rows) => Input::Resize { columns, rows },
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => Input::Tick,
    }
}
