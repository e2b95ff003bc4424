//! Events as rows: their bytes, long texts moved into blobs, and the chain.
//!
//! docs/format.md describes the layout; this is the only code that knows it.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::{Attachment, Digest, Event, EventId, Kind, NewEvent, Recorded, Seq, Time};

/// The largest accepted body, not counting texts in blobs. A row's length is read before it is
/// verified, so this bounds how much memory a damaged row can cost.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Longer texts are moved from the body into a blob. A blob is compressed, shared by equal texts,
/// and not read with the log.
pub const SPILL_BYTES: usize = 64 << 10;

/// The largest accepted blob, before compression.
pub const MAX_BLOB_BYTES: usize = 256 << 20;

/// The key of `{"$blob": "<digest>"}`, which replaces a text that was moved into a blob. A user's
/// own key of this form gets one more `$`.
const SPILLED: &str = "$blob";

/// An event's row. `body` is exactly what its digest covers, unless `erased` says that a scrub
/// replaced it.
///
/// Long fields are borrowed while rows stream by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its seq.
    pub seq: Seq,
    /// When it happened.
    pub at: Time,
    /// The client's id.
    pub id: Option<EventId>,
    /// Its kind.
    pub kind: Cow<'a, str>,
    /// The key by which it can be found. The chain covers it through the body: a row whose key
    /// differs from the body's is damaged.
    pub key: Option<Cow<'a, str>>,
    /// The version of its body.
    pub version: u32,
    /// Does the body refer to blobs with its long texts? The chain does not cover this flag: a
    /// scrub's replacement may differ in it, and a row with a wrong flag does not decode.
    pub spilled: bool,
    /// The body's bytes.
    pub body: Cow<'a, [u8]>,
    /// Digest of this row and, through the previous row's chain, of all earlier ones.
    pub chain: Digest,
    /// Digest of the original body, if a scrub replaced it.
    pub erased: Option<Digest>,
    /// The author's login, if a server knows it.
    pub login: Login,
}

/// The author's login, if a server knows it. The chain does not cover it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// The store has no server.
    #[default]
    Unknown,
    /// The login that the server recorded. `None` if the row is older than that, or a copy.
    Noted(Option<String>),
}

impl Login {
    /// Does the store have a server that knows no login for the row?
    #[must_use]
    pub const fn is_nobody(&self) -> bool {
        matches!(self, Self::Noted(None))
    }
}

/// A row that owns its bytes.
pub type OwnRow = Row<'static>;

/// A row with the blobs to be stored beside it.
#[derive(Debug)]
pub struct Sealed<'a> {
    /// The row.
    pub row: Row<'a>,
    /// Texts moved out of the body, and the event's attachments.
    pub spill: Vec<(Digest, Vec<u8>)>,
    /// Blobs that the event names and the store must have already.
    pub names: Vec<Digest>,
}

/// An event's encoded body: everything that can be prepared before its seq is known.
#[derive(Clone, Debug)]
pub(crate) struct Body<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    digest: Digest,
    spill: Spill,
    /// The event's attachments.
    attached: Spill,
}

/// Texts that were moved out of a body.
type Spill = Vec<(Digest, Vec<u8>)>;

impl Body<'static> {
    /// Encodes an event, moving long texts into blobs.
    pub(crate) fn of(event: &Event) -> Result<Self> {
        let mut bytes = Vec::new();
        let (digest, spill) = encode(event, &[], &mut bytes)?;
        Ok(Self { bytes: bytes.into(), digest, spill, attached: Vec::new() })
    }
}

/// Several bodies in one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bodies {
    bytes: Vec<u8>,
    places: Vec<BodyRange>,
    /// Total size of the texts that were moved out.
    spilled: usize,
}

/// The range of one body.
#[derive(Clone, Debug)]
pub(crate) struct BodyRange {
    range: Range<usize>,
    digest: Digest,
    spill: Spill,
    attached: Spill,
}

impl Bodies {
    /// An empty collection with the capacity of this one.
    pub(crate) fn room_for(&self) -> Self {
        let bytes = Vec::with_capacity(self.bytes.len());
        Self { bytes, places: Vec::with_capacity(self.places.len()), spilled: 0 }
    }

    /// Encodes an event's body, and moves its attachments here.
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

    /// The number of bodies.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Their total size, including texts that were moved out.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.spilled
    }

    /// The bytes of each.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.range.clone()])
    }

    /// The bytes, and the range of each body.
    pub(crate) fn parts(self) -> (Vec<u8>, Vec<BodyRange>) {
        (self.bytes, self.places)
    }
}

impl BodyRange {
    /// The body at this range.
    pub(crate) fn body(self, bytes: &[u8]) -> Body<'_> {
        let Self { range, digest, spill, attached } = self;
        Body { bytes: bytes[range].into(), digest, spill, attached }
    }
}

/// Splits attachments: blobs that the event names, and texts of the event itself.
fn attached(event: &Event, attachments: Vec<Attachment>) -> (Spill, Vec<Attachment>) {
    if attachments.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let names = event.blobs();
    let is_named = |one: &Attachment| names.contains(&one.digest);
    let (named, texts): (Vec<_>, Vec<_>) = attachments.into_iter().partition(is_named);
    (named.into_iter().map(|one| (one.digest, one.bytes)).collect(), texts)
}

/// Appends an event's encoding to `bytes`. Long texts, and the given ones, are moved into blobs.
fn encode(event: &Event, texts: &[Attachment], bytes: &mut Vec<u8>) -> Result<(Digest, Spill)> {
    let what = || format!("a {} event", event.kind());
    let unreadable = |e: serde_json::Error| Error::Unreadable { what: what(), why: e.to_string() };
    let start = bytes.len();
    event.encode_into(bytes).map_err(unreadable)?;
    // JSON that is nested too deeply can be written but not read, and would make the session
    // unreadable.
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
    /// The same row with its own bytes.
    #[must_use]
    pub fn into_owned(self) -> OwnRow {
        let (kind, body) = (Kind::own_name(&self.kind), self.body.into_owned().into());
        let key = self.key.map(|key| key.into_owned().into());
        Row { kind, key, body, ..self }
    }

    /// The chain's value at this row, after `prev`, for an original body with this digest.
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

    /// The digest of the original body.
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

    /// Checks that the row's key is the one in its event. An unknown event's key cannot be checked;
    /// an emptied event has no key.
    fn check_key(&self, event: &Event) -> Result<(), String> {
        let is_right = match event {
            Event::Unknown(_) => true,
            event if self.erased.is_some() && event.is_emptied() => self.key.is_none(),
            event => self.key.as_deref() == event.key().as_deref(),
        };
        if is_right { Ok(()) } else { Err("its key does not match its event".to_owned()) }
    }

    /// Decodes the event. `blob` fetches texts that were moved into blobs.
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
        // Many texts, each too short to be moved into a blob.
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
