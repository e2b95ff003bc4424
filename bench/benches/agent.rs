//! The agent: the cost of a step without model and tools, early and late in a run.
//!
//! `cargo bench -p stepwell-bench --bench agent`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "a benchmark's table is its answer")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;
use stepwell::log::Redactor;
use stepwell::model::{Effect, Usage};
use stepwell::{Message, Stepwell};
use stepwell_agent::context::Context;
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::{Answer, CallError, Delta, Ended, Provider, Request, ToolSpec};
use stepwell_agent::run::{EventSink, FrontEnd, Keeping, Run, RunEvent, Setup};
use stepwell_agent::tool::{Done, Plan, Tool, ToolEnv};
use stepwell_bench::{Table, Times};

const STEPS: usize = 5_000;

/// A model that answers at once: it calls the tool a number of times.
#[derive(Debug, Default)]
struct Instantly(AtomicUsize);

impl Provider for Instantly {
    fn name(&self) -> &str {
        "bench"
    }

    fn answer<'a>(
        &'a self,
        _: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let text = "I look at the next file, and say why in a few words. ".repeat(8);
        let message = match n < STEPS {
            true => Message::assistant(text).calling(format!("c{n}"), "look", "{}"),
            false => Message::assistant("Done."),
        };
        let usage = Some(Usage { input: 1_000, output: 100, ..Usage::default() });
        Box::pin(async move { Ok(Answer { message, usage, cost: None, ended: Ended::Complete }) })
    }
}

/// A tool that returns 1 KB at once.
#[derive(Debug)]
struct Look(ToolSpec);

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn preview(&self, _: &Value) -> String {
        "look".to_owned()
    }

    fn plan(&self, _: &Value, _: &ToolEnv) -> Result<Plan, String> {
        Ok(Plan::default())
    }

    fn run<'a>(&'a self, _: &'a Value, _: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async { Done::ok("some text of a file ".repeat(50)) })
    }
}

/// The time of each complete step.
struct Stopwatch(Arc<Mutex<Vec<Instant>>>);

impl Stopwatch {
    /// A front end that notes the time of each step.
    fn front(&self) -> FrontEnd {
        let steps = Arc::clone(&self.0);
        FrontEnd::watching(EventSink::to(move |event| {
            if let RunEvent::Step { .. } = event {
                steps.lock().unwrap().push(Instant::now());
            }
        }))
    }
}

/// The process's peak memory, in megabytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let spec = ToolSpec {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        parameters: serde_json::json!({ "type": "object" }),
    };
    let effects: BTreeMap<_, _> = [("look".to_owned(), Effect::Pure)].into();
    let setup = Setup {
        provider: Arc::new(Instantly::default()),
        model: "bench".to_owned(),
        cost: Arc::new(|_| None),
        tools: vec![Arc::new(Look(spec))],
        place: ToolEnv::new(folder.path().to_owned()),
        rules: Rules {
            mode: Mode::Yolo,
            retry_unsafe: false,
            effects,
            limits: Limits { tokens: Some(u64::MAX), ..Limits::default() },
        },
        redactor: Redactor::new([]),
        max_output: 1_000,
        timeout: None,
        dry_run: false,
        dispatcher: None,
        context: Context::default(),
        keeping: Keeping::default(),
    };
    let well = Stepwell::open(folder.path().join(".stepwell")).unwrap();
    let session = well.create(well.draft("bench")).unwrap();
    let watch = Stopwatch(Arc::default());
    let before = memory();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(&session, &setup, watch.front()).unwrap();
        run.say("go").unwrap();
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        run.drive(interrupt).await.unwrap();
    });
    let grown = memory() - before;
    let steps: Vec<Duration> =
        watch.0.lock().unwrap().windows(2).map(|pair| pair[1] - pair[0]).collect();
    let around = |from: usize, to: usize| Times::from_samples(steps[from..to].iter().copied());
    let (early, late) = (around(10, 510), around(STEPS - 502, STEPS - 2));
    let table = Table::begin();
    table.row("overhead of a step around 5,000", &late, ("around 10", &early), "≤ 1.1x");
    table.figure("memory of a run of 5,000 steps", &format!("{grown:.0} MB"), "1.5 KB a step", "");
}
