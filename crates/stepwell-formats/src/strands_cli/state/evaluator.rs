//! A producer and an evaluator: `iteration_history`, each entry a draft and its evaluation.
//!
//! The numbers in it begin at 2 in running systems and at 1 in their documents, and the score
//! beside it may be an older one: the order of the entries is what counts.

use serde_json::{Map, Value, json};

use super::{Finished, Outcome, Progress, mark, path};
use crate::json::fields::{Fields, elements, text_of};
use crate::json::json_text::value;

pub(super) fn read(state: &Fields<'_>, progress: &mut Progress) {
    let history = elements(state.raw("iteration_history").unwrap_or("[]")).unwrap_or_default();
    let current = state.raw("current_draft").filter(|raw| *raw != "null");
    let count = history.len();
    for (n, raw) in history.into_iter().enumerate() {
        let Ok(entry) = Fields::parse(raw) else { continue };
        read_draft(n, &entry, (n + 1 == count).then_some(current).flatten(), progress);
        progress.make(format!("evaluate/{}", n + 1), evaluation(&entry));
    }
    let last = draft_key(count.saturating_sub(1));
    let place = path(&["current_draft"], &[]);
    if count == 0 || !progress.repeats(&last, current, place.clone()) {
        let is_last = || {
            let known = progress.done.iter().find(|done| done.key == last);
            let known = known.map(super::Done::response);
            current.and_then(text_of).is_some_and(|text| known.as_deref() == Some(&*text))
        };
        if count == 0 || !is_last() {
            progress.add(draft_key(count), current, place);
        }
    }
}

/// The key of the n-th draft.
fn draft_key(n: usize) -> String {
    if n == 0 { "produce".to_owned() } else { format!("revise/{n}") }
}

/// A draft that was evaluated. Older versions keep its beginning, and the last one whole.
fn read_draft(n: usize, entry: &Fields<'_>, current: Option<&str>, progress: &mut Progress) {
    let at = n.to_string();
    let base = ["iteration_history", &at];
    if entry.has("draft") {
        progress.add(draft_key(n), entry.raw("draft"), path(&base, &["draft"]));
        return;
    }
    let preview = entry.text("draft_preview").filter(|preview| !preview.is_empty());
    let whole = current.filter(|raw| {
        let begins = |preview: &str| text_of(raw).is_some_and(|text| text.starts_with(preview));
        *raw == mark(&draft_key(n)) || preview.as_deref().is_some_and(begins)
    });
    match whole {
        Some(_) => {
            progress.add(draft_key(n), current, path(&["current_draft"], &[]));
        }
        None => {
            progress.doubts.push(format!("of draft {} only the beginning is recorded", n + 1));
            progress.make(draft_key(n), json!({"response": preview.unwrap_or_default()}));
        }
    }
}

/// What the evaluator said, as the nodes here have it.
fn evaluation(entry: &Fields<'_>) -> Value {
    let whole = entry.raw("evaluation").and_then(value);
    let mut output = match whole {
        Some(Value::Object(whole)) => whole,
        _ => Map::new(),
    };
    for name in ["score", "issues", "fixes"] {
        if let Some(value) = entry.raw(name).filter(|raw| *raw != "null").and_then(value) {
            output.entry(name).or_insert(value);
        }
    }
    let list =
        |name: &str| output.get(name).filter(|it| it.is_array()).cloned().unwrap_or(json!([]));
    let (issues, fixes) = (list("issues"), list("fixes"));
    let said = json!({"score": output.get("score"), "issues": issues, "fixes": fixes});
    output.insert("issues".to_owned(), issues);
    output.insert("fixes".to_owned(), fixes);
    output.entry("score").or_insert_with(|| json!(0));
    output.entry("feedback").or_insert_with(|| json!(""));
    output.entry("response").or_insert_with(|| said.to_string().into());
    Value::Object(output)
}

pub(super) fn write(outcome: &Outcome<'_>) -> Value {
    let draft = |n: usize| outcome.node(&draft_key(n)).map(Finished::response);
    let mut history = Vec::new();
    let mut score = Value::Null;
    for (n, node) in outcome.numbered("evaluate") {
        let draft = draft(n.saturating_sub(1)).unwrap_or_default();
        let mut evaluation = node.output.clone();
        if let Value::Object(fields) = &mut evaluation {
            fields.remove("response");
        }
        score = node.output["score"].clone();
        history.push(json!({
            "iteration": n + 1,
            "score": score,
            "issues": node.output["issues"],
            "fixes": node.output["fixes"],
            "draft_preview": draft.chars().take(100).collect::<String>(),
            "draft": draft,
            "evaluation": evaluation,
        }));
    }
    let count = history.len();
    let last = draft(count).or_else(|| draft(count.saturating_sub(1)));
    let least = &outcome.spec.config()["accept"]["min_score"];
    let accepted = score.as_f64().zip(least.as_f64()).is_some_and(|(score, least)| score >= least);
    json!({
        "current_iteration": count + 1,
        "current_draft": last.map_or(Value::Null, Value::from),
        "iteration_history": history,
        "final_score": if score.is_null() { json!(0) } else { score },
        "accepted": accepted,
    })
}
