//! Checks that a session has something to send to a model. An empty conversation is never sent.

use stepwell::log::Head;
use stepwell::model::Role;
use stepwell::{Event, Lane, Recorded, SessionId, Status, View};

use crate::error::{Error, Result};

/// Why a session without messages has nothing to send.
pub(super) const UNSAID: &str = "it has no messages and no task";

/// Fails, with the reason, if a session resumed without a new message has nothing to send to a
/// model.
pub fn check_sendable(head: &Head, events: Vec<Recorded>) -> Result<()> {
    let worked = events.iter().any(|event| matches!(event.event, Event::Node(_)));
    let lanes = events.iter().any(|event| {
        matches!(&event.event, Event::Message(said)
            if said.lane != Lane::main() && said.role != Role::System)
    });
    let view = View::of(&Lane::main(), events);
    if view.messages.iter().any(|shown| shown.message.role != Role::System) {
        return Ok(());
    }
    let why = match head.status {
        // A session that only began starts with its task.
        _ if !worked && !lanes && !head.task.trim().is_empty() => return Ok(()),
        _ if worked => "the nodes of a graph did its work and left results, but no conversation",
        _ if lanes => "its messages are in other lanes than main",
        Status::Success => "it is done, and has no conversation",
        _ => UNSAID,
    };
    Err(nothing(&head.id, why))
}

pub(super) fn nothing(session: &SessionId, why: &str) -> Error {
    Error::NothingToSend { session: session.clone(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use stepwell::model::{Node, NodeState};
    use stepwell::store::Span;
    use stepwell::{Message, Session, Stepwell};

    use super::*;

    fn session(task: &str) -> Session {
        let well = Stepwell::in_memory();
        well.create(well.draft(task)).unwrap()
    }

    fn why(session: &Session) -> String {
        let events = session.events(Span::ALL).unwrap().events;
        let checked = check_sendable(&session.info().unwrap().head, events);
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_conversation_or_a_task_can_be_sent() {
        let begun = session("bake");
        assert_eq!(why(&begun), "");
        begun.append(Message::system("be brief")).unwrap();
        assert_eq!(why(&begun), "");
        let untold = session("");
        untold.append(Message::user("bake")).unwrap();
        assert_eq!(why(&untold), "");
    }

    #[test]
    fn what_has_nothing_to_send_says_why() {
        let empty = session(" ");
        empty.append(Message::system("be brief")).unwrap();
        assert!(why(&empty).ends_with(UNSAID), "{}", why(&empty));
        let graph = session("bake");
        let (key, state) = ("group/g/plan".to_owned(), NodeState::Done);
        graph.append(Node { key, state, output: None, usage: None, error: None }).unwrap();
        assert!(why(&graph).contains("nodes of a graph"), "{}", why(&graph));
        let lanes = session("bake");
        lanes.append(Message::user("rye").in_lane("cook".parse().unwrap())).unwrap();
        assert!(why(&lanes).contains("other lanes"), "{}", why(&lanes));
    }
}
