//! Writing a session: as it came, or with all that was done here laid over it.

use std::collections::{BTreeSet, HashMap, HashSet};

use base64::Engine as _;
use stepwell::log::Head;
use stepwell::model::{CheckpointReason, Flow, Gate, GateAnswered, NodeState};
use stepwell::{Event, Lane, Recorded, Seq, SessionId, Status, Stepwell, StopReason};

use super::metadata::Before;
use super::spec::Spec;
use super::state::{self, Finished, Origin, Outcome, hitl_state};
use super::{SYSTEM, metadata};
use crate::json::fields::{Fields, quoted};
use crate::json::json_text::{Letters, laid_out, overlaid};
use crate::original;
use crate::read::mark::mark_of;
use crate::snapshot::TimeForm;
use crate::strands_sdk::conversation::{self, AgentFolder, Lifetime, Live, agent_json, plain_name};
use crate::strands_sdk::kept::Kept;
use crate::strands_sdk::sidecar::{self, put};
use crate::strands_sdk::write::{id_there, is_sum, live, lost};
use crate::write::facts::{Says, count_facts};
use crate::write::writer::{Exported, Losses, Outlet, count_event};
use crate::{Error, Result};

/// Writes a session.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let own = id_there(&head, SYSTEM, to);
    if let Some(same) = original::write_folder(well, &head, (SYSTEM, &own), to)? {
        return Ok(same);
    }
    let (live, mut exported) = live(well, id, SYSTEM)?;
    let files = live.files(SYSTEM);
    let flow = live.events.iter().find_map(|event| match &event.event {
        Event::Created(created) => created.flow.clone(),
        _ => None,
    });
    let find = |name: &str| files.iter().find(|kept| kept.file == name);
    let flow = match (flow, find("session.json")) {
        (Some(flow), _) => Some(flow),
        // It came without a spec that could be read.
        (None, Some(kept)) => Some(without_spec(kept)),
        (None, None) => None,
    };
    let Some(flow) = flow else {
        return Err(Error::NotAFlow { session: id.clone(), format: SYSTEM });
    };
    let spec = find("spec_snapshot.yaml").and_then(|kept| decoded(&kept.data));
    let spec = spec.unwrap_or_else(|| flow.spec.clone().into_bytes());
    let there = id_there(&head, SYSTEM, to);
    let told = told(&live);
    let work = Work::of(&live, told);
    let (read, _) = Spec::read(&flow.spec);
    let outcome = Outcome { nodes: &work.nodes, current: work.current.as_deref(), spec: &read };
    let changed = grew(&live, told);
    let leaving = Leaving { head: &head, flow: &flow, live: &live, files: &files, there: &there };
    let session = match find("session.json") {
        Some(kept) if !changed => kept.data.clone(),
        kept => leaving.session_json(&outcome, kept, told),
    };
    put(to, "session.json", &laid_out(&session, Letters::Ascii))?;
    let state = pattern_state(&flow, &outcome, &work.open, find("pattern_state.json"), changed);
    put(to, "pattern_state.json", &laid_out(&state, Letters::Ascii))?;
    if !spec.is_empty() || find("session.json").is_none() {
        write_bytes(to, "spec_snapshot.yaml", &spec)?;
    }
    let spoken = leaving.agents(to, &mut exported.losses)?;
    let (losses, places) = (&mut exported.losses, places(&live));
    let homeless = live.events.iter().filter(|event| !is_held(event, &spoken, &places, losses));
    let mark = mark_of(well, &head, (SYSTEM, &there))?;
    sidecar::write(to, mark, &files, &homeless.collect::<Vec<&Recorded>>())?;
    if changed || find("session.json").is_none() {
        tell_facts(&head, &flow, &mut exported.losses);
    }
    Ok(exported)
}

/// Names what the folder does not say of the session.
fn tell_facts(head: &Head, flow: &Flow, losses: &mut Losses) {
    let stands = match head.status {
        Status::Success => (Status::Success, Some(StopReason::LlmDone)),
        Status::Paused => (Status::Paused, Some(StopReason::Gate)),
        Status::Failed | Status::Abandoned => (Status::Failed, None),
        Status::Running | Status::Interrupted | Status::Partial | Status::Idle => {
            (Status::Interrupted, None)
        }
    };
    let says = Says {
        status: Some(stands),
        error: head.status == Status::Failed,
        task: &flow.name,
        agent: "",
        model: &head.model,
        provider: head.model_provider(),
        steps: head.steps,
        cost: false,
        updated: true,
        began: None,
    };
    count_facts(losses, head, &says);
}

fn write_bytes(to: &mut Outlet<'_>, name: &str, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    let Some(mut file) = to.file(name)? else { return Err(Error::Shape { wants: "a folder" }) };
    file.write_all(bytes).and_then(|()| file.flush()).map_err(Error::Write)
}

fn decoded(raw: &str) -> Option<Vec<u8>> {
    let text: String = serde_json::from_str(raw).ok()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// What is known of a flow whose spec is not.
fn without_spec(kept: &Kept) -> Flow {
    let fields = Fields::parse(&kept.data).unwrap_or_default();
    let metadata = fields.object("metadata").unwrap_or_default();
    Flow {
        name: metadata.text("workflow_name").unwrap_or_default().into_owned(),
        pattern: metadata.text("pattern_type").unwrap_or_default().into_owned(),
        spec: String::new(),
        hash: stepwell::model::SpecHash::of(b""),
        variables: std::collections::BTreeMap::new(),
    }
}

/// A flow's nodes and questions.
struct Work<'a> {
    nodes: Vec<Finished<'a>>,
    current: Option<String>,
    open: Vec<&'a Gate>,
}

impl<'a> Work<'a> {
    fn of(live: &'a Live, told: Seq) -> Self {
        let (mut gates, mut answered): (Vec<&Gate>, HashSet<&str>) = (Vec::new(), HashSet::new());
        for event in &live.events {
            match &event.event {
                Event::Gate(gate) => gates.push(gate),
                Event::GateAnswered(answer) => drop(answered.insert(&answer.id)),
                _ => {}
            }
        }
        let asked: HashMap<&str, &str> =
            gates.iter().map(|gate| (gate.id.as_str(), gate.prompt.as_str())).collect();
        let (mut nodes, mut done): (Vec<Finished<'a>>, HashSet<&str>) =
            (Vec::new(), HashSet::new());
        let mut current = None;
        for event in &live.events {
            let Event::Node(node) = &event.event else { continue };
            match (&node.output, node.state) {
                (Some(output), NodeState::Done) if done.insert(&node.key) => {
                    let (key, asked) = (node.key.as_str(), asked.get(node.key.as_str()).copied());
                    let origin = if event.seq > told { Origin::Here } else { Origin::There };
                    nodes.push(Finished { key, output, usage: node.usage, asked, origin });
                }
                _ => current = Some(node.key.clone()),
            }
        }
        let current = current.filter(|key| !done.contains(key.as_str()));
        let open = gates.into_iter().filter(|gate| !answered.contains(gate.id.as_str())).collect();
        Self { nodes, current, open }
    }
}

/// Where what came from there ends: its files are kept last.
fn told(live: &Live) -> Seq {
    let kept = live.events.iter().rfind(|event| match &event.event {
        Event::Foreign(it) => it.system == SYSTEM && it.about == stepwell::model::About::Session,
        _ => false,
    });
    kept.map_or(Seq::ZERO, |event| event.seq)
}

/// Was a session that came from there gone on with?
fn grew(live: &Live, told: Seq) -> bool {
    let mut statuses = 0;
    live.events.iter().filter(|event| event.seq > told).any(|event| match &event.event {
        Event::Status(_) => {
            statuses += 1;
            statuses > 1
        }
        event => matches!(
            event,
            Event::Node(_)
                | Event::Gate(_)
                | Event::GateAnswered(_)
                | Event::Message(_)
                | Event::Artifact(_)
        ),
    })
}

/// A flow on its way out.
struct Leaving<'a> {
    head: &'a Head,
    flow: &'a Flow,
    live: &'a Live,
    /// What came from there.
    files: &'a [Kept],
    /// Its name there.
    there: &'a str,
}

impl Leaving<'_> {
    /// `session.json`, over what it was if it came from there and was told up to a seq.
    fn session_json(&self, outcome: &Outcome<'_>, kept: Option<&Kept>, told: Seq) -> String {
        let session = kept.and_then(|kept| Fields::parse(&kept.data).ok()).unwrap_or_default();
        let before = Before { session, told };
        let changes = metadata::changes(self.head, self.live, outcome, &before);
        match kept {
            None => metadata::whole(self.head, self.flow, self.there, &changes).to_string(),
            Some(kept) => overlaid(&kept.data, &changes.to_string()),
        }
    }

    /// Writes the conversations of the agents, as far as the system keeps them. The answer is
    /// the lanes that were written.
    fn agents(&self, to: &mut Outlet<'_>, losses: &mut Losses) -> Result<Vec<Lane>> {
        let Self { head, flow, live, files, there } = *self;
        let lifetime = Lifetime::of(head);
        let mut spoken: Vec<Lane> = Vec::new();
        for kept in files.iter().filter(|kept| kept.file.starts_with("agents/")) {
            match (kept.file.strip_suffix("/agent.json"), &kept.lane) {
                (Some(folder), Some(lane)) => {
                    let written =
                        conversation::write(live, lane, AgentFolder { path: folder, to }, losses)?;
                    let raw = agent_json("default", Some(&kept.data), &written, lifetime);
                    put(to, &kept.file, &laid_out(&raw, Letters::All))?;
                    spoken.push(lane.clone());
                }
                _ => put(to, &kept.file, &laid_out(&kept.data, Letters::All))?,
            }
        }
        let mut taken: BTreeSet<String> = files.iter().map(|kept| kept.file.clone()).collect();
        for lane in live.lanes() {
            let agent = match flow.pattern.as_str() {
                "chain" => lane.as_str(),
                "routing" if lane.as_str() != "router" => {
                    lane.as_str().rsplit('/').next().unwrap_or_default()
                }
                // The system keeps no conversations of others.
                _ => continue,
            };
            let session = format!("{there}_{}", plain_name(agent));
            let own = format!("agents/session_{session}");
            if spoken.contains(&lane) || !taken.insert(format!("{own}/session.json")) {
                continue;
            }
            let folder = format!("{own}/agents/agent_default");
            let written =
                conversation::write(live, &lane, AgentFolder { path: &folder, to }, losses)?;
            let raw = agent_json("default", None, &written, lifetime);
            put(to, &format!("{folder}/agent.json"), &laid_out(&raw, Letters::All))?;
            let (id, at) = (quoted(&session), quoted(&TimeForm::Offset.text(head.created_at)));
            let raw = format!(
                "{{\"session_id\":{id},\"session_type\":\"AGENT\",\"created_at\":{at},\"updated_at\":{at}}}"
            );
            put(to, &format!("{own}/session.json"), &laid_out(&raw, Letters::All))?;
            spoken.push(lane);
        }
        Ok(spoken)
    }
}

fn pattern_state(
    flow: &Flow,
    outcome: &Outcome<'_>,
    open: &[&Gate],
    kept: Option<&Kept>,
    changed: bool,
) -> String {
    let filled = kept.map(|kept| {
        let places = state::read(&flow.pattern, &kept.data, outcome.spec);
        let answers: HashMap<&str, &serde_json::Value> =
            outcome.nodes.iter().map(|node| (node.key, &node.output["response"])).collect();
        places.refill(&kept.data, |key| answers.get(key).copied())
    });
    match filled {
        Some(filled) if !changed => filled,
        filled => {
            let old = filled.as_deref().and_then(|filled| Fields::parse(filled).ok());
            let before = old.as_ref().map(|old| old.rewritten(&[("hitl_state", None)]));
            let old = old.unwrap_or_default();
            let mut state = state::write(&flow.pattern, outcome, &old);
            if let Some(gate) = open.first() {
                state["hitl_state"] = hitl_state(gate, outcome);
            }
            before.map_or_else(|| state.to_string(), |old| overlaid(&old, &state.to_string()))
        }
    }
}

/// The places in the flow that its folder tells of: nodes, and the question that it waits for.
fn places(live: &Live) -> Vec<&str> {
    let answered = live.events.iter().filter_map(|event| match &event.event {
        Event::GateAnswered(answered) => Some(answered.id.as_str()),
        _ => None,
    });
    let answered: HashSet<&str> = answered.collect();
    let places = live.events.iter().filter_map(|event| match &event.event {
        Event::Node(node) => Some(node.key.as_str()),
        Event::Gate(gate) => Some(gate.id.as_str()).filter(|id| !answered.contains(id)),
        _ => None,
    });
    places.collect()
}

/// Is an event told by the files themselves? What is not is counted.
fn is_held(event: &Recorded, spoken: &[Lane], places: &[&str], losses: &mut Losses) -> bool {
    let word = match &event.event {
        Event::Message(message) if message.role == stepwell::model::Role::System => {
            "system messages"
        }
        Event::Message(message) if !spoken.contains(&message.lane) => "conversations of its nodes",
        Event::Message(_)
        | Event::Step(_)
        | Event::Status(_)
        | Event::Compacted(_)
        | Event::Rewound(_)
        | Event::Undone(_)
        | Event::Node(_) => return true,
        Event::Gate(Gate { id, .. }) | Event::GateAnswered(GateAnswered { id, .. })
            if places.contains(&id.as_str()) =>
        {
            return true;
        }
        // A flow keeps its own spec so.
        Event::Checkpoint(it) if it.name == "spec" && it.reason == CheckpointReason::Automatic => {
            return true;
        }
        // Tokens that were counted there, and are in the sum.
        Event::Edited(edited) if is_sum(edited) => return true,
        other => match lost(other, SYSTEM) {
            Some(word) => word,
            None => return true,
        },
    };
    count_event(losses, word, &event.event);
    false
}
