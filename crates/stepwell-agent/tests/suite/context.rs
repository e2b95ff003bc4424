//! After any mix of messages, calls, compactions, truncations, rewinds and forks, the model's
//! conversation is valid for every vendor, contains everything protected, and fits.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config;
use stepwell::log::{MessageOrigin, Timeline};
use stepwell::model::{Compacted, Edited, Part, Rewound, Role, Scope, Undone};
use stepwell::store::Span;
use stepwell::work::Pins;
use stepwell::{Event, Lane, Message, Recorded, Seq, Session, Stepwell, View};
use stepwell_agent::context::plan::{Ask, Keep, Plan, Room, Why};
use stepwell_agent::context::tokens::{Counter, Family};
use stepwell_agent::context::window::{self, Window};
use stepwell_agent::provider::remote::{self, Protocol};
use stepwell_agent::provider::{Request, Turn};

const COUNTER: Counter = Counter(Family::Other);

fn config() -> Config {
    let usual = Config::default();
    Config { cases: usual.cases.max(1_000), failure_persistence: None, ..usual }
}

/// An operation on a session. Numbers are fractions of what exists, in 1/256.
#[derive(Clone, Debug)]
enum Op {
    Instruct,
    Say {
        words: usize,
    },
    /// An answer with this many calls, of which this many get results, with this many words.
    Step {
        calls: usize,
        answered: usize,
        words: usize,
    },
    /// A message as another system may have written it.
    Foreign {
        role: Role,
        calls: Vec<u8>,
        results: Vec<u8>,
    },
    Pin {
        which: u8,
    },
    Unpin {
        which: u8,
    },
    /// The window shrinks, to a summary of this many words or without one.
    Shrink {
        why: Why,
        keep: u64,
        messages: Option<usize>,
        summary: Option<usize>,
    },
    UndoCompaction {
        which: u8,
    },
    Rewind {
        to: u8,
    },
    UndoRewind {
        which: u8,
    },
    Fork {
        at: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let role = prop::sample::select(vec![Role::User, Role::Assistant, Role::Tool]);
    let why =
        prop::sample::select(vec![Why::Near, Why::Long, Why::Refused, Why::Asked, Why::Phase]);
    let ids = || prop::collection::vec(0_u8..3, 0..3);
    prop_oneof![
        1 => Just(Op::Instruct),
        5 => (1_usize..60).prop_map(|words| Op::Say { words }),
        12 => (0_usize..4, 0_usize..5, 1_usize..120)
            .prop_map(|(calls, answered, words)| Op::Step { calls, answered, words }),
        1 => (role, ids(), ids())
            .prop_map(|(role, calls, results)| Op::Foreign { role, calls, results }),
        3 => any::<u8>().prop_map(|which| Op::Pin { which }),
        1 => any::<u8>().prop_map(|which| Op::Unpin { which }),
        6 => (why, 0_u64..400, prop::option::of(1_usize..8), prop::option::of(1_usize..200))
            .prop_map(|(why, keep, messages, summary)| Op::Shrink { why, keep, messages, summary }),
        2 => any::<u8>().prop_map(|which| Op::UndoCompaction { which }),
        2 => any::<u8>().prop_map(|to| Op::Rewind { to }),
        1 => any::<u8>().prop_map(|which| Op::UndoRewind { which }),
        1 => any::<u8>().prop_map(|at| Op::Fork { at }),
    ]
}

/// Does the user ask for something?
fn is_request(event: &Recorded) -> bool {
    matches!(&event.event, Event::Message(it) if window::is_request(it))
}

/// A session under test, and the window that its runner would have.
struct Conversation {
    well: Stepwell,
    session: Session,
    window: Window,
    /// The recorded events.
    log: Vec<Recorded>,
    /// The number of call ids so far, each used once.
    calls: usize,
    /// Does the log hold events that no runner would write? Then the runner's window, which only
    /// knows its own events, is not compared with the view.
    foreign: bool,
    room: Room,
}

/// Would both vendors accept the request?
pub(crate) fn both_vendors_take(request: Request<'_>, after: &dyn std::fmt::Debug) {
    for (ours, theirs) in [
        (Protocol::OpenAi, stepwell_strict::Protocol::OpenAi),
        (Protocol::Anthropic, stepwell_strict::Protocol::Anthropic),
    ] {
        let body = remote::body(ours, "vendor", request);
        stepwell_strict::check(theirs, &body)
            .unwrap_or_else(|why| panic!("{ours:?} after {after:?}: {why}\n{body:#}"));
    }
}

impl Conversation {
    fn new(limit: u64, full: u64) -> Self {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("t")).unwrap();
        let window = Window::new(Lane::main(), COUNTER);
        let room = Room { fixed: 0, limit, full };
        let log = session.events(Span::ALL).unwrap().events;
        let mut conversation = Self { well, session, window, log, calls: 0, foreign: false, room };
        conversation.add(Message::user("the goal of it all, word for word"));
        conversation
    }

    fn add(&mut self, event: impl Into<Event>) {
        let event = self.append(event.into()).unwrap();
        self.window.apply(&event);
    }

    /// Records an event, unless the session refuses it.
    fn append(&mut self, event: Event) -> stepwell::Result<Recorded> {
        let seq = self.session.append(event.clone())?;
        let recorded = Recorded { seq, at: self.session.now(), id: None, event };
        self.log.push(recorded.clone());
        Ok(recorded)
    }

    /// The live events.
    fn live(&self) -> Vec<&Recorded> {
        let timeline = Timeline::at(self.log.last().unwrap().seq, self.log.iter());
        self.log.iter().filter(|event| timeline.contains(event.seq)).collect()
    }

    fn view(&self) -> View {
        View::of(&Lane::main(), self.log.clone())
    }

    fn first_request(&self) -> Option<Seq> {
        self.live().into_iter().find(|event| is_request(event)).map(|event| event.seq)
    }

    /// The window of a runner that resumes the session.
    fn fresh(&self) -> Window {
        self.on(self.view())
    }

    fn on(&self, view: View) -> Window {
        Window::new(Lane::main(), COUNTER).of(view, self.first_request(), |_| false)
    }

    fn apply(&mut self, op: &Op) {
        let share = |which: u8, of: usize| usize::from(which) * of / 256;
        let text = |words: usize| "some words and more ".repeat(words.div_ceil(4));
        match op {
            Op::Instruct => self.add(Message::system("stand straight")),
            Op::Say { words } => self.add(Message::user(text(*words))),
            Op::Step { calls, answered, words } => {
                let mut ids = Vec::new();
                let mut message = Message::assistant(text(*words));
                for _ in 0..*calls {
                    self.calls += 1;
                    ids.push(format!("call-{}", self.calls));
                    message = message.calling(&ids[ids.len() - 1], "read", r#"{"path":"a"}"#);
                }
                self.add(message);
                for id in ids.iter().take(*answered) {
                    self.add(Message::tool_result(id, text(*words)));
                }
                // A runner and a view treat calls without results differently.
                if answered < calls {
                    self.window = self.fresh();
                }
            }
            Op::Foreign { role, calls, results } => {
                self.foreign = true;
                let mut message = Message::new(*role, vec![Part::text("from elsewhere")]);
                for id in results {
                    message.parts.extend(Message::tool_result(format!("f{id}"), "r").parts);
                }
                let message =
                    calls.iter().fold(message, |m, id| m.calling(format!("f{id}"), "t", "{}"));
                self.add(message);
            }
            Op::Pin { which } => {
                let shown = self.view().messages;
                if let Some(shown) = shown.get(share(*which, shown.len())) {
                    self.add(Edited { pin_messages: [shown.seq].into(), ..Edited::default() });
                }
            }
            Op::Unpin { which } => {
                let pins: Vec<Seq> = self.session.pins().unwrap().iter().collect();
                if let Some(seq) = pins.get(share(*which, pins.len())) {
                    self.add(Edited { unpin_messages: [*seq].into(), ..Edited::default() });
                }
            }
            Op::Shrink { why, keep, messages, summary } => {
                let keep = Keep { tokens: *keep, messages: *messages };
                self.shrink(*why, keep, summary.map(text).as_ref());
            }
            Op::UndoCompaction { which } => {
                let made = |event: &Recorded| matches!(event.event, Event::Compacted(_));
                self.undo(*which, made, |of| Undone::Compaction { of }.into());
            }
            Op::Rewind { to } => {
                let to = Seq::new((share(*to, self.log.len()) as u64).max(1));
                let (scope, restored) = (Scope::Chat, stepwell::model::Restored::default());
                self.append(Rewound { to, scope, restored }.into()).unwrap();
                self.window = self.fresh();
            }
            Op::UndoRewind { which } => {
                // The undoing event is rewound, too.
                let made = |event: &Recorded| {
                    matches!(event.event, Event::Rewound(_) | Event::Undone(Undone::Rewind { .. }))
                };
                let undo = |of| {
                    let (scope, restored) = (Scope::Chat, stepwell::model::Restored::default());
                    Undone::Rewind { of, scope, restored }.into()
                };
                self.undo(*which, made, undo);
            }
            Op::Fork { at } => {
                let at = Seq::new((share(*at, self.log.len()) as u64).max(1));
                self.session = self.well.fork(self.session.id(), Some(at)).unwrap();
                self.log = self.session.events(Span::ALL).unwrap().events;
                self.window = self.fresh();
            }
        }
        self.check(op);
    }

    fn undo(&mut self, which: u8, made: fn(&Recorded) -> bool, undo: impl Fn(Seq) -> Event) {
        let all: Vec<Seq> = self.log.iter().filter(|it| made(it)).map(|it| it.seq).collect();
        let chosen = all.get(usize::from(which) * all.len() / 256);
        // An undone one is refused, which is fine.
        if let Some(of) = chosen
            && self.append(undo(*of)).is_ok()
        {
            self.window = self.fresh();
        }
    }

    /// Shrinks as a runner does: until nothing is due.
    fn shrink(&mut self, why: Why, keep: Keep, summary: Option<&String>) {
        if self.foreign {
            self.window = self.fresh();
        }
        let pins = self.session.pins().unwrap();
        for turn in 0.. {
            assert!(turn < 50, "it shrinks for ever");
            let due = self.window.tokens() > self.room.limit || turn == 0;
            let ask = Ask::new(&self.window, &pins, self.room, keep, why);
            let plan = if due { Plan::of(&ask) } else { None };
            let Some(plan) = plan else { break };
            let before = self.window.tokens();
            let fits = |text: &String| {
                let tokens = COUNTER.message(&Message::user(text.as_str()));
                tokens <= plan.room && tokens < plan.taken
            };
            let summary = summary.cloned().filter(fits);
            let expected = plan.before - plan.taken
                + summary.as_ref().map_or(0, |it| COUNTER.message(&Message::user(it.as_str())));
            self.add(Compacted { summary, ..plan.event(Lane::main()) });
            assert_eq!(self.window.tokens(), expected, "the plan tells what is left");
            assert!(self.window.tokens() < before, "it shrinks");
        }
        let protected: u64 = self.protected_tokens(&pins);
        if protected <= self.room.full && why == Why::Near {
            assert!(self.window.tokens() <= self.room.full, "{} do not fit", self.window.tokens());
        }
    }

    /// Tokens of the protected messages.
    fn protected_tokens(&self, pins: &Pins) -> u64 {
        let entries = self.window.entries();
        let latest = entries
            .iter()
            .rev()
            .find(|e| e.made == MessageOrigin::Recorded && e.role == Role::User);
        let named = |seq: Seq| {
            pins.contains(seq)
                || self.window.first_request() == Some(seq)
                || latest.is_some_and(|latest| latest.seq == seq)
        };
        let (mut sum, mut tied) = (0, BTreeSet::new());
        for (n, entry) in
            entries.iter().enumerate().filter(|(_, e)| e.made != MessageOrigin::Results)
        {
            let results = entries.get(n + 1).filter(|next| next.made == MessageOrigin::Results);
            let answers = results.map(|it| it.answers.clone()).unwrap_or_default();
            let open = entry.calls > answers.iter().flatten().count();
            let pinned = answers.iter().flatten().any(|seq| named(*seq));
            let protected = named(entry.seq) || open || pinned || tied.contains(&entry.seq);
            if entry.made != MessageOrigin::Summary && protected {
                // The text that came with a result stays with it.
                tied.extend(answers.into_iter().flatten());
                sum += entry.tokens + results.map_or(0, |results| results.tokens);
            }
        }
        sum
    }

    fn check(&self, after: &Op) {
        let view = self.view();
        let messages: Vec<Message> =
            view.messages.iter().map(|shown| shown.message.clone()).collect();
        View::check(&messages).unwrap();
        let window = self.on(view.clone());
        let request = Request {
            model: "m",
            system: window.instructions(),
            messages: window.messages(),
            tools: &[],
            max_output: 100,
            turn: Turn::default(),
        };
        if !window.messages().is_empty() {
            both_vendors_take(request, after);
        }
        self.check_protected(&view, &window, after);
        if !self.foreign {
            let bare = |window: &Window| -> Vec<_> {
                window.messages().iter().map(|it| (it.role, it.parts.clone())).collect()
            };
            assert_eq!(bare(&self.window), bare(&window), "after {after:?}");
            assert_eq!(self.window.entries(), window.entries(), "after {after:?}");
            assert_eq!(self.window.tokens(), window.tokens(), "after {after:?}");
            assert_eq!(self.window.instructions(), window.instructions(), "after {after:?}");
        }
    }

    /// Every protected message is present, word for word.
    fn check_protected(&self, view: &View, window: &Window, after: &Op) {
        let live = self.live();
        let all = &self.log;
        let message = |seq: Seq| {
            live.iter().find(|event| event.seq == seq).and_then(|event| match &event.event {
                Event::Message(message) => Some(message),
                _ => None,
            })
        };
        let shown = |seq: Seq| {
            let recorded = message(seq).unwrap();
            let said = recorded.text();
            view.messages.iter().any(|it| it.seq == seq && it.message.text() == said)
                || recorded
                    .parts
                    .iter()
                    .all(|part| part.as_text().is_none_or(|t| t.trim().is_empty()))
        };
        // The original request, and the latest one.
        let latest = live.iter().rev().find(|event| is_request(event));
        for request in [live.iter().find(|event| is_request(event)), latest].into_iter().flatten() {
            assert!(shown(request.seq), "{} is gone after {after:?}", request.seq);
        }
        // Instructions.
        for event in &live {
            if let Event::Message(it) = &event.event
                && it.role == Role::System
            {
                assert!(window.instructions().contains(&it.text()), "after {after:?}");
            }
        }
        // Pins, unless their message was hidden before they were set.
        let undone: BTreeSet<Seq> = live
            .iter()
            .filter_map(|event| match &event.event {
                Event::Undone(Undone::Compaction { of }) => Some(*of),
                _ => None,
            })
            .collect();
        for seq in Pins::of(all).iter().filter(|seq| message(*seq).is_some()) {
            let set = all.iter().rev().find_map(|event| match &event.event {
                Event::Edited(it) if it.pin_messages.contains(&seq) => Some(event.seq),
                _ => None,
            });
            let hidden = live.iter().any(|event| {
                matches!(&event.event, Event::Compacted(it)
                    if Some(event.seq) < set && !undone.contains(&event.seq)
                        && (it.from..=it.to).contains(&seq) && !it.pinned.contains(&seq))
            });
            assert!(hidden || shown(seq), "pin {seq} is gone after {after:?}");
        }
    }
}

#[test]
fn whatever_happens_the_window_is_valid_holds_what_is_protected_and_fits() {
    let cases = (prop::collection::vec(op(), 1..40), 200_u64..1_500, 1_u64..1_000);
    proptest!(config(), |((ops, limit, more) in cases)| {
        let mut conversation = Conversation::new(limit, limit + more);
        ops.iter().for_each(|op| conversation.apply(op));
        // The store's own view agrees.
        prop_assert_eq!(conversation.session.view(&Lane::main()).unwrap(), conversation.view());
    });
}
