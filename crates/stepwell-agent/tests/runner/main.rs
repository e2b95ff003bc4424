//! Runs an agent for the crash tests, and kills itself at a given point.
//!
//! `stepwell-test-runner WORKSPACE SCRIPT KIND N`: at the Nth occurrence of KIND (`append`, `ask`,
//! `answered`, `ask_summary`, `summarised`, `tool`, `ran` or `never`) the process kills itself, as
//! `kill -9` would.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;
use stepwell::log::Redactor;
use stepwell::model::Effect;
use stepwell::work::Tasks;
use stepwell::{Created, Message, Stepwell, View};
use stepwell_agent::context::tokens::Family;
use stepwell_agent::context::{Context, Policy, Summariser};
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::script::{Script, Scripted};
use stepwell_agent::provider::{Answer, CallError, Delta, Provider, Purpose, Request, ToolSpec};
use stepwell_agent::run::{
    Dispatcher, EventSink, FrontEnd, Keeping, Run, RunEvent, Setup, SubagentRequest, SubagentSetup,
};
use stepwell_agent::tool::{self, Done, Plan, Tool, ToolEnv};

/// Where the process dies.
#[derive(Debug)]
struct Fate {
    kind: String,
    n: usize,
    seen: AtomicUsize,
}

impl Fate {
    fn meet(&self, kind: &str) {
        if self.kind == kind && self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.n {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// A model that checks its requests, and at which the process may die.
#[derive(Debug)]
struct Witness {
    inner: Scripted,
    fate: Arc<Fate>,
}

impl Provider for Witness {
    fn name(&self) -> &str {
        "script"
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        told: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        View::check(request.messages).expect("the conversation is valid");
        let (asks, answers) = match request.turn.purpose {
            Purpose::Answer => ("ask", "answered"),
            Purpose::Summary => ("ask_summary", "summarised"),
        };
        self.fate.meet(asks);
        Box::pin(async move {
            let answer = self.inner.answer(request, told).await;
            self.fate.meet(answers);
            answer
        })
    }
}

/// A tool at which the process may die.
#[derive(Debug)]
struct Doomed {
    inner: Arc<dyn Tool>,
    fate: Arc<Fate>,
}

impl Tool for Doomed {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn effect(&self) -> Effect {
        self.inner.effect()
    }

    fn preview(&self, arguments: &Value) -> String {
        self.inner.preview(arguments)
    }

    fn plan(&self, arguments: &Value, place: &ToolEnv) -> Result<Plan, String> {
        self.inner.plan(arguments, place)
    }

    fn decide(&self, arguments: &Value, place: &ToolEnv, tasks: &Tasks) -> Option<Done> {
        let done = self.inner.decide(arguments, place, tasks)?;
        self.fate.meet("tool");
        self.fate.meet("ran");
        Some(done)
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        self.fate.meet("tool");
        Box::pin(async move {
            let done = self.inner.run(arguments, place).await;
            self.fate.meet("ran");
            done
        })
    }
}

fn watch(fate: &Fate, event: &RunEvent) {
    match event {
        RunEvent::Recorded(_) => fate.meet("append"),
        RunEvent::Child { event, .. } if matches!(**event, RunEvent::Recorded(_)) => {
            fate.meet("append");
        }
        _ => {}
    }
}

/// The context length of the script, with the model as its own summariser.
fn context(model: &Arc<Witness>, script: &Script) -> Context {
    let prices = Scripted::new(script.clone());
    let summariser = Summariser {
        provider: model.clone(),
        model: "script".to_owned(),
        cost: Arc::new(move |usage| Some(prices.cost(usage))),
        length: script.context,
        family: Family::Other,
    };
    let policy = Policy { buffer: 1_000, keep: 200, ..Policy::default() };
    let summariser = Some(summariser);
    Context { length: script.context, policy, summariser, ..Context::default() }
}

/// The parts of a scripted run.
fn setup(root: &Path, script: &Path, fate: &Arc<Fate>) -> Setup {
    let script = Script::parse(&std::fs::read_to_string(script).unwrap()).unwrap();
    let model = Arc::new(Witness { inner: Scripted::new(script.clone()), fate: fate.clone() });
    let context = context(&model, &script);
    let prices = Scripted::new(script);
    let tools: Vec<Arc<dyn Tool>> = tool::builtin()
        .into_iter()
        .map(|inner| Arc::new(Doomed { inner, fate: fate.clone() }) as Arc<dyn Tool>)
        .collect();
    let effects = tools.iter().map(|tool| (tool.spec().name.clone(), tool.effect())).collect();
    let (mode, limits) = (Mode::Yolo, Limits::default());
    Setup {
        provider: model,
        model: "script".to_owned(),
        cost: Arc::new(move |usage| Some(prices.cost(usage))),
        tools,
        place: ToolEnv::new(root.to_owned()),
        rules: Rules { mode, retry_unsafe: false, effects, limits },
        redactor: Redactor::new([]),
        max_output: 1_000,
        timeout: None,
        dry_run: false,
        context,
        keeping: Keeping::default(),
        dispatcher: None,
    }
}

/// Subagents, each with a script named after its agent, beside the run's.
struct Crew {
    root: PathBuf,
    scripts: PathBuf,
    fate: Arc<Fate>,
}

impl Dispatcher for Crew {
    fn set_up(&self, request: &SubagentRequest<'_>) -> Result<SubagentSetup, String> {
        let script = self.scripts.join(format!("{}.yaml", request.order.agent()));
        let task = &request.order.task;
        Ok(SubagentSetup {
            setup: setup(&self.root, &script, &self.fate),
            created: Created::new(request.parent.id.clone(), task),
            begins: vec![Message::user(task).into()],
            system: String::new(),
        })
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (root, script) = (PathBuf::from(&args[1]), PathBuf::from(&args[2]));
    let (kind, n) = (args[3].clone(), args[4].parse().unwrap());
    let fate = Arc::new(Fate { kind, n, seen: AtomicUsize::new(0) });
    let mut setup = setup(&root, &script, &fate);
    let scripts = script.parent().unwrap().to_owned();
    setup.dispatcher = Some(Arc::new(Crew { root: root.clone(), scripts, fate: fate.clone() }));
    let well = Stepwell::open(root.join(".stepwell")).unwrap();
    let id = "run".parse().unwrap();
    let fresh = !well.store().exists(&id).unwrap();
    let session = if fresh {
        let mut created = well.draft("the task");
        created.id = id.clone();
        well.create(created).unwrap()
    } else {
        well.resume(&id).unwrap()
    };
    let events = EventSink::to(move |event| watch(&fate, &event));
    let mut run = Run::new(&session, &setup, FrontEnd::watching(events)).unwrap();
    if run.is_new() {
        run.say("the task").unwrap();
    }
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let ended = run.drive(interrupt).await.unwrap();
    assert_eq!(ended.status, stepwell::Status::Success);
}
