//! Events as rows: their bytes, the parts that spill into blobs, and the chain.
//!
//! docs/format.md describes the layout; this is the only code that knows it.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::{Attachment, Digest, Event, EventId, Kind, NewEvent, Recorded, Seq, Time};

/// The largest body that is accepted, spilled parts apart. A length is read before
/// it can be trusted, so this bounds what one damaged row can make us allocate.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// A text in a body that is longer than this is kept as a blob: compressed, once
/// for all that share it, and out of the way of those who read the log.
pub const SPILL_BYTES: usize = 64 << 10;

/// The largest blob that is accepted, before compression.
pub const MAX_BLOB_BYTES: usize = 256 << 20;

/// What stands in a body for a text that spilled: `{"$blob": "<digest>"}`. An
/// object of the user's that has such a key gets one more `$` in front of it.
const SPILLED: &str = "$blob";

/// An event's row. `body` is exactly what its digest was taken over, unless
/// `erased` says that a scrub replaced it.
///
/// What is long in it is borrowed while rows are passed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its place.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The client's name for it.
    pub id: Option<EventId>,
    /// Its kind.
    pub kind: Cow<'a, str>,
    /// The name by which it is found again. The body says it too, so that the chain covers it: a row
    /// that is found under another name, or under none, is damaged.
    pub key: Option<Cow<'a, str>>,
    /// The version of its body.
    pub version: u32,
    /// Does the body name blobs that hold its long texts? Not part of the chain: a
    /// scrub's replacement may differ in it, and a wrong flag does not decode.
    pub spilled: bool,
    /// Its bytes.
    pub body: Cow<'a, [u8]>,
    /// Digest of this row and, through the row before it, of all before it.
    pub chain: Digest,
    /// Digest of the body that was here before a scrub.
    pub erased: Option<Digest>,
    /// Who wrote it, as far as a server says.
    pub login: Login,
}

/// Who wrote a row, as far as a server says. It is no part of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// The store has no server that would know.
    #[default]
    Unknown,
    /// The login that the server noted; none, if the row is from before it did, or was copied
    /// from elsewhere.
    Noted(Option<String>),
}

impl Login {
    /// Is there a server, and does it say that nobody known to it wrote the row?
    #[must_use]
    pub const fn is_nobody(&self) -> bool {
        matches!(self, Self::Noted(None))
    }
}

/// A row that is kept.
pub type OwnRow = Row<'static>;

/// A row with what has to be stored beside it.
#[derive(Debug)]
pub struct Sealed<'a> {
    /// The row.
    pub row: Row<'a>,
    /// Texts that spilled, and blobs that came with the event.
    pub spill: Vec<(Digest, Vec<u8>)>,
    /// Blobs that the event names and that must be there already.
    pub names: Vec<Digest>,
}

/// An event's body, ready to be stored: what can be done before it is known where
/// the event will stand.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    digest: Digest,
    spill: Spill,
    /// Blobs that come with the event.
    attached: Spill,
}

/// Texts that were moved out of a body.
type Spill = Vec<(Digest, Vec<u8>)>;

impl Body<'static> {
    /// Encodes an event, moving long texts out of it.
    pub(crate) fn of(event: &Event) -> Result<Self> {
        let mut bytes = Vec::new();
        let (digest, spill) = encode(event, &[], &mut bytes)?;
        Ok(Self { bytes: bytes.into(), digest, spill, attached: Vec::new() })
    }
}

/// Bodies one behind the other: thousands of small ones are one piece of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies {
    bytes: Vec<u8>,
    places: Vec<BodyRange>,
    /// How many bytes were moved out of them.
    spilled: usize,
}

/// Where a body lies among others.
#[derive(Clone, Debug)]
pub(crate) struct BodyRange {
    range: Range<usize>,
    digest: Digest,
    spill: Spill,
    attached: Spill,
}

impl Bodies {
    /// None yet, and room for as many as these.
    pub(crate) fn room_for(&self) -> Self {
        let bytes = Vec::with_capacity(self.bytes.len());
        Self { bytes, places: Vec::with_capacity(self.places.len()), spilled: 0 }
    }

    /// Adds the body of an event, and takes its attachments.
    pub(crate) fn push(&mut self, new: &mut NewEvent) -> Result<()> {
        let event = &new.event;
        let (attached, texts) = attached(event, std::mem::take(&mut new.attachments));
        let start = self.bytes.len();
        let (digest, spill) =
            encode(event, &texts, &mut self.bytes).inspect_err(|_| self.bytes.truncate(start))?;
        self.spilled += spill.iter().chain(&attached).map(|(_, text)| text.len()).sum::<usize>();
        self.places.push(BodyRange { range: start..self.bytes.len(), digest, spill, attached });
        Ok(())
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many bytes they have, with what was moved out of them.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.spilled
    }

    /// The bytes of each.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.range.clone()])
    }

    /// Their bytes, and where each lies in them.
    pub(crate) fn parts(self) -> (Vec<u8>, Vec<BodyRange>) {
        (self.bytes, self.places)
    }
}

impl BodyRange {
    /// The body that lies here.
    pub(crate) fn body(self, bytes: &[u8]) -> Body<'_> {
        let Self { range, digest, spill, attached } = self;
        Body { bytes: bytes[range].into(), digest, spill, attached }
    }
}

/// The attachments that an event names, and those that have to be texts of it.
fn attached(event: &Event, attachments: Vec<Attachment>) -> (Spill, Vec<Attachment>) {
    if attachments.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let names = event.blobs();
    let is_named = |one: &Attachment| names.contains(&one.digest);
    let (named, texts): (Vec<_>, Vec<_>) = attachments.into_iter().partition(is_named);
    (named.into_iter().map(|one| (one.digest, one.bytes)).collect(), texts)
}

/// Encodes an event behind other bytes, moving long texts out of it, and those that are attached.
fn encode(event: &Event, texts: &[Attachment], bytes: &mut Vec<u8>) -> Result<(Digest, Spill)> {
    let what = || format!("a {} event", event.kind());
    let unreadable = |e: serde_json::Error| Error::Unreadable { what: what(), why: e.to_string() };
    let start = bytes.len();
    event.encode_into(bytes).map_err(unreadable)?;
    // What a user nests too deeply can be written but not read, and would take its
    // session along.
    if event.holds_json() {
        Event::decode(event.kind(), event.version(), &bytes[start..]).map_err(unreadable)?;
    }
    let mut spill = Vec::new();
    let is_long = bytes.len() - start > SPILL_BYTES;
    if (is_long || !texts.is_empty()) && !matches!(event, Event::Unknown(_)) {
        let mut value: Value = serde_json::from_slice(&bytes[start..]).map_err(unreadable)?;
        spill_texts(&mut value, texts, &mut spill);
        if !spill.is_empty() {
            bytes.truncate(start);
            serde_json::to_writer(&mut *bytes, &value).map_err(unreadable)?;
        }
    }
    let is_left = |one: &&Attachment| spill.iter().all(|(digest, _)| *digest != one.digest);
    if let Some(stray) = texts.iter().find(is_left) {
        let why = format!("it does not name its attachment {}", stray.digest);
        return Err(Error::Unreadable { what: what(), why });
    }
    let too_large = |what: String, size: usize, limit: usize| {
        Err(Error::TooLarge { what, size: size as u64, limit: limit as u64 })
    };
    let body = &bytes[start..];
    if body.len() > MAX_EVENT_BYTES {
        return too_large(what(), body.len(), MAX_EVENT_BYTES);
    }
    if let Some((_, text)) = spill.iter().find(|(_, text)| text.len() > MAX_BLOB_BYTES) {
        return too_large(format!("a text in {}", what()), text.len(), MAX_BLOB_BYTES);
    }
    Ok((Digest::of(body), spill))
}

/// Turns an event into the row that follows the row with the chain `prev`.
pub(crate) fn seal<'a>(event: &Recorded, body: Body<'a>, prev: &Digest) -> Sealed<'a> {
    let Body { bytes, digest, mut spill, attached } = body;
    let mut row = Row {
        seq: event.seq,
        at: event.at,
        id: event.id,
        kind: event.event.own_kind(),
        key: event.event.key().map(|key| key.into_owned().into()),
        version: event.event.version(),
        spilled: !spill.is_empty(),
        body: bytes,
        chain: Digest::GENESIS,
        erased: None,
        login: Login::Unknown,
    };
    row.chain = row.link(prev, &digest);
    let mut names = event.event.blobs();
    names.retain(|name| attached.iter().all(|(digest, _)| digest != name));
    spill.extend(attached);
    Sealed { row, spill, names }
}

impl Row<'_> {
    /// The same row, to be kept.
    #[must_use]
    pub fn into_owned(self) -> OwnRow {
        let (kind, body) = (Kind::own_name(&self.kind), self.body.into_owned().into());
        let key = self.key.map(|key| key.into_owned().into());
        Row { kind, key, body, ..self }
    }

    /// The chain's value at this row, after `prev`, when its original body has this digest.
    fn link(&self, prev: &Digest, body: &Digest) -> Digest {
        let id = self.id.as_ref().map_or(&[][..], |id| id.as_bytes());
        let fields = [
            prev.as_bytes().as_slice(),
            &self.seq.get().to_le_bytes(),
            &self.at.as_micros().to_le_bytes(),
            id,
            self.kind.as_bytes(),
            &self.version.to_le_bytes(),
            body.as_bytes().as_slice(),
        ];
        Digest::of_fields(&fields)
    }

    /// The digest of the body as it was recorded.
    pub(crate) fn body_digest(&self) -> Digest {
        self.erased.unwrap_or_else(|| Digest::of(&self.body))
    }

    /// Does this row follow the row with the chain `prev`, unchanged?
    pub(crate) fn follows(&self, prev: &Digest) -> Result<(), String> {
        if self.link(prev, &self.body_digest()) == self.chain {
            Ok(())
        } else {
            Err("its digest does not match its bytes".to_owned())
        }
    }

    /// Is the row found under the name that its event says? Another version's event cannot be asked,
    /// and what a prune emptied is found under none.
    fn check_key(&self, event: &Event) -> Result<(), String> {
        let is_right = match event {
            Event::Unknown(_) => true,
            event if self.erased.is_some() && event.is_emptied() => self.key.is_none(),
            event => self.key.as_deref() == event.key().as_deref(),
        };
        if is_right { Ok(()) } else { Err("it does not stand under its own name".to_owned()) }
    }

    /// Reads the event back. `blob` fetches a text that spilled.
    pub fn open(
        &self,
        blob: &mut dyn FnMut(&Digest) -> Result<Vec<u8>>,
    ) -> Result<Recorded, String> {
        let restored;
        let body = if self.spilled {
            let mut value: Value = serde_json::from_slice(&self.body).map_err(|e| e.to_string())?;
            restore_texts(&mut value, blob)?;
            restored = serde_json::to_vec(&value).map_err(|e| e.to_string())?;
            &restored[..]
        } else {
            &self.body[..]
        };
        let mut event = Event::decode(&self.kind, self.version, body).map_err(|e| e.to_string())?;
        self.check_key(&event)?;
        if let Login::Noted(login) = &self.login {
            event.sign(login.as_deref());
        }
        Ok(Recorded { seq: self.seq, at: self.at, id: self.id, event })
    }
}

fn spill_texts(value: &mut Value, texts: &[Attachment], out: &mut Spill) {
    let is_attached = |text: &str| texts.iter().any(|one| one.bytes == text.as_bytes());
    match value {
        Value::String(text) if text.len() > SPILL_BYTES || is_attached(text) => {
            let bytes = std::mem::take(text).into_bytes();
            let digest = Digest::of(&bytes);
            out.push((digest, bytes));
            *value = serde_json::json!({ SPILLED: digest });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| spill_texts(item, texts, out)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| spill_texts(field, texts, out));
            rename(fields, |key| key.trim_start_matches('$') == "blob", |key| format!("${key}"));
        }
        _ => {}
    }
}

fn restore_texts(
    value: &mut Value,
    blob: &mut dyn FnMut(&Digest) -> Result<Vec<u8>>,
) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| restore_texts(item, blob)),
        Value::Object(fields) => {
            if let Some(Value::String(digest)) = fields.get(SPILLED) {
                let digest: Digest = digest.parse().map_err(|e| format!("{e}"))?;
                let bytes = blob(&digest).map_err(|e| e.to_string())?;
                *value = Value::String(String::from_utf8(bytes).map_err(|e| e.to_string())?);
                return Ok(());
            }
            rename(
                fields,
                |key| key.starts_with('$') && key.trim_start_matches('$') == "blob",
                |key| key[1..].to_owned(),
            );
            fields.values_mut().try_for_each(|field| restore_texts(field, blob))
        }
        _ => Ok(()),
    }
}

fn rename(
    fields: &mut serde_json::Map<String, Value>,
    which: impl Fn(&str) -> bool,
    to: impl Fn(&str) -> String,
) {
    if fields.keys().any(|key| which(key)) {
        let renamed = std::mem::take(fields)
            .into_iter()
            .map(|(key, value)| if which(&key) { (to(&key), value) } else { (key, value) });
        *fields = renamed.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Edited, Message};
    use std::collections::HashMap;

    fn recorded(event: impl Into<Event>) -> Recorded {
        Recorded { seq: Seq::FIRST, at: Time::EPOCH, id: None, event: event.into() }
    }

    fn sealed(event: &Recorded) -> Sealed<'static> {
        seal(event, Body::of(&event.event).unwrap(), &Digest::GENESIS)
    }

    fn reopened(sealed: &Sealed<'_>) -> Result<Recorded, String> {
        let blobs: HashMap<_, _> = sealed.spill.iter().cloned().collect();
        sealed.row.open(&mut |digest| blobs.get(digest).cloned().ok_or(Error::NoBlob(*digest)))
    }

    #[test]
    fn a_long_text_spills_and_comes_back() {
        let long = "x".repeat(SPILL_BYTES + 1);
        let event = recorded(Message::user("short").calling("a", "t", long));
        let sealed = sealed(&event);
        assert!(sealed.row.body.len() < 500 && sealed.spill.len() == 1);
        assert_eq!(reopened(&sealed).unwrap(), event);
    }

    #[test]
    fn a_text_at_the_limit_stays() {
        let event = recorded(Message::user("x".repeat(SPILL_BYTES)));
        assert!(sealed(&event).spill.is_empty());
    }

    #[test]
    fn a_users_own_blob_key_is_not_taken_for_ours() {
        let metadata = serde_json::json!({
            "own": { "$blob": "mine", "$$blob": "too", "blob": 1 },
            "long": "y".repeat(SPILL_BYTES + 1),
        });
        let Value::Object(metadata) = metadata else { unreachable!() };
        let event =
            recorded(Edited { metadata: metadata.into_iter().collect(), ..Edited::default() });
        let sealed = sealed(&event);
        assert_eq!(reopened(&sealed).unwrap(), event);
        assert_eq!(sealed.spill.len(), 1);
    }

    #[test]
    fn a_body_over_the_limit_is_refused_by_name() {
        // Many texts that are each too short to spill.
        let parts = vec![crate::model::Part::text("z".repeat(60_000)); 300];
        let error = Body::of(&Message::new(crate::model::Role::User, parts).into()).unwrap_err();
        assert!(error.to_string().starts_with("a message event has 18"), "{error}");
    }

    #[test]
    fn any_change_to_a_row_breaks_the_chain() {
        let sealed = sealed(&recorded(Message::user("hello"))).row;
        assert!(sealed.follows(&Digest::GENESIS).is_ok());
        assert!(sealed.follows(&Digest::of(b"another")).is_err());
        let changes: [fn(&mut Row); 6] = [
            |row| row.body.to_mut()[3] ^= 1,
            |row| row.seq = row.seq.next(),
            |row| row.at = Time::from_micros(1),
            |row| row.kind.to_mut().push('x'),
            |row| row.version += 1,
            |row| row.id = Some(EventId::derived(b"x")),
        ];
        for change in changes {
            let mut row = sealed.clone();
            change(&mut row);
            assert!(row.follows(&Digest::GENESIS).is_err(), "{row:?}");
        }
    }

    #[test]
    fn a_scrubbed_row_still_verifies() {
        let mut row = sealed(&recorded(Message::user("secret"))).row;
        row.erased = Some(row.body_digest());
        row.body = br#"{"role":"user","parts":[]}"#.to_vec().into();
        assert!(row.follows(&Digest::GENESIS).is_ok());
    }
}
