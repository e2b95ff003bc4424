//! What a flow's session remembers of what was asked for: its settings, where its spec is, and where
//! its artifacts go.

use std::path::PathBuf;

use stepwell::log::Head;
use stepwell::model::{FlowSettings, Settings, Who};
use stepwell::trust::Weighed;

use crate::request::{FlowOptions, RunOptions};
use crate::runtime::Runtime;

/// The metadata key under which a flow's session remembers where its spec and its artifacts
/// are.
pub(super) const FLOW: &str = "flow";

/// What is remembered of what was asked for, for those to come.
pub(super) fn remembered(options: &RunOptions, flow: FlowSettings, who: Who) -> Settings {
    let model = options.model.as_ref().map(|model| match model.trim().strip_prefix("script:") {
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
            format!("script:{}", path.display())
        }
        None => model.clone(),
    });
    let (mode, budget) = (options.mode, options.budget_total);
    Settings { agent: None, model, mode, budget, flow: Some(flow), revokes: false, who }
}

/// Where artifacts go.
pub(super) fn output(flow: &FlowOptions, kept: Option<String>, runtime: &Runtime) -> PathBuf {
    let here = || {
        runtime
            .workspace()
            .host
            .folder
            .clone()
            .unwrap_or_else(|| runtime.workspace().place.root.clone())
    };
    let given = flow.output.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone()));
    given.or_else(|| kept.map(PathBuf::from)).unwrap_or_else(here)
}

/// Where the user keeps a flow's spec, or has its artifacts written. Anyone can change a session's
/// metadata: what it says counts only where the user has not said it in any other way.
pub(super) fn place_of(key: &str, weighed: &Weighed, head: &Head) -> Option<String> {
    match (&weighed.mine.flow, key) {
        (Some(mine), "output") => mine.output.clone(),
        (Some(mine), _) => mine.path.clone(),
        (None, _) => Some(head.metadata.get(FLOW)?.get(key)?.as_str()?.to_owned()),
    }
}
