//! Listing sessions: those of a folder's store, or of all of the user's and of other agents, page by
//! page.

use std::cmp::Reverse;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stepwell::log::{Head, Redactor};
use stepwell::model::{Driver, Time};
use stepwell::store::query::{Family, Filter, Query};
use stepwell::{SessionId, SessionInfo};
use stepwell_runtime::Runtime;
use stepwell_workspace::{NamedWell, Opening, known_stores, other_sessions};

use crate::rpc::{Result, RpcError};

use super::fault::failed;

/// How many sessions a page has.
const PAGE: usize = 50;

/// The longest title.
const LONGEST_TITLE: usize = 100;

/// Where a session stands in the list: the one that changed last comes first. It is also where a
/// page ended, so that sessions that come or go do not shift the next one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ListKey {
    /// When it last changed, in microseconds since 1970.
    at: i64,
    id: String,
}

impl ListKey {
    fn new(at: Time, id: &str) -> Self {
        Self { at: at.as_micros(), id: id.to_owned() }
    }
}

/// A session in the list.
struct Listed {
    place: ListKey,
    shown: Value,
}

/// A page of sessions, the newest first, wherever they are. Without `here` all stores are listed.
pub(super) fn list(runtime: &Runtime, here: Option<&Path>, cursor: Option<&str>) -> Result<Value> {
    let after = cursor.map(serde_json::from_str::<ListKey>).transpose();
    let after = after.map_err(|_| RpcError::invalid_params("this is no cursor of ours"))?;
    let wells = match here {
        Some(_) => {
            let well =
                runtime.workspace().open_if_present().map_err(|error| failed(&error.into()))?;
            let name = runtime.workspace().place.store.clone();
            well.map(|well| NamedWell { name, well }).into_iter().collect()
        }
        None => known_stores::open_all(runtime.workspace(), Opening::Read),
    };
    let mut found = others(runtime, here, after.as_ref());
    let redactor = runtime.workspace().redactor().with_own_count();
    for NamedWell { well, .. } in &wells {
        for info in page_of(well, after.as_ref())? {
            let shown = shown(info, &runtime.workspace().place.root, &redactor);
            found.push(shown);
        }
    }
    found.sort_by(|one, other| other.place.cmp(&one.place));
    let more = found.len() > PAGE;
    found.truncate(PAGE);
    let next = found.last().filter(|_| more).map(|last| last.place.clone());
    let sessions: Vec<Value> = found.into_iter().map(|listed| listed.shown).collect();
    let mut page = json!({"sessions": sessions});
    if let Some(next) = next.and_then(|next| serde_json::to_string(&next).ok()) {
        page["nextCursor"] = json!(next);
    }
    Ok(page)
}

/// The sessions of a store that may be on the page behind a place, and the one that says whether
/// there is another page. A store sorts those of one time in its own way: all of them are taken.
fn page_of(well: &stepwell::Stepwell, after: Option<&ListKey>) -> Result<Vec<SessionInfo>> {
    // A session that another program drives cannot go on here.
    let filter = Filter {
        family: Family::Roots,
        driver: Some(Driver::Own),
        until: after.map(|after| Time::from_micros(after.at.saturating_add(1))),
        ..Filter::default()
    };
    let mut page: Vec<SessionInfo> = Vec::new();
    for info in well.sessions(Query { filter, limit: PAGE + 1, ..Query::default() }) {
        let info = info.map_err(|error| failed(&error.into()))?;
        let last = page.last().map(|last| last.head.updated_at);
        if page.len() > PAGE && last != Some(info.head.updated_at) {
            break;
        }
        if after.is_none_or(|after| place(&info) < *after) {
            page.push(info);
        }
    }
    Ok(page)
}

fn place(info: &SessionInfo) -> ListKey {
    ListKey::new(info.head.updated_at, info.head.id.as_str())
}

/// Other agents' sessions that are in no store yet, if the user switched their index on. Loading
/// one imports it.
fn others(runtime: &Runtime, here: Option<&Path>, after: Option<&ListKey>) -> Vec<Listed> {
    // Later pages go on with the index of the first one. One that cannot be read is no reason not
    // to list the rest.
    let index = match after {
        None => other_sessions::refresh(runtime.workspace()),
        Some(_) => other_sessions::known(runtime.workspace()),
    };
    let Ok(Some(index)) = index else { return Vec::new() };
    let wells = known_stores::open_all(runtime.workspace(), Opening::Read);
    let here_is = |folder: &str| {
        here.is_none_or(|here| {
            Path::new(folder) == here || Path::new(folder) == runtime.workspace().place.root
        })
    };
    let mut known = index.find("");
    known.retain(|it| here_is(&it.folder));
    known.sort_by_key(|it| Reverse(ListKey::new(it.used_at(), &it.id)));
    let mut found = Vec::new();
    for other in known {
        let Ok(id) = other.id.parse::<SessionId>() else { continue };
        let place = ListKey::new(other.used_at(), &other.id);
        let is_due = after.is_none_or(|after| place < *after);
        if !is_due || wells.iter().any(|named| named.well.info(&id).is_ok()) {
            continue;
        }
        let meta = json!({"status": "idle", "importedFrom": null, "of": other.system});
        let shown = json!({
            "sessionId": id,
            "cwd": other.folder,
            "title": line(&other.title),
            "updatedAt": other.used_at().to_string(),
            "_meta": {"stepwell": meta},
        });
        found.push(Listed { place, shown });
        if found.len() > PAGE {
            break;
        }
    }
    found
}

fn shown(info: SessionInfo, root: &Path, redactor: &Redactor) -> Listed {
    let place = place(&info);
    let head = info.head.redacted(redactor);
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
    let shown = json!({
        "sessionId": head.id,
        "cwd": cwd,
        "title": title(&head),
        "updatedAt": head.updated_at.to_string(),
        "_meta": {"stepwell": meta},
    });
    Listed { place, shown }
}

/// What a session is called: its label, or the beginning of its task. It is cut, so secrets are
/// taken out of the head before.
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
