//! A harness that runs flows: a store on disk, a scripted model that logs its calls, and an
//! observer that answers questions.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use stepwell::log::Redactor;
use stepwell::model::{Flow as Described, NodeState, PhaseSet, Role, Spent};
use stepwell::sessions::Deps;
use stepwell::sqlite::SqliteStore;
use stepwell::store::Span;
use stepwell::trust::AnswersFrom;
use stepwell::{Created, Event, Recorded, Session, SessionId, Status, Stepwell};
use stepwell_agent::context::Context;
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::script::{Script, Scripted};
use stepwell_agent::run::{
    Allowed, EventSink, FrontEnd, Keeping, Notice, OpenGate, RunEvent, Setup, SharedBudget, Wisher,
};
use stepwell_agent::tool::{self, ToolEnv};
use stepwell_flow::spec::Spec;
use stepwell_flow::template::Scope;
use stepwell_flow::{Agents, Ended, Flow, History, OutputFolder, Over, Parts, Patience, Stored};
use stepwell_testkit::model::{Moment, Watched};

/// Called at named points of a run.
pub(crate) type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// A scripted model that logs each call, and calls a hook.
fn logging(script: Script, calls: PathBuf, hook: Hook) -> Watched {
    Watched::new(Scripted::new(script), move |moment| {
        let Moment::Asked(request) = moment else { return hook("answered") };
        hook("ask");
        let line = format!("{} {}\n", request.turn.lane, request.turn.answers);
        let log = std::fs::OpenOptions::new().append(true).create(true).open(&calls);
        log.unwrap().write_all(line.as_bytes()).unwrap();
    })
}

/// Gives every agent the same setup.
struct OneSetup {
    setup: Arc<Setup>,
    redactor: Redactor,
}

impl Agents for OneSetup {
    fn setup(&self, _: &str, _: Option<&[String]>) -> Result<Arc<Setup>, String> {
        Ok(Arc::clone(&self.setup))
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// What a person does when asked: an answer, or none.
pub(crate) type Person = Arc<dyn Fn(&OpenGate) -> Option<String> + Send + Sync>;

/// Answers questions by their ids; `*` stands for all others.
#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) answers: BTreeMap<String, String>,
    pub(crate) person: Option<Person>,
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
}

impl Responder {
    fn can_answer(&self) -> bool {
        self.person.is_some() || !self.answers.is_empty()
    }

    /// A front end with a person. Without an answer from them the flow pauses.
    fn front(&self, well: Stepwell) -> FrontEnd {
        let (answers, person) = (self.answers.clone(), self.person.clone());
        let (notices, is_there) = (Arc::clone(&self.notices), self.can_answer());
        let (wisher, wishes) = Wisher::new();
        let events = EventSink::to(move |event| match event {
            RunEvent::Notice(notice) => notices.lock().unwrap().push(notice),
            RunEvent::Approval(open) => {
                let answer = match &person {
                    Some(person) => person(&open),
                    None => answers.get(&open.gate.id).or_else(|| answers.get("*")).cloned(),
                };
                match answer {
                    Some(answer) => {
                        let answer =
                            stepwell::model::GateAnswered::new(open.gate.id, answer, "the user");
                        // Another process may have answered first.
                        let _ = well.answer(&open.session, answer);
                    }
                    // Without a person the flow is not paused by the front end.
                    None if is_there => wisher.pause(),
                    None => {}
                }
            }
            _ => {}
        });
        FrontEnd { events, patience: Patience::Wait, wishes }
    }
}

/// A flow, and everything it runs with.
pub(crate) struct Harness {
    pub(crate) root: PathBuf,
    pub(crate) spec: String,
    pub(crate) script: String,
    pub(crate) allowed: Allowed,
    pub(crate) over: Over,
    pub(crate) patience: Patience,
    pub(crate) responder: Mutex<Responder>,
    pub(crate) variables: Scope,
    pub(crate) hook: Hook,
    pub(crate) mode: Mode,
    pub(crate) phases: Option<PhaseSet>,
}

pub(crate) fn id() -> SessionId {
    "run".parse().unwrap()
}

impl Harness {
    pub(crate) fn new(root: &Path, spec: &str, script: &str) -> Self {
        Self {
            root: std::fs::canonicalize(root).unwrap(),
            spec: spec.to_owned(),
            script: script.to_owned(),
            allowed: Allowed::default(),
            over: Over::Refuse,
            patience: Patience::Pause,
            responder: Mutex::default(),
            variables: Scope::new().with("topic", "wells"),
            hook: Arc::new(|_| ()),
            mode: Mode::ConfirmSensitive,
            phases: None,
        }
    }

    /// The person gives this answer to this question.
    pub(crate) fn answering(self, gate: &str, answer: &str) -> Self {
        self.responder.lock().unwrap().answers.insert(gate.to_owned(), answer.to_owned());
        self
    }

    /// The same flow with another script.
    pub(crate) fn with_script(self, script: &str) -> Self {
        Self { script: script.to_owned(), ..self }
    }

    /// Answers a question from another process.
    pub(crate) fn answer(&self, gate: &str, answer: &str) {
        let answer = stepwell::model::GateAnswered::new(
            gate.to_owned(),
            answer.to_owned(),
            "a colleague".to_owned(),
        );
        self.well().answer(&id(), answer).unwrap();
    }

    /// A new one each time, as in a new process, so that answers of any author count.
    pub(crate) fn well(&self) -> Stepwell {
        let store = SqliteStore::open(&self.root.join(".stepwell")).unwrap();
        let answers_from = AnswersFrom::Store;
        Stepwell::with(Arc::new(store), Deps { answers_from, ..Deps::default() })
    }

    fn agents(&self) -> OneSetup {
        let script = Script::parse(&self.script).unwrap();
        let prices = Scripted::new(script.clone());
        let calls = self.root.join("calls");
        let model = logging(script, calls, self.hook.clone());
        let tools = tool::builtin();
        let effects = tools.iter().map(|it| (it.spec().name.clone(), it.effect())).collect();
        let (mode, limits) = (self.mode, Limits::default());
        let setup = Setup {
            provider: Arc::new(model),
            model: "script".to_owned(),
            cost: Arc::new(move |usage| Some(prices.cost(usage))),
            tools,
            place: ToolEnv::new(self.root.clone()),
            rules: Rules { mode, retry_unsafe: false, effects, limits },
            redactor: Redactor::new([]),
            max_output: 100,
            timeout: None,
            dry_run: false,
            context: Context::default(),
            keeping: Keeping::default(),
            dispatcher: None,
        };
        OneSetup { setup: Arc::new(setup), redactor: Redactor::new([]) }
    }

    fn open(&self, well: &Stepwell, spec: &Spec) -> Session {
        if well.store().exists(&id()).unwrap() {
            return well.resume(&id()).unwrap();
        }
        let stored = Stored::new(&self.spec, BTreeMap::new());
        let flow = Described {
            name: spec.name.clone(),
            pattern: spec.pattern.name().to_owned(),
            spec: stored.spec,
            hash: stored.hash,
            variables: BTreeMap::new(),
        };
        let phases = self.phases;
        let workspace = self.root.to_string_lossy().into_owned();
        let created = Created::new(id(), "flow");
        let created = Created { flow: Some(flow), phases, workspace, ..created };
        well.create(created).unwrap()
    }

    /// Creates the flow's session, and runs nothing.
    pub(crate) fn create(&self) {
        let spec = Spec::parse(&self.spec, "spec.yaml", &BTreeMap::new()).unwrap().spec;
        drop(self.open(&self.well(), &spec));
    }

    /// Starts the flow, or resumes it.
    pub(crate) fn run(&self) -> stepwell_flow::Result<Ended> {
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        self.run_until(interrupt)
    }

    pub(crate) fn run_until(
        &self,
        interrupt: tokio::sync::watch::Receiver<bool>,
    ) -> stepwell_flow::Result<Ended> {
        let none: BTreeMap<String, String> = BTreeMap::new();
        let spec = Spec::parse(&self.spec, "spec.yaml", &none).unwrap().spec;
        let (well, agents) = (self.well(), self.agents());
        let session = self.open(&well, &spec);
        let history = History::read(&session).unwrap();
        let shared_budget = SharedBudget::new(self.allowed.clone(), history.spent, history.calls);
        let responder = self.responder.lock().unwrap();
        let patience = if responder.can_answer() { Patience::Wait } else { self.patience };
        let parts = Parts {
            session: &session,
            spec: &spec,
            agents: &agents,
            variables: self.variables.clone(),
            front: responder.front(well.clone()),
            interrupt,
            shared_budget,
        };
        let flow = Flow::new(parts, history);
        let folder = OutputFolder { root: self.root.join("out"), over: self.over, store: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(flow.run(patience, &folder))
    }

    /// The session's events.
    pub(crate) fn events(&self) -> Vec<Recorded> {
        let well = self.well();
        let slice = well.store().events(&id(), Span::ALL).unwrap();
        slice.intact(&id()).unwrap()
    }

    /// The calls that the model got since the last time this was called, sorted.
    pub(crate) fn calls(&self) -> Vec<String> {
        let path = self.root.join("calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        let mut calls: Vec<String> = text.lines().map(str::to_owned).collect();
        calls.sort();
        calls
    }

    /// The calls whose answers are recorded, sorted.
    pub(crate) fn answered(&self) -> Vec<String> {
        let mut lanes: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls = Vec::new();
        for event in self.events() {
            if let Event::Message(message) = event.event
                && message.role == Role::Assistant
            {
                let n = lanes.entry(message.lane.to_string()).or_default();
                calls.push(format!("{} {n}", message.lane));
                *n += 1;
            }
        }
        calls.sort();
        calls
    }

    /// The results so far.
    pub(crate) fn outcome(&self) -> Outcome {
        let (mut nodes, mut starts) = (BTreeMap::new(), BTreeMap::new());
        for event in self.events() {
            if let Event::Node(node) = event.event {
                match node.state {
                    NodeState::Done => {
                        let before = nodes.insert(node.key.clone(), node.output.unwrap());
                        assert_eq!(before, None, "{} ran twice", node.key);
                    }
                    NodeState::Started => *starts.entry(node.key).or_insert(0) += 1,
                    _ => {}
                }
            }
        }
        let head = self.well().info(&id()).unwrap().head;
        let files = std::fs::read_dir(self.root.join("out")).into_iter().flatten();
        let files = files.map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        });
        Outcome { nodes, files: files.collect(), status: head.status, spent: head.spent }
    }
}

/// The results of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) nodes: BTreeMap<String, Value>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) status: Status,
    pub(crate) spent: Spent,
}
