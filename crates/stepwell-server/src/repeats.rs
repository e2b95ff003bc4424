//! Requests that are repeated because their answer was lost: each has a key, and a repeated one
//! gets the first answer without being carried out again.

use std::collections::{HashMap, VecDeque};

use axum::http::StatusCode;
use parking_lot::{Mutex, MutexGuard};

use crate::problem::{Problem, Result};
use crate::reply::Reply;

/// How many answers are kept, the newest ones.
const KEPT: usize = 1_000;

/// The answers to requests with a key, while the server runs.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_key: HashMap<String, Entry>,
    /// The keys of answered requests, the oldest first.
    answered: VecDeque<String>,
}

#[derive(Debug)]
struct Entry {
    /// The request's body, so that a key cannot be reused for another request.
    body: blake3::Hash,
    /// The answer; `None` while it is computed.
    reply: Option<Reply>,
}

impl Repeats {
    /// Carries out a request, or returns its earlier answer. A failed request may be repeated.
    pub(crate) fn once(
        &self,
        key: String,
        body: &[u8],
        work: impl FnOnce() -> Result<Reply>,
    ) -> Result<Reply> {
        let body = blake3::hash(body);
        if let Some(reply) = self.state().find(&key, body)? {
            return Ok(reply);
        }
        let begun = Begun { repeats: self, key: &key };
        let reply = work()?;
        std::mem::forget(begun);
        self.state().keep(key, reply.clone());
        Ok(reply)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A request in progress. If it fails or panics, it may be repeated.
struct Begun<'a> {
    repeats: &'a Repeats,
    key: &'a str,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.repeats.state().by_key.remove(self.key);
    }
}

impl State {
    /// The earlier answer. Without one, reserves the key for a new request.
    fn find(&mut self, key: &str, body: blake3::Hash) -> Result<Option<Reply>> {
        match self.by_key.get(key) {
            Some(entry) if entry.body != body => Err(Problem::other_request()),
            Some(Entry { reply: Some(reply), .. }) => Ok(Some(reply.clone())),
            Some(Entry { reply: None, .. }) => {
                let title = "the request with this key is still in progress";
                Err(Problem::new(StatusCode::CONFLICT, "busy", title).at("idempotency-key"))
            }
            None => {
                self.by_key.insert(key.to_owned(), Entry { body, reply: None });
                Ok(None)
            }
        }
    }

    fn keep(&mut self, key: String, reply: Reply) {
        if let Some(entry) = self.by_key.get_mut(&key) {
            entry.reply = Some(reply);
        }
        self.answered.push_back(key);
        while self.answered.len() > KEPT {
            if let Some(oldest) = self.answered.pop_front() {
                self.by_key.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Result<Reply> {
        Ok(Reply::Json(StatusCode::OK, text.as_bytes().to_vec()))
    }

    fn said(reply: Result<Reply>) -> String {
        match reply {
            Ok(Reply::Json(_, body)) => String::from_utf8(body).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_done_for_a_key_is_not_done_again() {
        let repeats = Repeats::default();
        assert_eq!(said(repeats.once("a".into(), b"{}", || reply("first"))), "first");
        assert_eq!(said(repeats.once("a".into(), b"{}", || panic!("again"))), "first");
        assert_eq!(said(repeats.once("b".into(), b"{}", || reply("second"))), "second");
        assert!(repeats.once("a".into(), b"{\"x\":1}", || panic!("other")).is_err());
    }

    #[test]
    fn what_failed_is_tried_again_and_what_is_under_way_is_not_begun_twice() {
        let repeats = Repeats::default();
        assert!(repeats.once("a".into(), b"", || Err(Problem::failed("no"))).is_err());
        let outer = repeats.once("a".into(), b"", || {
            assert!(repeats.once("a".into(), b"", || panic!("twice")).is_err());
            reply("done")
        });
        assert_eq!(said(outer), "done");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let repeats = Repeats::default();
        for n in 0..=KEPT {
            said(repeats.once(n.to_string(), b"", || reply("x")));
        }
        assert_eq!(said(repeats.once("0".into(), b"", || reply("anew"))), "anew");
        assert_eq!(said(repeats.once(KEPT.to_string(), b"", || panic!("kept"))), "x");
    }
}
