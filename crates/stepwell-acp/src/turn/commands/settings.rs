//! Commands for what later turns work with, and what they cost.

use stepwell::log::Head;
use stepwell::model::{Mode, Money};
use stepwell_runtime::command::Verb;
use stepwell_workspace::Estimates;

use super::{Conversation, Result};

/// Changes the model, the mode or the agent; without a name, says which there are.
pub(super) fn choose(on: &Conversation, verb: Verb, name: &str) -> Result<String> {
    if name.is_empty() {
        return offer(on, verb);
    }
    let chosen = match verb {
        Verb::Mode => on.choose_mode(name),
        Verb::Agent => on.choose_agent(name),
        _ => on.choose_model(name),
    };
    Ok(match chosen {
        Ok(()) => format!("From the next turn on: {name}"),
        Err(why) => format!("Nothing was changed: {why}."),
    })
}

/// What holds, and what could be chosen instead.
fn offer(on: &Conversation, verb: Verb) -> Result<String> {
    let holds = on.holds()?;
    Ok(match verb {
        Verb::Mode => {
            let known = Mode::ALL.iter().map(|mode| mode.as_str().to_owned());
            one_of("mode", holds.mode.as_str(), known)
        }
        Verb::Agent => one_of("agent", &holds.agent, on.runtime().agents().into_keys()),
        _ => {
            let any = "PROVIDER/NAME".to_owned();
            one_of("model", &holds.model, on.models().into_iter().chain([any]))
        }
    })
}

fn one_of(word: &str, holds: &str, known: impl Iterator<Item = String>) -> String {
    let others = known.filter(|name| name != holds).map(|name| format!("\n- `/{word} {name}`"));
    let holds = if holds.is_empty() { "not chosen yet" } else { holds };
    format!("The {word} is {holds}. To change it:{}", others.collect::<String>())
}

/// Shows or sets what the session may cost.
pub(super) fn budget(on: &Conversation, dollars: &str) -> Result<String> {
    if dollars.is_empty() {
        let head = on.head()?;
        let spent = head.as_ref().map_or_else(|| "$0".to_owned(), |head| price(on, head));
        let chosen = on.chosen().budget;
        let most = chosen.or_else(|| head?.budget);
        return Ok(match most {
            Some(most) => format!("The session may cost ${most}; {spent} is spent."),
            None => format!("The session may cost anything; {spent} is spent."),
        });
    }
    Ok(match dollars.trim_start_matches('$').parse::<Money>() {
        Ok(most) if most >= Money::ZERO => {
            on.chosen().budget = Some(most);
            // One that is not on record yet begins with it.
            if on.head()?.is_some() {
                on.runtime().set_budget(on.id(), most)?;
            }
            format!("From the next turn on, the session may cost ${most}.")
        }
        _ => format!("{dollars:?} is no amount of dollars; type one such as /budget 2.50"),
    })
}

/// What a session cost. An estimate says that it is one.
fn price(on: &Conversation, head: &Head) -> String {
    let spent = &head.spent;
    match (spent.known_cost(), Estimates::new(on.runtime().workspace()).of(head, spent)) {
        (Some(cost), _) => format!("${cost}"),
        (None, Some(estimate)) => spent.price_or(Some(estimate)),
        (None, None) => format!("${} and calls whose price is not known", spent.cost),
    }
}

/// What the session is, and what it spent.
pub(super) fn status(on: &Conversation) -> Result<String> {
    let Some(head) = on.head()? else { return Ok(String::new()) };
    let (spent, holds) = (&head.spent, on.holds()?);
    Ok(format!(
        "{} is {}: {}, {} tokens in, {} out, {}.\nAgent {}, model {}, mode {}.",
        head.id,
        head.status,
        stepwell::model::counted(head.steps, "step"),
        spent.usage.input,
        spent.usage.output,
        price(on, &head),
        holds.agent,
        holds.model,
        holds.mode.as_str(),
    ))
}
