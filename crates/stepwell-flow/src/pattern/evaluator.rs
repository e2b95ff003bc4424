//! A producer whose draft is scored and revised until it is good enough.

use serde_json::{Value, json};
use stepwell::NodeKey;

use super::{Otherwise, Reached, lane, offer, prompt, response, shape};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::memo::agrees;
use crate::node::Work;
use crate::spec::EvaluatorOptimizer;
use crate::template::{Scope, Template};

/// What a producer is asked for a better draft, if the spec does not say.
const REVISE: &str = "Your draft got {{ evaluation.score }} of 100 points.\n\
    {% for issue in evaluation.issues %}- {{ issue }}\n{% endfor %}\
    {% for fix in evaluation.fixes %}- {{ fix }}\n{% endfor %}\
    Write it anew and better. Answer with the draft only.";

/// What an evaluator is asked, if the spec does not say.
const EVALUATE: &str = "Score this draft from 0 to 100. Answer with JSON: {\"score\": 70, \
    \"issues\": [], \"fixes\": []}\n\n{{ draft }}";

/// How many characters of a draft its preview has, as in strands-cli.
const PREVIEW: usize = 100;

pub(super) async fn walk(flow: &Flow<'_>, config: &EvaluatorOptimizer) -> Result<Reached, Halt> {
    let mut scope = flow.variables.clone();
    scope.set("iteration", 1);
    offer(flow, &mut scope, "min_score", answer::whole(config.accept.min_score));
    offer(flow, &mut scope, "max_iters", config.accept.max_iters);
    let mut iterations: Vec<Value> = Vec::new();
    offer(flow, &mut scope, "iterations", &iterations);
    offer(flow, &mut scope, "iteration_index", 0);
    let first = config.producer.input.as_ref();
    let mut draft = produce(flow, config, &NodeKey::Produce, (first, &scope)).await?;
    let most = config.accept.max_iters.get();
    let mut n = 1;
    loop {
        scope.set("draft", response(&draft));
        scope.set("last_response", response(&draft));
        let evaluation = evaluate(flow, config, n, &scope).await?;
        scope.set("evaluation", &evaluation);
        iterations.push(iteration(n, &draft, &evaluation));
        tell(flow, &mut scope, &iterations, &evaluation);
        let score = evaluation["score"].as_f64().unwrap_or_default();
        scope.set("accepted", score >= config.accept.min_score);
        if score >= config.accept.min_score || n >= most {
            break;
        }
        if let Some(review) = &config.review_gate {
            let question = Question { gate: &review.0, scope: &scope };
            let said = flow.node(&NodeKey::Review(n), Work::Gate(question)).await?;
            scope.set("hitl_response", response(&said));
            if takes(said["response"].as_str().unwrap_or_default()) {
                scope.set("accepted", true);
                break;
            }
        }
        scope.set("iteration", n + 1);
        let usual = Template::parse(REVISE).ok();
        let input = config.revise_prompt.as_ref().or(usual.as_ref());
        draft = produce(flow, config, &NodeKey::Revise(n), (input, &scope)).await?;
        n += 1;
    }
    // In an artifact it is their number, as in strands-cli.
    offer(flow, &mut scope, "iterations", iterations.len());
    Ok(Reached { scope, last: response(&draft) })
}

/// Does a person take a draft as it is? Gates of strands-cli have them say `stop` for that.
fn takes(answer: &str) -> bool {
    agrees(answer) || answer.trim().eq_ignore_ascii_case("stop")
}

/// What templates see of a draft and its score.
fn iteration(n: u32, draft: &Value, evaluation: &Value) -> Value {
    let draft = response(draft);
    let text = draft.as_str().map_or_else(|| draft.to_string(), str::to_owned);
    json!({
        "iteration": n,
        "score": evaluation["score"],
        "issues": evaluation["issues"],
        "fixes": evaluation["fixes"],
        "draft_preview": text.chars().take(PREVIEW).collect::<String>(),
        "draft": draft,
        "evaluation": evaluation,
    })
}

/// Offers the drafts so far under the names that strands-cli has for them.
fn tell(flow: &Flow<'_>, scope: &mut Scope, iterations: &[Value], evaluation: &Value) {
    offer(flow, scope, "iterations", iterations);
    offer(flow, scope, "history", iterations);
    offer(flow, scope, "iteration_index", iterations.len().saturating_sub(1));
    offer(flow, scope, "current_draft", iterations.last().map(|last| &last["draft"]));
    offer(flow, scope, "current_evaluation", evaluation);
    offer(flow, scope, "last_evaluation", evaluation);
    offer(flow, scope, "final_score", &evaluation["score"]);
}

async fn produce(
    flow: &Flow<'_>,
    config: &EvaluatorOptimizer,
    key: &NodeKey,
    (input, scope): (Option<&Template>, &Scope),
) -> Result<Value, Halt> {
    let agent = config.producer.agent.as_str();
    let shape = shape(flow, key, agent)?;
    let ask = Ask {
        lane: lane("producer"),
        agent,
        tools: None,
        prompt: &|| prompt(flow, agent, input, scope, &Otherwise::LastResponse),
        read: &|text| shape.read(text),
        retries: if shape.is_given() { super::SHAPE_RETRIES } else { 0 },
    };
    flow.node(key, Work::Ask(ask)).await
}

async fn evaluate(
    flow: &Flow<'_>,
    config: &EvaluatorOptimizer,
    n: u32,
    scope: &Scope,
) -> Result<Value, Halt> {
    let (key, agent) = (NodeKey::Evaluate(n), config.evaluator.agent.as_str());
    let shape = shape(flow, &key, agent)?;
    let usual = Template::parse(EVALUATE).ok();
    let input = config.evaluator.input.as_ref().or(usual.as_ref());
    let ask = Ask {
        lane: lane("evaluator"),
        agent,
        tools: None,
        prompt: &|| prompt(flow, agent, input, scope, &Otherwise::LastResponse),
        read: &|text| {
            shape.holds(text)?;
            answer::score(text)
        },
        retries: config.evaluator.max_retries,
    };
    flow.node(&key, Work::Ask(ask)).await
}
