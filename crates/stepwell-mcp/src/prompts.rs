//! Prompts: a user's requests to an agent about recorded sessions.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::input::{Direction, Which};
use crate::outgoing::{Outgoing, Quoted};
use crate::resources::page;
use crate::stores::{Located, Purpose, Stores};
use crate::tool::{DiffInput, Form, Ranked, SearchInput, search_sessions, session_diff};

/// The prompts.
pub(crate) fn list() -> Vec<Prompt> {
    let session = || {
        let about = "The session: its id, a part of it, its label, or @last";
        PromptArgument::new("session").with_description(about).with_required(true)
    };
    let topic = PromptArgument::new("topic")
        .with_description("What the decision was about, in a few words")
        .with_required(true);
    let prompt = |name: &str, title: &str, about: &str, argument| {
        Prompt::new(name, Some(about), Some(vec![argument])).with_title(title)
    };
    vec![
        prompt(
            "continue_from",
            "Continue from a session",
            "Continues the work of an earlier session",
            session(),
        ),
        prompt(
            "what_did_we_decide",
            "What did we decide?",
            "Finds what earlier sessions decided about a topic",
            topic,
        ),
        prompt(
            "review_session",
            "Review a session",
            "Reviews what a session did, and its file changes",
            session(),
        ),
    ]
}

/// A prompt with its argument filled in.
pub(crate) fn get(stores: &Stores, name: &str, arguments: &JsonObject) -> Result<GetPromptResult> {
    match name {
        "continue_from" => continue_from(stores, given(arguments, "session")?),
        "what_did_we_decide" => what_did_we_decide(stores, &given(arguments, "topic")?),
        "review_session" => review_session(stores, given(arguments, "session")?),
        other => {
            let other: String = other.chars().take(80).collect();
            Err(Error::Arguments(format!("unknown prompt {other:?}; prompts/list has their names")))
        }
    }
}

/// A required argument.
fn given(arguments: &JsonObject, name: &str) -> Result<String> {
    let text = arguments.get(name).and_then(Value::as_str).map(str::trim);
    let missing = || Error::Arguments(format!("`{name}` is missing, or is not text"));
    text.filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(missing)
}

fn continue_from(stores: &Stores, session: String) -> Result<GetPromptResult> {
    let Located { id, .. } = stores.session(&session.into(), Purpose::Read)?;
    let last = page(stores, id.to_string(), Form::Turns, Direction::Newest)?;
    let request = format!(
        "Continue the work of the recorded session {id}. Its last turns follow, newest first. \
         Read more with read_session, and its file changes with session_diff. Say in two \
         sentences where the work stands and what comes next, then continue."
    );
    Ok(last.into_prompt("Continues the work of an earlier session", &request))
}

fn what_did_we_decide(stores: &Stores, topic: &str) -> Result<GetPromptResult> {
    let topic: String = topic.chars().take(300).collect();
    let input = SearchInput {
        query: topic.clone(),
        session: None,
        which: Which::default(),
        rank: Ranked::Relevance,
        limit: None,
        offset: 0,
    };
    let found = Quoted::new(search_sessions(stores, input)?);
    let found = Outgoing::new(&stores.redactor, &found)?;
    let request = format!(
        "What did we decide about {topic:?}, and why? Hits in recorded sessions follow. Read around \
         those that matter with read_session and read_event, and name the session and event of \
         each decision. If nothing was decided, say so."
    );
    Ok(found.into_prompt("Finds what earlier sessions decided about a topic", &request))
}

fn review_session(stores: &Stores, session: String) -> Result<GetPromptResult> {
    let Located { id, .. } = stores.session(&session.into(), Purpose::Read)?;
    let (from, to, path, offset, limit, cursor) = (None, None, None, 0, None, 0);
    let session = id.to_string();
    let input = DiffInput { session, store: None, from, to, path, offset, limit, cursor };
    let changes = Quoted::new(session_diff(stores, input)?);
    let changes = Outgoing::new(&stores.redactor, &changes)?;
    let request = format!(
        "Review the recorded session {id}: was its task done, are the changes right, what is \
         missing or risky? Its file changes follow. Read the conversation with read_session."
    );
    Ok(changes.into_prompt("Reviews what a session did", &request))
}
