//! Reading a session: what the flow is, what is done of it, and what waits.

use base64::Engine as _;
use stepwell::model::{
    Edited, Elsewhere, Flow, Gate, GateAnswered, Node, NodeState, SpecHash, StatusChanged, Time,
    Usage,
};
use stepwell::{Status, StopReason};

use super::SYSTEM;
use super::spec::Spec;
use super::state::{self, Done, Pending, Progress};
use super::turns::{Talk, talks, warn};
use crate::json::fields::{Fields, quoted};
use crate::json::json_text::{compact, value};
use crate::read::input::Input;
use crate::read::neutral::{Item, Opening, Sink, Wanted, Warning};
use crate::strands_sdk::agent::{moment, no_json};
use crate::strands_sdk::kept::Kept;
use crate::strands_sdk::{FOLDER, sidecar};
use crate::{Error, Result};

/// The files of a session.
struct Files {
    /// `session.json`, if it could be read.
    session: Option<String>,
    /// `pattern_state.json`, if it could be read.
    state: Option<String>,
    /// `spec_snapshot.yaml`, if it is there.
    spec: Option<Vec<u8>>,
}

/// Reads a session.
pub(super) fn read(input: &Input, sink: &mut dyn Sink) -> Result<()> {
    let files = Files::at(input, sink)?;
    let session =
        files.session.as_deref().and_then(|raw| Fields::parse(raw).ok()).unwrap_or_default();
    let metadata = session.object("metadata").unwrap_or_default();
    let text = files.spec.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    let (spec, wrong) = text.map(Spec::read).unwrap_or_default();
    if let Some(why) = wrong {
        told(input, sink, "spec_snapshot.yaml", format!("it is no spec ({why}); it is kept"));
    }
    let pattern = metadata.text("pattern_type").map(String::from);
    let pattern = pattern.or_else(|| spec.pattern().map(str::to_owned)).unwrap_or_default();
    let parts = Parts { session: &session, metadata: &metadata, pattern: &pattern, spec: &spec };
    let mut opening = opening(input, &parts, text);
    check_hash(input, &metadata, files.spec.as_deref(), sink);
    opening.continues = sidecar::mark(input);
    opening.folder = Some(input.root().to_owned());
    let id = opening.id.clone();
    if sink.begin(opening)? == Wanted::Known {
        return Ok(());
    }
    sidecar::read(input, SYSTEM, sink)?;
    let progress = match &files.state {
        Some(raw) => state::read(&pattern, raw, &spec),
        None => Progress::default(),
    };
    for doubt in &progress.doubts {
        told(input, sink, "pattern_state.json", doubt.clone());
    }
    let at = moment(&metadata, "updated_at");
    let mut telling = Tell { input, sink, progress: &progress, at };
    let lane = |agent: &str| lane_of(&pattern, &progress, agent);
    let mut talks = talks(input, &id, lane, telling.sink)?;
    telling.nodes(&mut talks)?;
    telling.gates()?;
    let standing = standing(&metadata, &progress);
    if standing.status != Status::Paused && metadata.text("status").as_deref() == Some("paused") {
        let what = "it is paused, and no question waits".to_owned();
        told(input, telling.sink, "session.json", what);
    }
    telling.rest(&mut talks, &standing)?;
    for talk in &talks {
        talk.tell_files(input, telling.sink)?;
    }
    if let Some(elsewhere) = untold(&session, &talks) {
        let elsewhere = Some(elsewhere);
        telling.sink.push(Item::new(at, Edited { elsewhere, ..Edited::default() }))?;
    }
    keep(&files, &progress, sink)?;
    sink.push(Item::new(at, standing))?;
    sink.end()
}

impl Files {
    fn at(input: &Input, sink: &mut dyn Sink) -> Result<Self> {
        let root = input.root();
        let mut object = |name: &str| {
            let path = root.join(name);
            let read = input.text(&path).and_then(|text| match Fields::parse(&text) {
                Ok(_) => Ok(compact(&text)),
                Err(error) => Err(no_json(&path, &error)),
            });
            read.map_err(|error| warn(sink, path.display().to_string(), &error)).ok()
        };
        let (session, state) = (object("session.json"), object("pattern_state.json"));
        let path = root.join("spec_snapshot.yaml");
        let spec = input.whole(&path);
        let spec = spec.map_err(|error| warn(sink, path.display().to_string(), &error)).ok();
        if session.is_none() && (state.is_none() || spec.is_none()) {
            let why = "session.json cannot be read, and too little is there besides".to_owned();
            return Err(Error::Foreign { path: root.to_owned(), why });
        }
        Ok(Self { session, state, spec })
    }
}

fn told(input: &Input, sink: &mut dyn Sink, file: &str, what: String) {
    sink.warn(Warning { place: input.root().join(file).display().to_string(), what });
}

/// What a session is made of.
struct Parts<'a> {
    session: &'a Fields<'a>,
    metadata: &'a Fields<'a>,
    pattern: &'a str,
    spec: &'a Spec,
}

/// The session, and its flow if the text of its spec is there.
fn opening(input: &Input, parts: &Parts<'_>, text: Option<&str>) -> Opening {
    let Parts { session, metadata, pattern, spec } = *parts;
    let folder = input.root().file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = metadata.text("session_id").map(String::from).filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| folder.strip_prefix(FOLDER).unwrap_or(folder).to_owned());
    let name = metadata.text("workflow_name").map(String::from);
    let name = name.or_else(|| spec.field("name").as_str().map(str::to_owned)).unwrap_or_default();
    let mut opening = Opening::new(id, name.clone());
    opening.started_at = moment(metadata, "created_at");
    opening.updated_at = moment(metadata, "updated_at");
    let runtime = session.object("runtime_config").unwrap_or_default();
    opening.created.model = runtime.text("model_id").unwrap_or_default().into_owned();
    opening.created.provider = runtime.text("provider").unwrap_or_default().into_owned();
    opening.created.flow = text.map(|text| Flow {
        name,
        pattern: pattern.to_owned(),
        spec: text.to_owned(),
        hash: SpecHash::of(text.as_bytes()),
        variables: session
            .object("variables")
            .unwrap_or_default()
            .each()
            .filter_map(|(name, raw)| Some((name.to_owned(), value(raw)?)))
            .collect(),
    });
    opening
}

/// Says if the spec is another one than the session was begun with.
fn check_hash(input: &Input, metadata: &Fields<'_>, spec: Option<&[u8]>, sink: &mut dyn Sink) {
    let (Some(hash), Some(spec)) = (metadata.text("spec_hash"), spec) else { return };
    if !hash.eq_ignore_ascii_case(&SpecHash::of(spec).to_string()) {
        let what = "it is another spec than the session was begun with (spec_hash); the session \
                    goes on with this one"
            .to_owned();
        told(input, sink, "spec_snapshot.yaml", what);
    }
}

/// The lane in which an agent of a flow speaks.
fn lane_of(pattern: &str, progress: &Progress, agent: &str) -> String {
    let next = progress.next.as_deref().unwrap_or_default();
    match (pattern, next.split('/').collect::<Vec<_>>().as_slice()) {
        ("chain", _) => agent.to_owned(),
        ("routing", ["route", route, _]) => format!("{route}/{agent}"),
        _ => format!("agents/{agent}"),
    }
}

/// The tokens that the session counts and no conversation tells of: most patterns keep none.
fn untold(session: &Fields<'_>, talks: &[Talk]) -> Option<Elsewhere> {
    let spent = session.object("token_usage")?;
    let count = |name: &str| spent.get::<u64>(name).unwrap_or(0);
    let (input, output) = (count("total_input_tokens"), count("total_output_tokens"));
    let mut told = Usage::default();
    talks.iter().for_each(|talk| told += talk.spent);
    let usage = Usage { input, output, ..Usage::default() }.minus(told);
    (!usage.is_nothing()).then(|| Elsewhere { usage, ..Elsewhere::default() })
}

/// How the run stands.
fn standing(metadata: &Fields<'_>, progress: &Progress) -> StatusChanged {
    let waits = progress.gates.iter().any(|gate| gate.answer.is_none());
    let error = metadata.text("error").map(String::from);
    let (status, reason) = match metadata.text("status").as_deref() {
        Some("completed") => (Status::Success, Some(StopReason::LlmDone)),
        Some("failed") => (Status::Failed, None),
        _ if waits => (Status::Paused, Some(StopReason::Gate)),
        // Nobody runs it here.
        _ => (Status::Interrupted, None),
    };
    StatusChanged { status, reason, error }
}

/// Tells nodes, questions and conversations.
struct Tell<'a> {
    input: &'a Input,
    sink: &'a mut dyn Sink,
    progress: &'a Progress,
    at: Option<Time>,
}

impl Tell<'_> {
    /// The nodes that are done, each with its part of its agent's conversation.
    fn nodes(&mut self, talks: &mut [Talk]) -> Result<()> {
        for done in &self.progress.done {
            self.node(&done.key, NodeState::Started, None, None)?;
            if let Some(prompt) = &done.asked {
                self.answered_gate(done, prompt)?;
            }
            let agent = done.agent.as_deref();
            if let Some(talk) = talks.iter_mut().find(|talk| Some(talk.name.as_str()) == agent) {
                talk.tell_answer(self.input, &done.response(), self.sink)?;
            }
            let output = serde_json::Value::Object(done.output.clone());
            self.node(&done.key, NodeState::Done, Some(output), None)?;
        }
        Ok(())
    }

    fn answered_gate(&mut self, done: &Done, prompt: &str) -> Result<()> {
        let (id, prompt) = (done.key.clone(), prompt.to_owned());
        self.sink.push(Item::new(None, Gate::new(id, prompt)))?;
        let (id, answer, who) = (done.key.clone(), done.response(), SYSTEM.to_owned());
        self.sink.push(Item::new(None, GateAnswered::new(id, answer, who))).map(drop)
    }

    fn gates(&mut self) -> Result<()> {
        for gate in &self.progress.gates {
            let Pending { key, prompt, default, deadline, answer } = gate.clone();
            self.node(&key, NodeState::Started, None, None)?;
            let asked = Gate { default, deadline, ..Gate::new(key.as_str(), prompt) };
            self.sink.push(Item::new(None, asked))?;
            if let Some(answer) = answer {
                let output = serde_json::json!({"response": answer, "who": SYSTEM});
                let (id, who) = (key.clone(), SYSTEM.to_owned());
                self.sink.push(Item::new(None, GateAnswered::new(id, answer, who)))?;
                self.node(&key, NodeState::Done, Some(output), None)?;
            }
        }
        Ok(())
    }

    /// What was said after the last answers. Where one node comes after the other, it belongs
    /// to the one that was under way.
    fn rest(&mut self, talks: &mut [Talk], standing: &StatusChanged) -> Result<()> {
        let next = self.progress.next.as_deref();
        let next = next.filter(|key| !self.progress.gates.iter().any(|gate| gate.key == *key));
        let under_way = next.filter(|_| standing.status != Status::Success).and_then(|key| {
            let open = talks.iter().enumerate().filter(|(_, talk)| talk.is_open(self.input));
            let open: Vec<usize> = open.map(|(n, _)| n).collect();
            let last = open.into_iter().max_by_key(|n| talks[*n].ends_at(self.input));
            last.map(|n| (n, key))
        });
        for (n, talk) in talks.iter_mut().enumerate() {
            match under_way.filter(|(of, _)| *of == n) {
                None => talk.tell_rest(self.input, self.sink)?,
                Some((_, key)) => {
                    self.node(key, NodeState::Started, None, None)?;
                    talk.tell_rest(self.input, self.sink)?;
                    if standing.status == Status::Failed {
                        self.node(key, NodeState::Failed, None, standing.error.clone())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        key: &str,
        state: NodeState,
        output: Option<serde_json::Value>,
        error: Option<String>,
    ) -> Result<()> {
        let node = Node { key: key.to_owned(), state, output, usage: None, error };
        // Only what is said bears a time; what was done is known by when the file was written.
        let at = if state == NodeState::Failed { self.at } else { None };
        self.sink.push(Item::new(at, node)).map(drop)
    }
}

/// Keeps the files themselves, without what was told of them.
fn keep(files: &Files, progress: &Progress, sink: &mut dyn Sink) -> Result<()> {
    let mut kept = Vec::new();
    if let Some(bytes) = &files.spec
        && std::str::from_utf8(bytes).is_err()
    {
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        kept.push(Kept::new("spec_snapshot.yaml", &quoted(&text)));
    }
    kept.extend(files.session.as_ref().map(|raw| Kept::new("session.json", raw)));
    kept.extend(
        files.state.as_ref().map(|raw| Kept::new("pattern_state.json", &progress.hollow(raw))),
    );
    for kept in kept {
        sink.push(Item::of_session(SYSTEM, kept.to_json()))?;
    }
    Ok(())
}
