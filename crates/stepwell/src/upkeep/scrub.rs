//! Erasing what matches a pattern from sessions: from events, files' contents and the search index.

mod fields;

use regex::Regex;
use serde_json::Value;

use crate::error::BadPattern;
use crate::error::{Error, Result};
use crate::model::work::ERASED;
use crate::model::{Digest, Event, FileState, Lane, Record, Recorded, Seq, SessionId};
use crate::sessions::Stepwell;
use crate::store::query::{Filter, LedgerRows, Query, TrashScope};
use crate::store::{Scrub, SessionInfo, Span};

/// The mark in a lane's name, where brackets are not allowed.
const ERASED_NAME: &str = "scrubbed";

/// A pattern whose matches are erased.
#[derive(Clone, Debug)]
pub struct ScrubPattern {
    regex: Regex,
    rule: String,
}

impl ScrubPattern {
    /// A regular expression, and the reason for the log. Without a reason the log has the pattern's
    /// digest, because the pattern may be the secret itself.
    pub fn new(pattern: &str, rule: Option<&str>) -> Result<Self, BadPattern> {
        let regex = Regex::new(pattern).map_err(BadPattern::Syntax)?;
        if regex.is_match("") {
            return Err(BadPattern::MatchesNothing);
        }
        if regex.is_match(ERASED) {
            return Err(BadPattern::MatchesMark);
        }
        if rule.is_some_and(|rule| regex.is_match(rule)) {
            return Err(BadPattern::MatchesRule);
        }
        let digest = || format!("pattern {}", &Digest::of(pattern.as_bytes()).to_string()[..8]);
        Ok(Self { rule: rule.map_or_else(digest, ToOwned::to_owned), regex })
    }

    /// A pattern for a literal text.
    pub fn literal(text: &str, rule: Option<&str>) -> Result<Self, BadPattern> {
        Self::new(&regex::escape(text), rule)
    }

    /// Does the text contain a match?
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The text with every match replaced by the mark.
    #[must_use]
    pub fn erase(&self, text: &str) -> String {
        self.erase_with(text, ERASED)
    }

    fn erase_with(&self, text: &str, mark: &str) -> String {
        self.regex.replace_all(text, mark).into_owned()
    }
}

/// The matches in one session.
#[derive(Clone, Debug)]
pub struct ScrubMatches {
    /// The session.
    pub session: SessionId,
    /// Is it in the trash?
    pub trashed: bool,
    /// How many of its own events match.
    pub events: usize,
    /// How many matching events it shares with the session that keeps them.
    pub shared: usize,
    /// Why it could not be searched completely. Such a session is not scrubbed at all.
    pub unseen: Option<String>,
}

/// A session from which matches were erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubbedSession {
    /// The session.
    pub session: SessionId,
    /// How many of its events were changed.
    pub events: usize,
    /// The event that records it.
    pub seq: Seq,
}

impl Stepwell {
    /// The matches in every session, including the trash.
    pub fn find_to_scrub(&self, pattern: &ScrubPattern) -> Result<Vec<ScrubMatches>> {
        let (place, rows) = (TrashScope::Anywhere, LedgerRows::Included);
        let filter = Filter { place, rows, ..Filter::default() };
        let sessions = self.sessions(Query { filter, ..Query::default() });
        sessions
            .map(|info| {
                let info = info?;
                self.matches_in(&info, info.own_from, pattern)
            })
            .collect()
    }

    /// The matches in one session, including shared events.
    pub fn find_to_scrub_in(&self, id: &SessionId, pattern: &ScrubPattern) -> Result<ScrubMatches> {
        self.matches_in(&self.store().info(id)?, Seq::FIRST, pattern)
    }

    fn matches_in(
        &self,
        info: &SessionInfo,
        from: Seq,
        pattern: &ScrubPattern,
    ) -> Result<ScrubMatches> {
        let session = info.head.id.clone();
        let trashed = info.trashed_at.is_some();
        let mut found = ScrubMatches { session, trashed, events: 0, shared: 0, unseen: None };
        let log = self.log(&info.head.id, Span { from, ..Span::ALL });
        let damage = log.each(|event| {
            match self.scrubbed(&event, pattern) {
                Ok(None) => {}
                Ok(Some(_)) if event.seq < info.own_from => found.shared += 1,
                Ok(Some(_)) => found.events += 1,
                Err(error) => found.unseen = Some(error.to_string()),
            }
            Ok::<_, Error>(())
        })?;
        if let Some(damage) = damage.or_else(|| info.damage.clone()) {
            found.unseen = Some(format!("it is damaged at seq {}", damage.seq));
        }
        // A session that cannot be scrubbed completely is not scrubbed at all.
        if found.unseen.is_some() {
            found.events = 0;
        }
        Ok(found)
    }

    /// Erases matches from a session's own events. The log records it, and the chain still
    /// verifies. `None` if nothing matches any more.
    pub fn scrub(&self, id: &SessionId, pattern: &ScrubPattern) -> Result<Option<ScrubbedSession>> {
        // The lease keeps others from writing while the matches are read again.
        let trashed = self.store().info(id)?.trashed_at.is_some();
        let held = if trashed { None } else { Some(self.lock(id)?) };
        let from = self.store().info(id)?.own_from;
        let (mut replacements, mut originals) = (Vec::new(), Vec::new());
        for event in self.log(id, Span { from, ..Span::ALL }) {
            let event = event?;
            match (self.scrubbed(&event, pattern)?, event.event) {
                (Some(scrubbed), _) => replacements.push((scrubbed.seq, scrubbed.event)),
                (None, Event::Record(record)) if record.keeps_original() => {
                    originals.push((event.seq, Record { blobs: Vec::new(), ..record }.into()));
                }
                (None, _) => {}
            }
        }
        let events = replacements.len();
        if events == 0 {
            return Ok(None);
        }
        // The original files of an import repeat the text, possibly escaped or split.
        replacements.extend(originals);
        replacements.sort_by_key(|(seq, _)| *seq);
        let seq = self.store().maintain().scrub(Scrub {
            session: id.clone(),
            epoch: held.as_ref().map(|session| session.lease().epoch),
            rule: pattern.rule.clone(),
            replacements,
        })?;
        tracing::info!(session = %id, events, "session_scrubbed");
        Ok(Some(ScrubbedSession { session: id.clone(), events, seq }))
    }

    /// The event without matches; `None` if it has none.
    fn scrubbed(&self, event: &Recorded, pattern: &ScrubPattern) -> Result<Option<Recorded>> {
        let fault = |error: serde_json::Error| Error::Unreadable {
            what: format!("event {} ({}), once scrubbed,", event.seq, event.event.kind()),
            why: error.to_string(),
        };
        let mut value = serde_json::to_value(event).map_err(fault)?;
        let eraser = Eraser { event: &event.event, pattern };
        let mut changed = eraser.erase(&mut value["body"], Author::of(&event.event), "");
        let mut scrubbed: Recorded = serde_json::from_value(value).map_err(fault)?;
        if let Event::File(file) = &mut scrubbed.event {
            for state in [&mut file.before, &mut file.after] {
                changed |= self.forget_content(state, pattern)?;
            }
        }
        // Another program's blob has an unknown form, so a matching one is removed as a whole.
        if let Event::Record(record) = &mut scrubbed.event {
            let mut kept = Vec::with_capacity(record.blobs.len());
            for blob in &record.blobs {
                if !self.blob_matches(blob, pattern)? {
                    kept.push(*blob);
                }
            }
            changed |= kept.len() < record.blobs.len();
            record.blobs = kept;
        }
        Ok(changed.then_some(scrubbed))
    }

    fn blob_matches(&self, blob: &Digest, pattern: &ScrubPattern) -> Result<bool> {
        let bytes = self.store().blob(blob)?;
        Ok(pattern.matches(&String::from_utf8_lossy(&bytes)))
    }

    /// Removes a file's contents if they match.
    fn forget_content(&self, state: &mut FileState, pattern: &ScrubPattern) -> Result<bool> {
        let FileState::File { blob, .. } = state else { return Ok(false) };
        if !self.blob_matches(blob, pattern)? {
            return Ok(false);
        }
        *state = FileState::NotCaptured { digest: Some(*blob), why: "scrubbed".to_owned() };
        Ok(true)
    }
}

/// Who chose the names and values in a part of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// Stepwell: names are fixed, and some values link records.
    Stepwell,
    /// The user: every name and value may contain a match.
    User,
}

impl Author {
    fn of(event: &Event) -> Self {
        match event {
            Event::Unknown(_) => Self::User,
            _ => Self::Stepwell,
        }
    }
}

/// Erases matches from the body of an event.
struct Eraser<'a> {
    event: &'a Event,
    pattern: &'a ScrubPattern,
}

impl Eraser<'_> {
    /// Erases matches from every text of a value at `path` in the body. Returns whether there were
    /// any.
    fn erase(&self, value: &mut Value, owner: Author, path: &str) -> bool {
        match value {
            // The main lane's name is Stepwell's.
            Value::String(text) if path == "lane" && text == Lane::main().as_str() => false,
            Value::String(text) if self.pattern.matches(text) => {
                let mark = if path == "lane" { ERASED_NAME } else { ERASED };
                *text = self.pattern.erase_with(text, mark);
                true
            }
            // A user's number may match; Stepwell's numbers are counts.
            Value::Number(number)
                if owner == Author::User && self.pattern.matches(&number.to_string()) =>
            {
                *value = ERASED.into();
                true
            }
            Value::Array(values) => {
                values.iter_mut().fold(false, |any, it| self.erase(it, owner, path) | any)
            }
            Value::Object(entries) => self.erase_entries(entries, owner, path),
            _ => false,
        }
    }

    fn erase_entries(
        &self,
        entries: &mut serde_json::Map<String, Value>,
        owner: Author,
        path: &str,
    ) -> bool {
        let (users, kept) = (self.event.user_fields(), self.event.unscrubbable_fields());
        let mut changed = false;
        for (name, mut value) in std::mem::take(entries) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let key = match owner {
                Author::Stepwell => name.clone(),
                Author::User => self.pattern.erase(&name),
            };
            let below = if users.contains(&&*path) { Author::User } else { owner };
            if owner == Author::User || !kept.contains(&&*path) {
                changed |= self.erase(&mut value, below, &path);
            }
            changed |= key != name;
            entries.insert(key, value);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Created, Edited, Message, Settings, Status, StopReason};

    fn pattern(text: &str) -> ScrubPattern {
        ScrubPattern::new(text, None).unwrap()
    }

    #[test]
    fn a_pattern_that_would_erase_everything_or_never_end_is_refused() {
        let refuse = |text: &str, rule| ScrubPattern::new(text, rule).unwrap_err();
        assert!(matches!(refuse("(", None), BadPattern::Syntax(_)));
        assert_eq!(refuse("a*", None), BadPattern::MatchesNothing);
        assert_eq!(refuse("scrub", None), BadPattern::MatchesMark);
        assert_eq!(refuse("hunter2", Some("hunter2 leaked")), BadPattern::MatchesRule);
        assert!(ScrubPattern::literal("a*(", None).unwrap().matches("a*("));
    }

    #[test]
    fn matches_are_erased_and_recorded_and_the_log_verifies() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("keep hunter2 safe")).unwrap();
        let id = session.id().clone();
        let metadata = [("hunter2".to_owned(), serde_json::json!({ "n": 4711 }))].into();
        session.append(Edited { metadata, ..Edited::default() }).unwrap();
        session.append(Message::user("it is hunter2 or 4711")).unwrap();
        session.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
        let secret = pattern("hunter2|4711");
        assert_eq!(well.find_to_scrub(&secret).unwrap()[0].events, 3);
        let done = well.scrub(&id, &secret).unwrap().unwrap();
        assert_eq!(done.events, 3);
        assert_eq!(well.find_to_scrub_in(&id, &secret).unwrap().events, 0);
        assert_eq!(well.scrub(&id, &secret).unwrap(), None);
        let log: Vec<_> = well.log(&id, Span::ALL).map(Result::unwrap).collect();
        let text = serde_json::to_string(&log).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("4711") && text.contains(ERASED));
        assert_eq!(well.info(&id).unwrap().head.task, format!("keep {ERASED} safe"));
        assert!(well.store().maintain().verify(&id).unwrap().is_sound());
    }

    #[test]
    fn links_between_records_stay() {
        let well = Stepwell::in_memory();
        let session = well.create(Created::new("abc".parse().unwrap(), "a task")).unwrap();
        let settings = Settings { mode: Some(crate::model::Mode::Yolo), ..Settings::default() };
        session.append(settings).unwrap();
        session.append(Message::user("abc, main, user and yolo")).unwrap();
        let id = session.id().clone();
        session.finish(Status::Success, Some(StopReason::LlmDone)).unwrap();
        for word in ["abc", "main", "user", "yolo", "success"] {
            well.scrub(&id, &pattern(word)).unwrap();
        }
        let info = well.info(&id).unwrap();
        assert_eq!((info.head.status, info.head.id.as_str()), (Status::Success, "abc"));
        assert!(well.store().maintain().verify(&id).unwrap().is_sound());
    }

    #[test]
    fn shared_matches_are_reported_and_left_to_the_session_that_keeps_them() {
        let well = Stepwell::in_memory();
        let session = well.create(well.draft("a task")).unwrap();
        session.append(Message::user("hunter2")).unwrap();
        let fork = well.fork(session.id(), None).unwrap();
        let found = well.find_to_scrub_in(fork.id(), &pattern("hunter2")).unwrap();
        assert_eq!((found.events, found.shared), (0, 1));
    }
}
