//! `_stepwell/*`: what Stepwell can do with a session that the protocol has no words for.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::Seq;
use stepwell::model::{Checkpoint, CheckpointReason, Scope};
use stepwell::sqlite::Access;
use stepwell::store::query::{Filter, Rank, Search, SystemPrompts};
use stepwell_files::rewind::Done;
use stepwell_runtime::inspect::{self, Viewed};
use stepwell_runtime::{Error, RewindRequest, Runtime};
use stepwell_wire::{CheckpointInfo, SearchHit, Verified};

use crate::rpc::{Result, RpcError};

use super::fault::{failed, session_id};
use super::input::read;

/// The methods.
pub(super) const METHODS: [&str; 7] = [
    "_stepwell/rewind",
    "_stepwell/checkpoint",
    "_stepwell/checkpoints",
    "_stepwell/diff",
    "_stepwell/view",
    "_stepwell/search",
    "_stepwell/verify",
];

/// What is asked for.
#[derive(Debug)]
pub(super) enum Asked {
    /// Something about one session, by the method's name.
    About(String, About),
    /// A search.
    Search(SearchAsked),
}

/// Where it is done.
pub(super) enum Target<'a> {
    /// In a folder's store.
    Folder(Option<&'a Path>),
    /// Where that session is.
    Session(&'a str),
}

/// Names a session, and points of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct About {
    session_id: String,
    #[serde(default)]
    to: Option<Point>,
    #[serde(default)]
    from: Option<Point>,
    #[serde(default)]
    at: Option<Point>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    files: Option<bool>,
}

/// A point: a seq, or what people write for one.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a point is a seq or a name")]
enum Point {
    Seq(u64),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct SearchAsked {
    query: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    limit: Option<usize>,
}

/// The most hits of a search.
const MOST_HITS: usize = 100;

impl Asked {
    /// Reads what one of the methods asks for.
    pub(super) fn read(method: &str, params: Value) -> Result<Self> {
        if method != "_stepwell/search" {
            return Ok(Self::About(method.to_owned(), read(params)?));
        }
        let asked: SearchAsked = read(params)?;
        match asked.query.chars().any(char::is_alphanumeric) {
            true => Ok(Self::Search(asked)),
            false => Err(RpcError::invalid_params("`query` holds no word to search for")),
        }
    }

    /// Where it is done.
    pub(super) fn place(&self) -> Target<'_> {
        match self {
            Self::About(_, about) => Target::Session(&about.session_id),
            Self::Search(asked) => Target::Folder(asked.cwd.as_deref()),
        }
    }

    /// Does it there.
    pub(super) fn answer(self, runtime: &Runtime) -> Result<Value> {
        let (method, asked) = match self {
            Self::About(method, asked) => (method, asked),
            Self::Search(asked) => return search(runtime, asked),
        };
        let done = match method.as_str() {
            "_stepwell/rewind" => rewind(runtime, &asked),
            "_stepwell/checkpoint" => checkpoint(runtime, &asked),
            "_stepwell/checkpoints" => checkpoints(runtime, &asked),
            "_stepwell/diff" => diff(runtime, &asked),
            "_stepwell/view" => view(runtime, &asked),
            "_stepwell/verify" => verify(runtime, &asked),
            other => return Err(RpcError::method_not_found(other)),
        };
        done.map_err(|error| failed(&error))
    }
}

impl About {
    fn point(&self, runtime: &Runtime, point: Option<&Point>) -> Result<Option<Seq>, Error> {
        let id = session_id(&self.session_id)?;
        Ok(match point {
            None => None,
            Some(Point::Seq(seq)) => Some(Seq::new(*seq)),
            Some(Point::Text(text)) => {
                Some(runtime.workspace().open_existing(Access::Read)?.point(&id, text)?)
            }
        })
    }
}

fn rewind(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let to = match asked.point(runtime, asked.to.as_ref())? {
        Some(to) => to,
        None => runtime.workspace().open_existing(Access::Read)?.last_words(&id)?,
    };
    let scope = if asked.files == Some(false) { Scope::Chat } else { Scope::Both };
    Ok(match runtime.rewind(&RewindRequest::new(id, to, scope))? {
        Done::Rewound { seq, checkpoint, .. } => {
            json!({"rewound": true, "to": to, "seq": seq, "checkpoint": checkpoint})
        }
        Done::Refused(_) => {
            json!({"rewound": false, "to": to, "why": "files that someone else changed are in the way"})
        }
    })
}

fn checkpoint(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let name = asked.name.clone().unwrap_or_else(|| "editor".to_owned());
    let (reason, metadata) = (CheckpointReason::Manual, std::collections::BTreeMap::new());
    let made = Checkpoint { name: name.clone(), reason, metadata };
    let seq = runtime.workspace().open_existing(Access::Write)?.checkpoint(&id, made)?;
    Ok(json!({"name": name, "seq": seq}))
}

fn checkpoints(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let all = runtime.workspace().open_existing(Access::Read)?.checkpoints(&id)?.into_iter();
    let all: Vec<CheckpointInfo> = all.map(Into::into).collect();
    Ok(json!({"checkpoints": all}))
}

fn diff(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let from = asked.point(runtime, asked.from.as_ref())?.unwrap_or(Seq::ZERO);
    let to = asked.point(runtime, asked.to.as_ref())?.unwrap_or(Seq::MAX);
    let files = inspect::patches(&runtime.workspace().open_existing(Access::Read)?, &id, from, to)?;
    Ok(json!({"files": files}))
}

fn view(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let at = asked.point(runtime, asked.at.as_ref())?;
    let well = runtime.workspace().open_existing(Access::Read)?;
    let viewed = Viewed { at, ..Viewed::default() };
    let view = inspect::model_view(runtime, &well, &id, &viewed)?;
    Ok(serde_json::to_value(view).unwrap_or_default())
}

fn verify(runtime: &Runtime, asked: &About) -> Result<Value, Error> {
    let id = session_id(&asked.session_id)?;
    let verdict =
        runtime.workspace().open_existing(Access::Read)?.store().maintain().verify(&id)?;
    let verified = Verified::new(id, &verdict);
    Ok(serde_json::to_value(verified).unwrap_or_default())
}

fn search(runtime: &Runtime, asked: SearchAsked) -> Result<Value> {
    let limit = asked.limit.unwrap_or(20).min(MOST_HITS);
    let found = if runtime.workspace().place.has_store() {
        let (filter, rank, system) = (Filter::default(), Rank::Newest, SystemPrompts::Skipped);
        let search = Search { text: asked.query, filter, rank, limit, system };
        let well = runtime.workspace().open_writable_if_possible(&runtime.workspace().place.store);
        let well = well.map_err(|error| failed(&error.into()))?;
        well.search(&search).map_err(|error| failed(&error.into()))?.hits
    } else {
        Vec::new()
    };
    Ok(json!({"hits": found.into_iter().map(SearchHit::from).collect::<Vec<_>>()}))
}
