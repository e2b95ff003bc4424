//! A workspace of its own for each test, with scripts in place of models.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use stepwell::store::Span;
use stepwell::{Event, Recorded, SessionId};
use stepwell_flow::spec::Spec;
use stepwell_runtime::{
    EventStream, FlowOptions, FlowRequest, OpenGate, Patience, ResumeRequest, RunEvent, RunHandle,
    RunOptions, RunRequest, Runtime,
};
use stepwell_workspace::{Host, Notices, Wanted, Workspace};

/// A workspace, and a user's home beside it.
pub(crate) struct TestEnv {
    folder: tempfile::TempDir,
    variables: BTreeMap<String, String>,
    pub(crate) runtime: Runtime,
}

/// A script whose agent makes a file by a command, which needs leave.
pub(crate) const ASKS: &str = "
- {text: I make it., calls: [{tool: run_command, arguments: {command: 'echo x >> made.txt'}}]}
- {text: Made.}
";

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::configured("")
    }

    /// The same with the user's own configuration, as TOML.
    pub(crate) fn configured(config: &str) -> Self {
        Self::with(config, BTreeMap::new())
    }

    /// The same with variables of the environment.
    pub(crate) fn with(config: &str, variables: BTreeMap<String, String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("config")).unwrap();
        std::fs::write(folder.path().join("config/config.toml"), config).unwrap();
        let runtime = Runtime::new(found(host(folder.path(), variables.clone())));
        Self { folder, variables, runtime }
    }

    /// Where what is remembered for the user is kept.
    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    /// Another runtime of the same user in the same workspace, as another process has it.
    pub(crate) fn elsewhere(&self) -> Runtime {
        Runtime::new(found(host(self.folder.path(), self.variables.clone())))
    }

    /// A runtime as a run's command has it.
    pub(crate) fn inside_run(&self) -> Runtime {
        let marked = BTreeMap::from([("STEPWELL_IN_RUN".into(), "1".into())]);
        Runtime::new(found(host(self.folder.path(), marked)))
    }

    /// Writes a script, and names it as a model.
    pub(crate) fn script(&self, text: &str) -> String {
        let path = self.root().join("script.yaml");
        std::fs::write(&path, text).unwrap();
        format!("script:{}", path.display())
    }

    pub(crate) fn options(&self, script: &str) -> RunOptions {
        let model = Some(self.script(script));
        RunOptions { model, patience: Patience::Wait, ..RunOptions::default() }
    }

    pub(crate) fn start(&self, script: &str) -> RunHandle {
        let options = self.options(script);
        self.runtime.start(RunRequest { options, ..RunRequest::new("make it") }).unwrap()
    }

    pub(crate) fn resume(&self, id: &SessionId) -> ResumeRequest {
        let options = RunOptions { patience: Patience::Wait, ..RunOptions::default() };
        ResumeRequest { options, ..ResumeRequest::new(id.clone(), self.runtime.trust(id)) }
    }

    pub(crate) fn flow(&self, spec: &str, script: &str) -> FlowRequest {
        let path = self.root().join("flow.yaml");
        std::fs::write(&path, spec).unwrap();
        let (text, reading) = Spec::load(&path, "flow.yaml").unwrap();
        FlowRequest {
            path,
            text,
            reading: Arc::new(reading),
            variables: BTreeMap::new(),
            options: self.options(script),
            flow: FlowOptions { output: Some(self.root().join("out")), ..FlowOptions::default() },
            interrupt: stepwell_runtime::Interrupt::default(),
        }
    }

    pub(crate) fn events(&self, id: &SessionId) -> Vec<Recorded> {
        let well = self.runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
        well.store().events(id, Span::ALL).unwrap().intact(id).unwrap()
    }

    /// How many lines the command has written so far: how often it ran.
    pub(crate) fn ran(&self) -> usize {
        let made = std::fs::read_to_string(self.root().join("made.txt")).unwrap_or_default();
        made.lines().count()
    }

    /// How many gates and answers a session has.
    pub(crate) fn gates(&self, id: &SessionId) -> (usize, usize) {
        let events = self.events(id);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|it| is(&it.event)).count();
        (count(|it| matches!(it, Event::Gate(_))), count(|it| matches!(it, Event::GateAnswered(_))))
    }
}

/// A runtime in one of several folders of the same user.
pub(crate) fn runtime_in(folder: &Path, name: &str) -> Runtime {
    Runtime::new(found(host_in(folder, name, BTreeMap::new())))
}

fn host(folder: &Path, variables: BTreeMap<String, String>) -> Host {
    host_in(folder, "work", variables)
}

fn host_in(folder: &Path, name: &str, variables: BTreeMap<String, String>) -> Host {
    let root = folder.join(name);
    std::fs::create_dir_all(&root).unwrap();
    Host {
        folder: Some(root),
        home: Some(folder.to_owned()),
        config: Some(folder.join("config")),
        state: Some(folder.join("state")),
        environment: Arc::new(variables),
        ..Host::bare()
    }
}

fn found(host: Host) -> Workspace {
    let wanted = Wanted { folder: host.folder.clone(), ..Wanted::default() };
    Workspace::locate(host, wanted, Notices::to_nobody()).unwrap()
}

/// The next question of a run.
pub(crate) fn asked(events: &mut EventStream) -> OpenGate {
    fn within(event: RunEvent) -> Option<OpenGate> {
        match event {
            RunEvent::Approval(open) => Some(*open),
            RunEvent::Child { event, .. } | RunEvent::Within { event, .. } => within(*event),
            _ => None,
        }
    }
    events.find_map(within).expect("the run asks")
}
