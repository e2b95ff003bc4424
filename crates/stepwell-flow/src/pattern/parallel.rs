//! Parallel branches, and an optional step that combines their results.

use serde_json::json;
use stepwell::model::NodeKey;

use super::sequence::Sequence;
use super::step::{At, Completed, Fallback, lane, node_id, response, run_step};
use crate::flow::Flow;
use crate::halt::{self, Halt};
use crate::spec::{Branch, Parallel};
use crate::template::SharedMap;

pub(crate) async fn walk(flow: &Flow<'_>, parallel: &Parallel) -> Result<Completed, Halt> {
    let branches = parallel.branches.iter().map(|branch| walk_branch(flow, branch));
    let sequences = halt::all(futures_util::future::join_all(branches).await)?;
    let results = SharedMap::default();
    let mut all = String::new();
    let mut scope = flow.variables.clone();
    for (branch, sequence) in parallel.branches.iter().zip(&sequences) {
        let last = &sequence.last;
        let text = last.as_str().map_or_else(|| last.to_string(), str::to_owned);
        all.push_str(&format!("## {}\n\n{text}\n\n", branch.id));
        let entry = json!({ "response": last, "status": "success", "steps": sequence.steps() });
        results.set(branch.id.as_str(), entry);
    }
    scope.share("branches", &results);
    let all = all.trim_end().to_owned();
    let Some(reduce) = &parallel.reduce else {
        scope.set("last_response", &all);
        return Ok(Completed { scope, last: all.into() });
    };
    let at = At { key: &NodeKey::Reduce, lane: lane("reduce"), scope: &scope };
    let output = run_step(flow, reduce, at, Fallback::Text(&all)).await?;
    let last = response(&output);
    scope.set("last_response", &last);
    if reduce.gate().is_some() {
        scope.set("hitl_response", &last);
    }
    Ok(Completed { scope, last })
}

async fn walk_branch(flow: &Flow<'_>, branch: &Branch) -> Result<Sequence, Halt> {
    let lane_of = |agent: &str| lane(&format!("{}/{agent}", branch.id));
    let key = |n| NodeKey::Branch(node_id(&branch.id), n);
    Sequence::new(flow.variables.clone()).walk(flow, &branch.steps, key, lane_of).await
}
