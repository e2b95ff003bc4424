//! A chain: one step after the other.

use stepwell::model::NodeKey;

use super::sequence::Sequence;
use super::step::{Completed, lane};
use crate::flow::Flow;
use crate::halt::Halt;
use crate::spec::Chain;

pub(crate) async fn walk(flow: &Flow<'_>, chain: &Chain) -> Result<Completed, Halt> {
    let steps = Sequence::new(flow.variables.clone());
    let Sequence { scope, last, .. } = steps.walk(flow, &chain.steps, NodeKey::Step, lane).await?;
    Ok(Completed { scope, last })
}
