//! What a session left besides words: results of nodes, files, tasks, checkpoints, artifacts.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use stepwell::log::{Head, Timeline};
use stepwell::model::{FileState, Node, NodeState, Task};
use stepwell::{Event, Recorded};

use super::{List, NodeResult, clock};

/// What nodes came to that no conversation says.
pub(super) fn results(events: &[Recorded], timeline: &Timeline) -> Vec<NodeResult> {
    let said: HashSet<String> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::Message(message) => Some(message.text().trim().to_owned()),
            _ => None,
        })
        .collect();
    let mut nodes: Vec<&Node> = Vec::new();
    for event in events.iter().filter(|event| timeline.contains(event.seq)) {
        let Event::Node(node) = &event.event else { continue };
        // The last that is known of a node counts.
        match nodes.iter_mut().find(|known| known.key == node.key) {
            Some(known) => *known = node,
            None => nodes.push(node),
        }
    }
    let result = |node: &Node| {
        let state = match node.state {
            NodeState::Done => "done",
            NodeState::Failed => "failed",
            NodeState::Skipped => "skipped",
            NodeState::Started => "not finished",
        };
        let text = node.answer();
        let text = text.or_else(|| node.error.clone()).unwrap_or_default();
        let told = said.contains(text.trim()) && !text.trim().is_empty();
        (!told).then(|| NodeResult { key: node.key.clone(), state, text })
    };
    nodes.into_iter().filter_map(result).collect()
}

/// Files, tasks, checkpoints and artifacts, by name.
pub(super) fn lists(events: &[Recorded], timeline: &Timeline) -> Vec<List> {
    titled([
        ("Files changed", files(events)),
        ("Tasks", tasks(events, timeline)),
        ("Checkpoints", checkpoints(events, timeline)),
        ("Artifacts", artifacts(events, timeline)),
    ])
}

/// What a session was given: a flow's variables, the project, what its users noted.
pub(super) fn about(events: &[Recorded], head: &Head) -> Vec<List> {
    let created = events.iter().find_map(|it| match &it.event {
        Event::Created(created) => Some(created),
        _ => None,
    });
    let item = |(name, value): (&String, &Value)| (name.clone(), shown(value));
    let flow = created.and_then(|it| it.flow.as_ref());
    let project = created.and_then(|it| it.project.clone()).unwrap_or_default();
    let said = [("type", &project.project_type), ("framework", &project.framework)];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    let said = said.map(|(name, value)| (name.to_owned(), value.clone()));
    titled([
        ("Variables", flow.into_iter().flat_map(|it| it.variables.iter().map(item)).collect()),
        ("Project", said.chain(project.answers.iter().map(item)).collect()),
        ("Metadata", head.metadata.iter().map(item).collect()),
    ])
}

/// A value as a person reads it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn titled<const N: usize>(lists: [(&'static str, Vec<(String, String)>); N]) -> Vec<List> {
    let list = |(title, items)| List { title, items };
    lists.into_iter().map(list).filter(|list| !list.items.is_empty()).collect()
}

/// What became of files. What happened to them happened, whatever was rewound: a rewind that
/// moves files is recorded as such a change too.
fn files(events: &[Recorded]) -> Vec<(String, String)> {
    let mut files: BTreeMap<&str, (&FileState, &FileState, Option<&str>)> = BTreeMap::new();
    for event in events {
        let Event::File(file) = &event.event else { continue };
        let first = (&file.before, &file.after, file.renamed_from.as_deref());
        files.entry(&file.path).or_insert(first).1 = &file.after;
    }
    let same = |before: &FileState, after: &FileState| {
        before == after && !matches!(before, FileState::NotCaptured { digest: None, .. })
    };
    let changed = files.into_iter().filter(|(_, (before, after, _))| !same(before, after));
    changed
        .map(|(path, (before, after, from))| (path.to_owned(), change(before, after, from)))
        .collect()
}

/// What became of a file, from what was there first to what is there last.
fn change(before: &FileState, after: &FileState, renamed_from: Option<&str>) -> String {
    match (before, after, renamed_from) {
        (_, FileState::Absent, _) => "deleted".to_owned(),
        (_, _, Some(from)) => format!("renamed from {from}"),
        (FileState::Absent, _, None) => "created".to_owned(),
        _ => "changed".to_owned(),
    }
}

fn tasks(events: &[Recorded], timeline: &Timeline) -> Vec<(String, String)> {
    let mut tasks: Vec<&Task> = Vec::new();
    for event in events.iter().filter(|event| timeline.contains(event.seq)) {
        let Event::Task(task) = &event.event else { continue };
        match tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => tasks.push(task),
        }
    }
    tasks
        .into_iter()
        .map(|task| (task.id.clone(), format!("{} ({})", task.description, task.status)))
        .collect()
}

/// Checkpoints, also those that a rewind left behind: they can still be gone to.
fn checkpoints(events: &[Recorded], timeline: &Timeline) -> Vec<(String, String)> {
    let mut checkpoints: Vec<(String, String)> = Vec::new();
    for Recorded { seq, at, event, .. } in events {
        let Event::Checkpoint(checkpoint) = event else { continue };
        // A later one of the same name takes its place.
        checkpoints.retain(|(name, _)| *name != checkpoint.name);
        let left = if timeline.contains(*seq) { "" } else { ", rewound" };
        checkpoints
            .push((checkpoint.name.clone(), format!("at event {seq}, {}{left}", clock(*at))));
    }
    checkpoints
}

fn artifacts(events: &[Recorded], timeline: &Timeline) -> Vec<(String, String)> {
    let mut artifacts: BTreeMap<String, String> = BTreeMap::new();
    for event in events.iter().filter(|event| timeline.contains(event.seq)) {
        if let Event::Artifact(artifact) = &event.event {
            artifacts.insert(artifact.path.clone(), format!("SHA-256 {}", artifact.digest));
        }
    }
    artifacts.into_iter().collect()
}
