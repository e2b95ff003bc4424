//! Routing: a router chooses one of several routes; a person may review the choice.

use serde_json::{Value, json};
use stepwell::model::NodeKey;

use super::sequence::Sequence;
use super::step::{Completed, Fallback, Prompt, lane, node_id, output_schema};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::memo::is_approval;
use crate::node::Work;
use crate::spec::{Name, Review, Routing};
use crate::template::Scope;

pub(crate) async fn walk(flow: &Flow<'_>, routing: &Routing) -> Result<Completed, Halt> {
    let mut scope = flow.variables.clone();
    let routes: Vec<&str> = routing.routes.keys().map(Name::as_str).collect();
    scope.set("routes", &routes);
    let mut router = choose(flow, routing, &scope).await?;
    scope.set("router", &router);
    if let Some(review) = &routing.router.review_router {
        if let Some(other) = review_choice(flow, routing, review, &mut scope).await? {
            router["chosen_route"] = json!(other);
        }
        scope.set("router", &router);
    }
    let chosen = router["chosen_route"].as_str().unwrap_or_default();
    let Some((name, route)) = routing.routes.get_key_value(chosen) else {
        // The choice was recorded under another spec.
        let what = format!("{chosen:?} is not a route");
        return Err(flow.fail(&NodeKey::Router(1), None, &what, None));
    };
    let lane_of = |agent: &str| lane(&format!("{name}/{agent}"));
    let key = |n| NodeKey::Route(node_id(name), n);
    let steps = Sequence::new(scope).walk(flow, &route.then, key, lane_of).await?;
    let last = if steps.last.is_null() { router["response"].clone() } else { steps.last };
    let mut scope = steps.scope;
    scope.set("last_response", &last);
    Ok(Completed { scope, last })
}

/// Asks the router to choose, again if its answer names no route.
async fn choose(flow: &Flow<'_>, routing: &Routing, scope: &Scope) -> Result<Value, Halt> {
    let (key, router) = (NodeKey::Router(1), &routing.router);
    let agent = router.agent.as_str();
    let schema = output_schema(flow, &key, agent)?;
    let routes = routing.routes.keys().map(Name::as_str);
    let read = |text: &str| {
        schema.validate(text)?;
        answer::route(text, routes.clone())
    };
    let fallback = Fallback::LastResponse;
    let prompt = Prompt { agent, input: router.input.as_ref(), scope, fallback };
    let ask = Ask {
        lane: lane("router"),
        agent,
        tools: None,
        prompt: &|| prompt.render(flow),
        read: &read,
        retries: router.max_retries,
    };
    flow.node(&key, Work::Ask(ask)).await
}

/// Asks a person to approve the choice or name another route, again if the answer is neither.
/// Returns the other route.
async fn review_choice(
    flow: &Flow<'_>,
    routing: &Routing,
    review: &Review,
    scope: &mut Scope,
) -> Result<Option<String>, Halt> {
    let mut n = 1;
    loop {
        let question = Question { gate: &review.0, scope };
        let output = flow.node(&NodeKey::Review(n), Work::Gate(question)).await?;
        let answer = output["response"].as_str().unwrap_or_default().trim().to_owned();
        scope.set("hitl_response", &answer);
        if is_approval(&answer) {
            return Ok(None);
        }
        let named = answer.strip_prefix("route:").unwrap_or(&answer).trim();
        if routing.routes.contains_key(named) {
            return Ok(Some(named.to_owned()));
        }
        n += 1;
    }
}
