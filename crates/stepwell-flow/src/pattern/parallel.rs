//! Branches beside each other, then perhaps one step that takes them together.

use serde_json::json;
use stepwell::NodeKey;

use super::trail::Trail;
use super::{At, Otherwise, Reached, id, lane, response, step};
use crate::flow::Flow;
use crate::halt::{self, Halt};
use crate::spec::{Branch, Parallel};
use crate::template::SharedMap;

pub(super) async fn walk(flow: &Flow<'_>, parallel: &Parallel) -> Result<Reached, Halt> {
    let branches = parallel.branches.iter().map(|branch| walk_branch(flow, branch));
    let trails = halt::all(futures_util::future::join_all(branches).await)?;
    let results = SharedMap::default();
    let mut all = String::new();
    let mut scope = flow.variables.clone();
    for (branch, trail) in parallel.branches.iter().zip(&trails) {
        let said = trail.last.as_str().map_or_else(|| trail.last.to_string(), str::to_owned);
        all.push_str(&format!("## {}\n\n{said}\n\n", branch.id));
        let entry = json!({
            "response": trail.last, "status": "success", "steps": trail.steps(),
        });
        results.set(branch.id.as_str(), entry);
    }
    scope.share("branches", &results);
    let all = all.trim_end().to_owned();
    let Some(reduce) = &parallel.reduce else {
        scope.set("last_response", &all);
        return Ok(Reached { scope, last: all.into() });
    };
    let at = At { key: &NodeKey::Reduce, lane: lane("reduce"), scope: &scope };
    let output = step(flow, reduce, at, Otherwise::Text(&all)).await?;
    let last = response(&output);
    scope.set("last_response", &last);
    if reduce.gate().is_some() {
        scope.set("hitl_response", &last);
    }
    Ok(Reached { scope, last })
}

async fn walk_branch(flow: &Flow<'_>, branch: &Branch) -> Result<Trail, Halt> {
    let lane_of = |agent: &str| lane(&format!("{}/{agent}", branch.id));
    let key = |n| NodeKey::Branch(id(&branch.id), n);
    Trail::new(flow.variables.clone()).walk(flow, &branch.steps, key, lane_of).await
}
