//! Reading an archive, one entry at a time, in either form.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::error::Category;
use serde_json::value::RawValue;
use stepwell::model::Origin;
use stepwell::{Recorded, SessionId};

use super::{ARCHIVE_VERSION, Break, Closing, Entry, MAGIC, Opening};
use crate::{Error, Result};

/// The most bytes of one entry: a blob at its largest, in base64, with room to spare.
/// An entry is in memory as a whole, so this bounds what a hostile archive can take.
const MAX_ENTRY_BYTES: u64 = 512 << 20;

/// Takes what is read.
pub(super) trait Receive {
    /// Takes the next entry. An error ends the reading, and is its result.
    fn push(&mut self, entry: Entry) -> Result<()>;
}

/// Reads an archive to its end. Openings and closings come in pairs, events and blobs
/// between them.
pub(super) fn read(from: &mut dyn BufRead, to: &mut dyn Receive) -> Result<()> {
    read_within(MAX_ENTRY_BYTES, from, to)
}

fn read_within(limit: u64, from: &mut dyn BufRead, to: &mut dyn Receive) -> Result<()> {
    let meter = Rc::new(Meter { left: Cell::new(limit), lines: Cell::new(0) });
    let metered = Metered { from, meter: Rc::clone(&meter) };
    let mut json = serde_json::Deserializer::from_reader(metered);
    let mut reading = Reading { to, limit, meter, version: None, failed: None };
    let read = Archive(&mut reading).deserialize(&mut json).and_then(|rest| {
        (0..rest).try_for_each(|_| reading.session(&mut json))?;
        json.end()
    });
    read.map_err(|error| reading.explain(&error))
}

/// What is known while reading.
struct Reading<'a> {
    to: &'a mut dyn Receive,
    /// The most bytes of one entry.
    limit: u64,
    meter: Rc<Meter>,
    version: Option<u64>,
    /// Why the reading was ended, if that was not the parser's doing.
    failed: Option<Error>,
}

type Json<R> = serde_json::Deserializer<serde_json::de::IoRead<R>>;

impl Reading<'_> {
    /// Hands an entry over.
    fn give<E: serde::de::Error>(&mut self, entry: Entry) -> Result<(), E> {
        self.meter.left.set(self.limit);
        self.to.push(entry).map_err(|error| self.fail(error))
    }

    /// Ends the reading for a reason that the parser does not know.
    fn fail<E: serde::de::Error>(&mut self, error: Error) -> E {
        self.failed = Some(error);
        E::custom("it was not taken")
    }

    /// Ends the reading at an entry that was read to its end: the parser would name a
    /// place behind it.
    fn malformed<E: serde::de::Error>(&mut self, why: String) -> E {
        let line = self.meter.lines.get() + 1;
        self.fail(Error::Malformed { line, why })
    }

    /// Reads a session that stands in lines, from its opening to its closing.
    fn session<R: Read>(&mut self, json: &mut Json<R>) -> Result<(), serde_json::Error> {
        let mut opened: Option<SessionId> = None;
        loop {
            let raw: Box<RawValue> = Box::deserialize(&mut *json)?;
            let entry = entry(raw.get()).map_err(|why| self.malformed(why))?;
            match (&entry, &opened) {
                (Entry::Opening(opening), None) => opened = Some(opening.id.clone()),
                (Entry::Closing(_), Some(_)) => return self.give(entry),
                (Entry::Event(..) | Entry::Blob(_), Some(_)) => {}
                (_, None) => return Err(self.malformed("no session has begun here".to_owned())),
                (Entry::Opening(_), Some(id)) => {
                    let why = format!("session {id} has not ended before this line");
                    return Err(self.malformed(why));
                }
            }
            self.give(entry)?;
        }
    }

    /// What a failed reading means.
    fn explain(&mut self, error: &serde_json::Error) -> Error {
        if let Some(failed) = self.failed.take() {
            return failed;
        }
        let line = error.line();
        match error.classify() {
            Category::Io if self.meter.left.get() == 0 => {
                Error::TooLarge { line: self.meter.lines.get() + 1, limit: self.limit }
            }
            Category::Io => {
                let kind = error.io_error_kind().unwrap_or(io::ErrorKind::Other);
                Error::Read(io::Error::new(kind, error.to_string()))
            }
            _ if self.version.is_none() => Error::NotAnArchive { why: error.to_string() },
            Category::Eof => Error::Truncated { line },
            Category::Syntax | Category::Data => Error::Malformed { line, why: why(error) },
        }
    }
}

/// What is wrong, without the place.
fn why(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// An entry by its first key. What has no other meaning is an event.
fn entry(raw: &str) -> Result<Entry, String> {
    #[derive(Deserialize)]
    struct End {
        #[serde(rename = "end")]
        _id: SessionId,
        #[serde(flatten)]
        closing: Closing,
    }
    let begins = |key: &str| {
        let key_first = raw.strip_prefix('{').map(str::trim_start);
        key_first.is_some_and(|rest| rest.starts_with(key))
    };
    if begins("\"blob\"") {
        serde_json::from_str(raw).map(Entry::Blob)
    } else if begins("\"id\"") {
        serde_json::from_str(raw).map(Entry::Opening)
    } else if begins("\"end\"") {
        serde_json::from_str(raw).map(|End { closing, .. }| Entry::Closing(closing))
    } else {
        event(raw).map(|event| Entry::Event(Box::new(event), raw.len()))
    }
    // Places in it are counted from the entry's beginning, not from the archive's.
    .map_err(|error| why(&error))
}

/// An event, or the string that holds one.
fn event(raw: &str) -> Result<Recorded, serde_json::Error> {
    if raw.starts_with('"') {
        let inner: String = serde_json::from_str(raw)?;
        return serde_json::from_str(&inner);
    }
    serde_json::from_str(raw)
}

/// The whole archive. Its value is how many sessions follow in lines.
struct Archive<'p, 'a>(&'p mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Archive<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Archive<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an archive")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut rest = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), self.0.version) {
                (MAGIC, None) => {
                    let found = map.next_value()?;
                    self.0.version = Some(found);
                    if found != ARCHIVE_VERSION {
                        let known = ARCHIVE_VERSION;
                        return Err(self.0.fail(Error::Newer { found, known }));
                    }
                }
                (_, None) => return Err(A::Error::custom(format!("it begins with {key:?}"))),
                ("sessions", _) if rest.is_none() => {
                    rest = Some(map.next_value_seed(Sessions(self.0))?);
                }
                ("sessions" | MAGIC, _) => return Err(A::Error::custom(format!("{key:?} again"))),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match (self.0.version, rest) {
            (None, _) => Err(A::Error::custom("it is empty")),
            (Some(_), None) => Err(A::Error::custom("it has no sessions")),
            (Some(_), Some(rest)) => Ok(rest),
        }
    }
}

/// All sessions, or how many follow.
struct Sessions<'p, 'a>(&'p mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Sessions<'_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sessions<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sessions, or how many follow")
    }

    fn visit_u64<E>(self, rest: u64) -> Result<u64, E> {
        Ok(rest)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        while seq.next_element_seed(Session(self.0))?.is_some() {}
        Ok(0)
    }
}

/// One session of the list.
struct Session<'p, 'a>(&'p mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Session<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Session<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut id, mut origin): (Option<SessionId>, Option<Origin>) = (None, None);
        let (mut begun, mut closing) = (false, Closing::default());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" if !begun => id = Some(map.next_value()?),
                "origin" if !begun => origin = Some(map.next_value()?),
                "events" if !begun => {
                    let (Some(id), Some(origin)) = (id.take(), origin.take()) else {
                        return Err(A::Error::custom("its id and its origin come first"));
                    };
                    self.0.give(Entry::Opening(Opening { id, origin }))?;
                    begun = true;
                    map.next_value_seed(Events(self.0))?;
                }
                "scrubbed" => closing.scrubbed = map.next_value()?,
                "damage" => closing.damage = map.next_value::<Option<Break>>()?,
                "id" | "origin" | "events" => {
                    return Err(A::Error::custom(format!("{key:?} again")));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !begun {
            return Err(A::Error::custom("it has no events"));
        }
        self.0.give(Entry::Closing(closing))
    }
}

/// One session's events and blobs.
struct Events<'p, 'a>(&'p mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Events<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(raw) = seq.next_element::<Box<RawValue>>()? {
            let entry = entry(raw.get()).map_err(|why| self.0.malformed(why))?;
            if matches!(entry, Entry::Opening(_) | Entry::Closing(_)) {
                return Err(self.0.malformed("this is neither an event nor a blob".to_owned()));
            }
            self.0.give(entry)?;
        }
        Ok(())
    }
}

/// Counts what is read.
struct Meter {
    /// Bytes that the present entry may still take.
    left: Cell<u64>,
    /// Lines that were read to their end.
    lines: Cell<usize>,
}

/// A reader that stops when an entry is too large.
struct Metered<'a> {
    from: &'a mut dyn BufRead,
    meter: Rc<Meter>,
}

impl Read for Metered<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let Meter { left, lines } = &*self.meter;
        if left.get() == 0 {
            return Err(io::Error::other("the entry is too large"));
        }
        let n = self.from.read(to)?;
        left.set(left.get().saturating_sub(n as u64));
        lines.set(lines.get() + to[..n].iter().filter(|byte| **byte == b'\n').count());
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts entries.
    struct Count(usize);

    impl Receive for Count {
        fn push(&mut self, _: Entry) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
    }

    const LINES: &str = r#"{"stepwell_archive":1,"sessions":1}
{"id":"a","origin":"root"}
{"blob":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","base64":"YWJj"}
{"blob":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","base64":"YWJj"}
{"end":"a","events":0}
"#;

    #[test]
    fn the_limit_is_for_each_entry_and_not_for_all() {
        let mut count = Count(0);
        read_within(100, &mut LINES.as_bytes(), &mut count).unwrap();
        assert_eq!(count.0, 4);
    }

    #[test]
    fn an_entry_that_is_too_large_is_named_by_its_line() {
        let error = read_within(90, &mut LINES.as_bytes(), &mut Count(0)).unwrap_err();
        assert!(matches!(error, Error::TooLarge { line: 3, limit: 90 }), "{error:?}");
    }
}
