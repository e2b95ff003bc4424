//! The settings of a flow: what was asked for, where its spec is, and where its artifacts go.

use std::path::PathBuf;

use stepwell::model::{FlowSettings, Settings, Who};
use stepwell::trust::Weighed;

use crate::request::{FlowOptions, RunOptions};
use crate::runtime::Runtime;

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

/// Where a flow's spec lies, and where its artifacts go. What others say counts only where the user
/// has said nothing.
pub(super) fn chosen(weighed: &Weighed) -> Option<&FlowSettings> {
    weighed.mine.flow.as_ref().or(weighed.theirs.flow.as_ref())
}

/// The file of a flow's spec.
pub(super) fn spec_path(weighed: &Weighed) -> Option<String> {
    chosen(weighed)?.path.clone()
}
