//! Listing sessions: those of a folder's store, or of all of the user's, page by page.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell::{Access, Cursor, Driver, Family, Filter, Head, Query, SessionId, SessionInfo};
use stepwell_runtime::Runtime;
use stepwell_workspace::NamedWell;

use crate::rpc::{Result, RpcError};

use super::fault::failed;

/// How many sessions a page has.
const PAGE: usize = 50;

/// How many sessions of other agents are listed, behind the last page.
const OTHERS: usize = 50;

/// The longest title.
const LONGEST_TITLE: usize = 100;

/// Where a page ended.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    store: PathBuf,
    #[serde(default)]
    after: Option<Cursor>,
}

/// A page of sessions, the newest of each store first. Without `here` all stores are listed, one
/// after the other.
pub(super) fn list(runtime: &Runtime, here: Option<&Path>, cursor: Option<&str>) -> Result<Value> {
    let place = cursor.map(serde_json::from_str::<Place>).transpose();
    let place = place.map_err(|_| RpcError::invalid_params("this is no cursor of ours"))?;
    let mut wells = match here {
        Some(_) => {
            let well = runtime.look().map_err(|error| failed(&error.into()))?;
            let name = runtime.place.store.clone();
            well.map(|well| NamedWell { name, well }).into_iter().collect()
        }
        None => runtime.everywhere(|workspace, folder| workspace.open(folder, Access::Read)),
    };
    if let Some(place) = &place {
        let gone = wells.iter().position(|it| it.name == place.store).unwrap_or(wells.len());
        wells.drain(..gone);
    }
    let (mut sessions, mut after) = (Vec::new(), place.and_then(|place| place.after));
    for NamedWell { name, well } in wells {
        let room = PAGE - sessions.len();
        if room == 0 {
            let next = Place { store: name, after: None };
            return Ok(page(&sessions, Some(next)));
        }
        let filter = Filter { family: Family::Roots, ..Filter::default() };
        let query = Query { filter, limit: room, after: after.take(), ..Query::default() };
        let found = well.list(&query).map_err(|error| failed(&error.into()))?;
        // A session that another program drives cannot go on here.
        let ours = found.sessions.iter().filter(|it| it.head.driver == Driver::Own);
        sessions.extend(ours.map(|it| info(it, &runtime.place.root)));
        if let Some(after) = found.next.filter(|_| found.sessions.len() == room) {
            let next = Place { store: name, after: Some(after) };
            return Ok(page(&sessions, Some(next)));
        }
    }
    sessions.extend(others(runtime, here)?);
    Ok(page(&sessions, None))
}

/// Other agents' sessions that are in no store yet, if the user switched their index on, the
/// newest first. Loading one imports it.
fn others(runtime: &Runtime, here: Option<&Path>) -> Result<Vec<Value>> {
    // An index that cannot be read is no reason not to list the rest.
    let Ok(Some(index)) = runtime.refresh_other_sessions() else { return Ok(Vec::new()) };
    let wells = runtime.everywhere(|workspace, folder| workspace.open(folder, Access::Read));
    let here_is = |folder: &str| {
        here.is_none_or(|here| Path::new(folder) == here || Path::new(folder) == runtime.place.root)
    };
    let mut found = Vec::new();
    for other in index.find("").into_iter().filter(|it| here_is(&it.folder)) {
        let Ok(id) = other.id.parse::<SessionId>() else { continue };
        let is_here = |named: &NamedWell| named.well.info(&id).is_ok();
        if found.len() < OTHERS && !wells.iter().any(is_here) {
            let meta = json!({"status": "idle", "importedFrom": null, "of": other.system});
            found.push(json!({
                "sessionId": id,
                "cwd": other.folder,
                "title": line(&other.title),
                "updatedAt": other.used_at().to_string(),
                "_meta": {"stepwell": meta},
            }));
        }
    }
    Ok(found)
}

fn page(sessions: &[Value], next: Option<Place>) -> Value {
    let mut page = json!({"sessions": sessions});
    if let Some(next) = next.and_then(|next| serde_json::to_string(&next).ok()) {
        page["nextCursor"] = json!(next);
    }
    page
}

fn info(info: &SessionInfo, root: &Path) -> Value {
    let head = &info.head;
    let cwd = Path::new(&head.workspace);
    let cwd = if cwd.is_absolute() { cwd } else { root };
    let system = head.source.as_ref().map(|source| source.system.clone());
    let meta = json!({
        "status": head.status.as_str(),
        "agent": head.agent,
        "model": head.model,
        "importedFrom": system,
        "waiting": head.open_gates,
        "runs": info.held.is_some(),
    });
    json!({
        "sessionId": head.id,
        "cwd": cwd,
        "title": title(head),
        "updatedAt": head.updated_at.to_string(),
        "_meta": {"stepwell": meta},
    })
}

/// What a session is called: its label, or the beginning of its task.
pub(super) fn title(head: &Head) -> String {
    line(head.label.as_deref().unwrap_or(&head.task))
}

/// The first line of a text, not too long.
fn line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
