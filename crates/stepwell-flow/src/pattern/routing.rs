//! Routing: a router chooses one of several ways, and perhaps a person confirms it.

use serde_json::{Value, json};
use stepwell::NodeKey;

use super::trail::Trail;
use super::{Otherwise, Reached, id, lane, prompt, shape};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::memo::agrees;
use crate::node::Work;
use crate::spec::{Name, Review, Routing};
use crate::template::Scope;

pub(super) async fn walk(flow: &Flow<'_>, routing: &Routing) -> Result<Reached, Halt> {
    let mut scope = flow.variables.clone();
    let routes: Vec<&str> = routing.routes.keys().map(Name::as_str).collect();
    scope.set("routes", &routes);
    let mut router = choose(flow, routing, &scope).await?;
    scope.set("router", &router);
    if let Some(review) = &routing.router.review_router {
        let chosen = confirm(flow, review, &router, (&routes, &mut scope)).await?;
        router["chosen_route"] = json!(chosen);
        scope.set("router", &router);
    }
    let chosen = router["chosen_route"].as_str().unwrap_or_default();
    let Some((name, route)) = routing.routes.get_key_value(chosen) else {
        // What was recorded under another spec.
        let what = format!("{chosen:?} is no route");
        return Err(flow.fail(&NodeKey::Router(1), None, &what, None));
    };
    let lane_of = |agent: &str| lane(&format!("{name}/{agent}"));
    let trail = Trail::new(scope);
    let trail = trail.walk(flow, &route.then, |n| NodeKey::Route(id(name), n), lane_of).await?;
    let last = if trail.last.is_null() { router["response"].clone() } else { trail.last };
    let mut scope = trail.scope;
    scope.set("last_response", &last);
    Ok(Reached { scope, last })
}

/// Has the router choose. It is asked again until it names a route.
async fn choose(flow: &Flow<'_>, routing: &Routing, scope: &Scope) -> Result<Value, Halt> {
    let (key, router) = (NodeKey::Router(1), &routing.router);
    let agent = router.agent.as_str();
    let shape = shape(flow, &key, agent)?;
    let routes = routing.routes.keys().map(Name::as_str);
    let read = |text: &str| {
        shape.holds(text)?;
        answer::route(text, routes.clone())
    };
    let prompt = || prompt(flow, agent, router.input.as_ref(), scope, &Otherwise::LastResponse);
    let ask = Ask {
        lane: lane("router"),
        agent,
        tools: None,
        prompt: &prompt,
        read: &read,
        retries: router.max_retries,
    };
    flow.node(&key, Work::Ask(ask)).await
}

/// Has a person confirm the choice, or make another. Who names no route is asked again.
async fn confirm(
    flow: &Flow<'_>,
    review: &Review,
    router: &Value,
    (routes, scope): (&[&str], &mut Scope),
) -> Result<String, Halt> {
    let mut n = 1;
    loop {
        let question = Question { gate: &review.0, scope };
        let output = flow.node(&NodeKey::Review(n), Work::Gate(question)).await?;
        let said = output["response"].as_str().unwrap_or_default().trim().to_owned();
        scope.set("hitl_response", &said);
        if agrees(&said) {
            return Ok(router["chosen_route"].as_str().unwrap_or_default().to_owned());
        }
        let named = said.strip_prefix("route:").unwrap_or(&said).trim();
        if routes.contains(&named) {
            return Ok(named.to_owned());
        }
        n += 1;
    }
}
