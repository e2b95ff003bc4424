//! Flows: the cost of a node without its model, early and late in a graph of 1,000 tasks, and the
//! time that a nearly finished session takes before its first call.
//!
//! `cargo bench -p stepwell-bench --bench flow`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "a benchmark's table is its answer")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use stepwell::log::Redactor;
use stepwell::model::{Flow as Described, NodeState, Usage};
use stepwell::{Created, Message, Stepwell};
use stepwell_agent::context::Context;
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::{Answer, CallError, Delta, Ended, Fault, Provider, Request};
use stepwell_agent::run::{
    Allowed, EventSink, FrontEnd, Keeping, Patience, RunEvent, Setup, SharedBudget, Wisher,
};
use stepwell_agent::tool::ToolEnv;
use stepwell_bench::{Table, Times};
use stepwell_flow::spec::Spec;
use stepwell_flow::template::Scope;
use stepwell_flow::{Agents, Flow, History, OutputFolder, Over, Parts, Stored};

const TASKS: usize = 1_000;

/// A model that answers at once, except in one lane, which it may refuse.
#[derive(Debug)]
struct Instantly {
    refuses: Option<&'static str>,
    /// The time of the first request.
    asked: Mutex<Option<Instant>>,
}

impl Provider for Instantly {
    fn name(&self) -> &str {
        "bench"
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.asked.lock().unwrap().get_or_insert_with(Instant::now);
        let refused = self.refuses == Some(request.turn.lane);
        let message = Message::assistant("What was found, in a few words. ".repeat(8));
        let usage = Some(Usage { input: 200, output: 60, ..Usage::default() });
        Box::pin(async move {
            match refused {
                true => Err(CallError {
                    provider: "bench".to_owned(),
                    what: "not now".to_owned(),
                    fault: Fault::Refused,
                }),
                false => Ok(Answer { message, usage, cost: None, ended: Ended::Complete }),
            }
        })
    }
}

struct Crew(Arc<Setup>, Redactor);

impl Agents for Crew {
    fn setup(&self, _: &str, _: Option<&[String]>) -> Result<Arc<Setup>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn redactor(&self) -> &Redactor {
        &self.1
    }
}

/// Records when each node was done.
fn stopwatch(done: &Arc<Mutex<Vec<Instant>>>) -> FrontEnd {
    let done = Arc::clone(done);
    let events = EventSink::to(move |event| {
        if let RunEvent::Node(status) = event
            && status.state == NodeState::Done
        {
            done.lock().unwrap().push(Instant::now());
        }
    });
    let (_, wishes) = Wisher::new();
    FrontEnd { events, patience: Patience::Pause, wishes }
}

/// Tasks that each depend on the one before, so that their times can be separated.
fn spec() -> String {
    let mut text = "version: 0\nname: bench\nagents: {a: {prompt: You look things up.}}\n\
                    pattern:\n  type: workflow\n  config:\n    tasks:\n"
        .to_owned();
    for n in 0..TASKS {
        let (deps, input) = match n {
            0 => ("[]".to_owned(), "'Begin.'".to_owned()),
            _ => (format!("[t{}]", n - 1), format!("'After {{{{ tasks.t{}.response }}}}'", n - 1)),
        };
        writeln!(text, "      - {{id: t{n}, agent: a, deps: {deps}, input: {input}}}").unwrap();
    }
    text
}

fn setup(model: &Arc<Instantly>, root: &std::path::Path, redactor: Redactor) -> Setup {
    let (mode, limits) = (Mode::Yolo, Limits::default());
    Setup {
        provider: model.clone(),
        model: "bench".to_owned(),
        cost: Arc::new(|_| None),
        tools: Vec::new(),
        place: ToolEnv::new(root.to_owned()),
        rules: Rules { mode, retry_unsafe: false, effects: BTreeMap::new(), limits },
        redactor,
        max_output: 1_000,
        timeout: None,
        dry_run: false,
        dispatcher: None,
        context: Context::default(),
        keeping: Keeping::default(),
    }
}

/// Runs or resumes the flow. Returns when each node was done, and the time from opening the store
/// to the first call.
fn run(
    root: &std::path::Path,
    text: &str,
    refuses: Option<&'static str>,
) -> (Vec<Instant>, Duration) {
    let began = Instant::now();
    let model = Arc::new(Instantly { refuses, asked: Mutex::new(None) });
    let well = Stepwell::open(root.join(".stepwell")).unwrap();
    let id = "bench".parse().unwrap();
    let none: BTreeMap<String, String> = BTreeMap::new();
    let (session, history, spec) = if well.store().exists(&id).unwrap() {
        let session = well.resume(&id).unwrap();
        let (history, reading) = History::read_with_spec(&session).unwrap();
        (session, history, reading.unwrap().spec)
    } else {
        let spec = Spec::parse(text, "bench.yaml", &none).unwrap().spec;
        let stored = Stored::new(text, BTreeMap::new());
        let flow = Described {
            name: "bench".to_owned(),
            pattern: "workflow".to_owned(),
            spec: stored.spec,
            hash: stored.hash,
            variables: BTreeMap::new(),
        };
        let created = Created { flow: Some(flow), ..Created::new(id, "bench") };
        let session = well.create(created).unwrap();
        let history = History::read(&session).unwrap();
        (session, history, spec)
    };
    let shared_budget = SharedBudget::new(Allowed::default(), history.spent, history.calls);
    let redactor = Redactor::new([]);
    let crew = Crew(Arc::new(setup(&model, root, redactor.clone())), redactor);
    let done = Arc::default();
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let parts = Parts {
        session: &session,
        spec: &spec,
        agents: &crew,
        variables: Scope::new(),
        front: stopwatch(&done),
        interrupt,
        shared_budget,
    };
    let flow = Flow::new(parts, history);
    let folder = OutputFolder { root: root.to_owned(), over: Over::Refuse, store: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(flow.run(Patience::Pause, &folder)).unwrap();
    drop(flow);
    let asked = model.asked.lock().unwrap().expect("it was asked");
    let done = std::mem::take(&mut *done.lock().unwrap());
    (done, asked - began)
}

fn main() {
    let text = spec();
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let whole = folder();
    let (done, _) = run(whole.path(), &text, None);
    let nodes: Vec<Duration> = done.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let around = |from: usize, to: usize| Times::from_samples(nodes[from..to].iter().copied());
    let (early, late) = (around(10, 210), around(TASKS - 202, TASKS - 2));
    let table = Table::begin();
    table.row("overhead of a node around 1,000", &late, ("around 10", &early), "≤ 1.1x");
    let most = folder();
    run(most.path(), &text, Some("t999"));
    let waits = (0..20).map(|_| run(most.path(), &text, Some("t999")).1);
    let waits = Times::from_samples(waits.collect::<Vec<_>>());
    let parsed = Times::of(20, || {
        let none: BTreeMap<String, String> = BTreeMap::new();
        drop(Spec::parse(&text, "bench.yaml", &none).unwrap());
    });
    let what = "resume of 1,000 tasks, 999 done, to the first call";
    table.row(what, &waits, ("its spec read", &parsed), "≤ 50 ms");
}
