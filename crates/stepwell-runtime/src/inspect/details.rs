//! A session in a list and in detail.

use stepwell::log::Timeline;
use stepwell::model::{Kind, Origin, Spent};
use stepwell::sessions::{Kin, Relative, Subagents};
use stepwell::store::query::TrashScope;
use stepwell::{Event, Recorded, Seq, SessionId, SessionInfo, Stepwell};
use stepwell_wire::{
    Child, ChildKind, LaneInfo, Messages, NamedSeq, Session, SessionDetails, SessionItem,
    SessionStatus,
};
use stepwell_workspace::Estimates;

use super::guided::is_guided;
use super::messages::rewound;
use super::work::work_state;
use crate::error::Result;

/// What is read of a log for a session's details.
const TOLD: [Kind; 5] = [Kind::File, Kind::Checkpoint, Kind::Artifact, Kind::Rewound, Kind::Undone];

/// How much of a session's family is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The session alone.
    Alone,
    /// With the sessions that grew out of it.
    Family,
}

/// A session in detail, with what could be read of it.
#[derive(Debug)]
pub struct Details {
    /// The answer. It has no messages: who wants them adds them.
    pub answer: SessionDetails,
    /// How the session stands.
    pub info: SessionInfo,
    /// The sessions that grew out of it, if they were asked for.
    pub family: Vec<Relative>,
    /// What it spent with its subagents, and how many they are.
    pub with_subagents: Option<(Spent, usize)>,
    /// Which of its events count where it stands.
    pub timeline: Timeline,
    /// Why its files, checkpoints and artifacts could not be read.
    pub unread: Option<stepwell::Error>,
}

/// A session in a list. The price of what has none is the caller's to estimate.
///
/// # Errors
/// If its subagents cannot be read.
pub fn item(well: &Stepwell, info: SessionInfo) -> Result<SessionItem> {
    let below = well.subagents_of(std::slice::from_ref(&info.head.id))?;
    Ok(item_above(info, &below))
}

/// The sessions of a list, with what they may have cost. The subagents of all are asked for at
/// once.
///
/// # Errors
/// If their subagents cannot be read.
pub fn items(
    well: &Stepwell,
    sessions: Vec<SessionInfo>,
    estimates: &Estimates<'_>,
) -> Result<Vec<SessionItem>> {
    let ids: Vec<SessionId> = sessions.iter().map(|info| info.head.id.clone()).collect();
    let below = well.subagents_of(&ids)?;
    let item = |info: SessionInfo| {
        let estimate = estimates.of(&info.head, &info.head.spent).map(|it| it.cost.into());
        SessionItem { estimate, ..item_above(info, &below) }
    };
    Ok(sessions.into_iter().map(item).collect())
}

/// A session above those of its subagents.
fn item_above(info: SessionInfo, below: &Subagents) -> SessionItem {
    let with_subagents = spent_with(&info, below);
    SessionItem {
        flow: info.head.flow.as_ref().map(Into::into),
        session: Session::from(info).listed(),
        with_subagents: with_subagents.map(|(spent, _)| (&spent).into()),
        estimate: None,
        store: None,
    }
}

/// A session in detail. What is damaged tells what can still be read.
///
/// # Errors
/// If there is no such session, or its family cannot be read.
pub fn details(well: &Stepwell, id: &SessionId, depth: Depth) -> Result<Details> {
    let info = well.info(id)?;
    let facts = well.store().keyed_events(id, &TOLD);
    let (facts, unread) = match facts {
        Ok(facts) => (facts, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let unread = unread.or_else(|| well.refuse_altered(id).err());
    let with_subagents = spent_with_subagents(well, &info)?;
    let lanes = well.store().lanes(id).unwrap_or_default();
    let family = match depth {
        Depth::Family => well.family(id, Kin::All, TrashScope::Kept)?,
        Depth::Alone => Vec::new(),
    };
    let head = &info.head;
    let timeline = Timeline::at(Seq::MAX, facts.iter());
    let moved = |it: &Recorded| matches!(it.event, Event::Rewound(_) | Event::Undone(_));
    let rewound_messages = match facts.iter().any(moved) {
        true => rewound(well, id, &timeline)?,
        false => 0,
    };
    let answer = SessionDetails {
        // Whoever knows prices fills it in.
        estimate: None,
        session: Session::of(info.clone(), Messages::Count(head.messages)),
        rewound_messages,
        with_subagents: with_subagents.as_ref().map(|(spent, _)| spent.into()),
        lanes: lanes.iter().map(|(lane, state)| LaneInfo::new(lane, state)).collect(),
        files: paths(&facts),
        checkpoints: checkpoints(&facts),
        artifacts: artifacts(&facts),
        flow: well.flow_state(head).unwrap_or_default(),
        work: is_guided(head).then(|| work_state(well, id).ok()).flatten(),
        project: well.project(id).unwrap_or_default(),
        resumed_at: well.resumed_at(head).unwrap_or_default(),
        nodes: match head.flow {
            Some(_) => Vec::new(),
            None => well.nodes(head).unwrap_or_default(),
        },
        children: (depth == Depth::Family).then(|| family.iter().map(child).collect()),
        last_messages: None,
        events: None,
    };
    Ok(Details { answer, info, family, with_subagents, timeline, unread })
}

/// What a session spent with its subagents, if it has any, and how many they are.
fn spent_with_subagents(well: &Stepwell, info: &SessionInfo) -> Result<Option<(Spent, usize)>> {
    let below = well.subagents_of(std::slice::from_ref(&info.head.id))?;
    Ok(spent_with(info, &below))
}

fn spent_with(info: &SessionInfo, below: &Subagents) -> Option<(Spent, usize)> {
    let below = below.all(&info.head.id);
    let mut spent = info.head.spent;
    below.iter().for_each(|it| spent += it.head.spent);
    (!below.is_empty()).then_some((spent, below.len()))
}

fn child(relative: &Relative) -> Child {
    let head = &relative.info.head;
    let (kind, at) = match head.origin {
        Origin::Fork { at, .. } => (ChildKind::Fork, Some(at)),
        _ => (ChildKind::Subagent, None),
    };
    let status = SessionStatus::from(&relative.info);
    Child { id: head.id.clone(), kind, at, status, parent: relative.parent.clone() }
}

/// The paths of files that changed, each once, in order of their first change.
fn paths(facts: &[Recorded]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for fact in facts {
        // A dot stands for what was not captured, whatever it was.
        if let Event::File(file) = &fact.event
            && file.path != "."
            && !paths.contains(&file.path)
        {
            paths.push(file.path.clone());
        }
    }
    paths
}

fn checkpoints(facts: &[Recorded]) -> Vec<NamedSeq> {
    let named = |fact: &Recorded| match &fact.event {
        Event::Checkpoint(it) => {
            Some(NamedSeq { name: it.name.clone(), seq: fact.seq, at: fact.at })
        }
        _ => None,
    };
    facts.iter().filter_map(named).collect()
}

fn artifacts(facts: &[Recorded]) -> Vec<String> {
    let path = |fact: &Recorded| match &fact.event {
        Event::Artifact(artifact) => Some(artifact.path.clone()),
        _ => None,
    };
    facts.iter().filter_map(path).collect()
}
