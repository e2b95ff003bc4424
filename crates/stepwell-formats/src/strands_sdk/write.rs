//! Writing a session: its agents, their messages, and what has no place there beside them.

use std::collections::BTreeSet;

use stepwell::log::Head;
use stepwell::model::{About, Change, Edited, Elsewhere, Foreign, Role};
use stepwell::{Event, Lane, Message, Recorded, SessionId, Status, Stepwell};

use super::conversation::{self, AgentFolder, Lifetime, Live, agent_json, plain_name};
use super::kept::Kept;
use super::sidecar::{self, put};
use super::{FOLDER, SYSTEM};
use crate::Result;
use crate::json::fields::{push_field, quoted};
use crate::json::json_text::{Letters, laid_out};
use crate::original;
use crate::read::mark::mark_of;
use crate::read::neutral::without_facts;
use crate::read::steps::Steps;
use crate::snapshot::TimeForm;
use crate::write::facts::{Says, count_facts};
use crate::write::writer::{
    Exported, FOREIGN, Losses, Outlet, SUBAGENTS, count_event, each_event, subagents, word_for,
};

/// Writes a session.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    let own = id_there(&head, SYSTEM, to);
    if let Some(same) = original::write_folder(well, &head, (SYSTEM, &own), to)? {
        return Ok(same);
    }
    let (live, mut exported) = live(well, id, SYSTEM)?;
    let losses = &mut exported.losses;
    let files = live.files(SYSTEM);
    let session = files.iter().find(|kept| kept.file == "session.json");
    let raw = session.map_or_else(|| session_json(&head, to), |kept| kept.data.clone());
    put(to, "session.json", &laid_out(&raw, Letters::All))?;
    to.folder("agents")?;
    to.folder("multi_agents")?;
    for kept in files.iter().filter(|kept| kept.file.starts_with("multi_agents/")) {
        put(to, &kept.file, &laid_out(&kept.data, Letters::All))?;
    }
    for agent in agents(&live, &head, &files) {
        let written = conversation::write(
            &live,
            &agent.lane,
            AgentFolder { path: &agent.folder, to },
            losses,
        )?;
        let raw = agent_json(&agent.id, agent.kept, &written, Lifetime::of(&head));
        put(to, &format!("{}/agent.json", agent.folder), &laid_out(&raw, Letters::All))?;
    }
    let homeless: Vec<&Recorded> =
        live.events.iter().filter(|event| !is_held(event, losses)).collect();
    let there = id_there(&head, SYSTEM, to);
    let mark = mark_of(well, &head, (SYSTEM, &there))?;
    sidecar::write(to, mark, &files, &homeless)?;
    tell_facts(&live, &head, &mut exported.losses);
    Ok(exported)
}

/// Names what the folder does not say of the session. One that came from there and was not gone
/// on with says what it said.
fn tell_facts(live: &Live, head: &Head, losses: &mut Losses) {
    let ours = head.source.as_ref().is_some_and(|it| it.system == SYSTEM);
    if ours && !grew(live) {
        return;
    }
    let spoken = live.events.iter().filter_map(|event| match &event.event {
        Event::Message(said) if said.lane == Lane::main() => Some(said),
        _ => None,
    });
    let (mut first, mut steps, mut done) = (None, Steps::default(), 0);
    for said in spoken {
        done += u64::from(steps.said(said).is_some());
        if said.role == Role::User && first.is_none() {
            first = Some(said.text()).filter(|text| !text.trim().is_empty());
        }
    }
    let stands = match steps.status() {
        it if it.status == Status::Success => (it.status, it.reason),
        _ => (Status::Interrupted, None),
    };
    let agent = plain_name(&head.agent);
    let says = Says {
        status: Some(stands),
        task: first.as_deref().unwrap_or_default(),
        agent: &agent,
        // It has no place for them: whoever reads it counts them.
        steps: done.min(head.steps),
        updated: true,
        ..Says::default()
    };
    count_facts(losses, head, &says);
}

/// Was something said or done here after what came from there?
fn grew(live: &Live) -> bool {
    let told = live.events.iter().rfind(|event| {
        matches!(&event.event, Event::Foreign(it)
            if it.system == SYSTEM && it.about == About::Session)
    });
    let told = told.map(|event| event.seq).unwrap_or_default();
    let mut statuses = 0;
    live.events.iter().filter(|event| event.seq > told).any(|event| match &event.event {
        Event::Status(_) => {
            statuses += 1;
            statuses > 1
        }
        event => matches!(event, Event::Message(_) | Event::Step(_) | Event::Node(_)),
    })
}

/// A session's events that count, and what is lost already.
pub(crate) fn live(well: &Stepwell, id: &SessionId, system: &str) -> Result<(Live, Exported)> {
    let mut all = Vec::new();
    let damage = each_event(well, id, &mut |event| {
        all.push(event);
        Ok(())
    })?;
    let mut losses = Losses::default();
    let events = all.len() as u64;
    let live = Live::of(all, system);
    for _ in 0..live.rewound {
        losses.count("messages that were rewound");
    }
    for _ in subagents(well, id)? {
        losses.count(SUBAGENTS);
    }
    let damaged = damage.map(|damage| (id.clone(), damage)).into_iter().collect();
    Ok((live, Exported { sessions: 1, events, damaged, losses }))
}

/// The session's name there.
pub(crate) fn id_there(head: &Head, system: &str, to: &Outlet<'_>) -> String {
    let source = head.source.as_ref().filter(|source| source.system == system);
    let own = source.map_or_else(|| head.id.to_string(), |source| source.id.clone());
    // The folder's name is what the system finds it by; of one with a dot, the front is known.
    match to.name().and_then(|name| name.strip_prefix(FOLDER)) {
        Some(name) if own != name && !own.starts_with(&format!("{name}.")) => name.to_owned(),
        _ => own,
    }
}

fn session_json(head: &Head, to: &Outlet<'_>) -> String {
    let mut raw = String::from("{");
    push_field(&mut raw, "session_id", &quoted(&id_there(head, SYSTEM, to)));
    push_field(&mut raw, "session_type", "\"AGENT\"");
    let at = quoted(&TimeForm::Offset.text(head.created_at));
    push_field(&mut raw, "created_at", &at);
    push_field(&mut raw, "updated_at", &at);
    raw.push('}');
    raw
}

/// An agent that is written.
struct Agent<'a> {
    id: String,
    folder: String,
    lane: Lane,
    kept: Option<&'a str>,
}

/// The agents that came from there, and one for each lane that did not.
fn agents<'a>(live: &Live, head: &Head, files: &'a [Kept]) -> Vec<Agent<'a>> {
    let mut agents: Vec<Agent<'a>> = Vec::new();
    for kept in files {
        let Some(folder) = kept.file.strip_suffix("/agent.json") else { continue };
        let Some(lane) = kept.lane.clone() else { continue };
        let id = folder.rsplit("/agent_").next().unwrap_or_default().to_owned();
        agents.push(Agent { id, folder: folder.to_owned(), lane, kept: Some(&kept.data) });
    }
    let mut taken: BTreeSet<String> = agents.iter().map(|agent| agent.folder.clone()).collect();
    for lane in live.lanes() {
        if agents.iter().any(|agent| agent.lane == lane) {
            continue;
        }
        let name = if lane == Lane::main() { head.agent.as_str() } else { lane.as_str() };
        let name = plain_name(name);
        let id = (1..)
            .map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") })
            .find(|id| taken.insert(format!("agents/agent_{id}")))
            .unwrap_or(name);
        agents.push(Agent { folder: format!("agents/agent_{id}"), id, lane, kept: None });
    }
    agents
}

/// Is an event told by the files themselves? What is not is counted.
fn is_held(event: &Recorded, losses: &mut Losses) -> bool {
    let word = match &event.event {
        Event::Message(Message { role: Role::System, .. }) => "system messages",
        Event::Message(_)
        | Event::Step(_)
        | Event::Status(_)
        | Event::Compacted(_)
        | Event::Rewound(_)
        | Event::Undone(_) => return true,
        // Of a group, and kept with it.
        Event::Node(node) if node.key.starts_with("group/") => return true,
        Event::Edited(edited) if is_sum(edited) => return true,
        other => match lost(other, SYSTEM) {
            Some(word) => word,
            None => return true,
        },
    };
    count_event(losses, word, &event.event);
    false
}

/// Does an edit only say how many tokens were used there? The files that are kept say it too.
pub(crate) fn is_sum(edited: &Edited) -> bool {
    let usage = edited.elsewhere.as_ref().map(|it| it.usage).unwrap_or_default();
    let elsewhere = Some(Elsewhere { usage, ..Elsewhere::default() });
    *edited == Edited { elsewhere, ..Edited::default() }
}

/// What an event is called that has no place in a Strands folder.
pub(crate) fn lost(event: &Event, system: &str) -> Option<&'static str> {
    match event {
        Event::Created(created) => {
            let ours = created.source.as_ref().is_some_and(|it| it.system == system);
            let plain = created.workspace.is_empty() && created.project.is_none();
            (!ours && !plain).then_some("the session's own description")
        }
        Event::Foreign(Foreign { system: of, about, .. }) => {
            let ours = of == system && *about != About::Itself;
            (!ours).then_some(FOREIGN)
        }
        Event::Edited(edited) => {
            let mut rest = without_facts(edited);
            rest.label = match rest.label {
                Change::Clear => Change::Keep,
                label => label,
            };
            (rest != Edited::default()).then(|| word_for(event))
        }
        other => Some(word_for(other)),
    }
}
