//! A chain: one step after the other.

use stepwell::NodeKey;

use super::trail::Trail;
use super::{Reached, lane};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::Chain;

pub(super) async fn walk(flow: &Flow<'_>, chain: &Chain) -> Result<Reached, Halt> {
    let trail = Trail::new(flow.variables.clone());
    let Trail { scope, last, .. } = trail.walk(flow, &chain.steps, NodeKey::Step, lane).await?;
    Ok(Reached { scope, last })
}
