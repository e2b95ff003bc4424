//! Evaluator and optimizer: a draft is scored and revised until it is good enough.

use serde_json::{Value, json};
use stepwell::model::NodeKey;

use super::step::{
    Completed, Fallback, Prompt, SCHEMA_RETRIES, lane, output_schema, response, set_unless_variable,
};
use crate::answer;
use crate::ask::Ask;
use crate::flow::Flow;
use crate::gate::Question;
use crate::halt::Halt;
use crate::memo::is_approval;
use crate::node::Work;
use crate::spec::EvaluatorOptimizer;
use crate::template::{Scope, Template};

/// The prompt for a better draft, if the spec has none.
const REVISE: &str = "Your draft got {{ evaluation.score }} of 100 points.\n\
    {% for issue in evaluation.issues %}- {{ issue }}\n{% endfor %}\
    {% for fix in evaluation.fixes %}- {{ fix }}\n{% endfor %}\
    Write it anew and better. Answer with the draft only.";

/// The prompt for a score, if the spec has none.
const EVALUATE: &str = "Score this draft from 0 to 100. Answer with JSON: {\"score\": 70, \
    \"issues\": [], \"fixes\": []}\n\n{{ draft }}";

/// The length of a draft's preview in characters, as in strands-cli.
const PREVIEW: usize = 100;

pub(crate) async fn walk(flow: &Flow<'_>, config: &EvaluatorOptimizer) -> Result<Completed, Halt> {
    let mut scope = flow.variables.clone();
    scope.set("iteration", 1);
    set_unless_variable(
        flow,
        &mut scope,
        "min_score",
        answer::json_number(config.accept.min_score),
    );
    set_unless_variable(flow, &mut scope, "max_iters", config.accept.max_iters);
    let mut iterations: Vec<Value> = Vec::new();
    set_unless_variable(flow, &mut scope, "iterations", &iterations);
    set_unless_variable(flow, &mut scope, "iteration_index", 0);
    let first =
        Draft { key: &NodeKey::Produce, input: config.producer.input.as_ref(), scope: &scope };
    let mut draft = produce(flow, config, first).await?;
    let max = config.accept.max_iters.get();
    let mut n = 1;
    loop {
        scope.set("draft", response(&draft));
        scope.set("last_response", response(&draft));
        let evaluation = evaluate(flow, config, n, &scope).await?;
        scope.set("evaluation", &evaluation);
        iterations.push(iteration(n, &draft, &evaluation));
        set_history(flow, &mut scope, &iterations, &evaluation);
        let score = evaluation["score"].as_f64().unwrap_or_default();
        scope.set("accepted", score >= config.accept.min_score);
        if score >= config.accept.min_score || n >= max {
            break;
        }
        if let Some(review) = &config.review_gate {
            let question = Question { gate: &review.0, scope: &scope };
            let answer = flow.node(&NodeKey::Review(n), Work::Gate(question)).await?;
            scope.set("hitl_response", response(&answer));
            if accepts_draft(answer["response"].as_str().unwrap_or_default()) {
                scope.set("accepted", true);
                break;
            }
        }
        scope.set("iteration", n + 1);
        let standard = Template::parse(REVISE).ok();
        let input = config.revise_prompt.as_ref().or(standard.as_ref());
        let revision = Draft { key: &NodeKey::Revise(n), input, scope: &scope };
        draft = produce(flow, config, revision).await?;
        n += 1;
    }
    // Artifacts see the number of drafts under this name, as in strands-cli.
    set_unless_variable(flow, &mut scope, "iterations", iterations.len());
    Ok(Completed { scope, last: response(&draft) })
}

/// Whether a reviewer accepts a draft as it is. With strands-cli they answer `stop` for that.
fn accepts_draft(answer: &str) -> bool {
    is_approval(answer) || answer.trim().eq_ignore_ascii_case("stop")
}

/// A draft and its score, as templates see them.
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

/// Sets the drafts so far under the names that strands-cli has for them.
fn set_history(flow: &Flow<'_>, scope: &mut Scope, iterations: &[Value], evaluation: &Value) {
    set_unless_variable(flow, scope, "iterations", iterations);
    set_unless_variable(flow, scope, "history", iterations);
    set_unless_variable(flow, scope, "iteration_index", iterations.len().saturating_sub(1));
    let current = iterations.last().map(|last| &last["draft"]);
    set_unless_variable(flow, scope, "current_draft", current);
    set_unless_variable(flow, scope, "current_evaluation", evaluation);
    set_unless_variable(flow, scope, "last_evaluation", evaluation);
    set_unless_variable(flow, scope, "final_score", &evaluation["score"]);
}

/// A draft to be written.
struct Draft<'a> {
    key: &'a NodeKey,
    input: Option<&'a Template>,
    scope: &'a Scope,
}

async fn produce(
    flow: &Flow<'_>,
    config: &EvaluatorOptimizer,
    draft: Draft<'_>,
) -> Result<Value, Halt> {
    let Draft { key, input, scope } = draft;
    let agent = config.producer.agent.as_str();
    let schema = output_schema(flow, key, agent)?;
    let prompt = Prompt { agent, input, scope, fallback: Fallback::LastResponse };
    let ask = Ask {
        lane: lane("producer"),
        agent,
        tools: None,
        prompt: &|| prompt.render(flow),
        read: &|text| schema.read(text),
        retries: if schema.is_given() { SCHEMA_RETRIES } else { 0 },
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
    let schema = output_schema(flow, &key, agent)?;
    let standard = Template::parse(EVALUATE).ok();
    let input = config.evaluator.input.as_ref().or(standard.as_ref());
    let prompt = Prompt { agent, input, scope, fallback: Fallback::LastResponse };
    let ask = Ask {
        lane: lane("evaluator"),
        agent,
        tools: None,
        prompt: &|| prompt.render(flow),
        read: &|text| {
            schema.validate(text)?;
            answer::score(text)
        },
        retries: config.evaluator.max_retries,
    };
    flow.node(&key, Work::Ask(ask)).await
}
