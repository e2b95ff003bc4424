//! Which session of the store a session of another system is: its identity is the system
//! and that system's own name for it.

use stepwell::model::{Digest, EventId, MAX_NAME_BYTES, Source};
use stepwell::{Seq, SessionId, Stepwell};

use crate::Result;

/// How many sessions may want the same name.
const MAX_CLASHES: u32 = 99;

/// Where a session goes.
#[derive(Debug)]
pub(super) enum Destination {
    /// It came in before.
    There(SessionId),
    /// It is new, and gets this name.
    New(SessionId),
}

/// The session that came from there, or a free name for it. Those in `taboo` are passed over.
pub(super) fn destination(
    well: &Stepwell,
    source: &Source,
    taboo: &[SessionId],
) -> Result<Destination> {
    let wanted = wanted(&source.id);
    let mut free = None;
    for n in 1..=MAX_CLASHES {
        let id = numbered(&wanted, n);
        let info = match well.store().info(&id) {
            Ok(info) => info,
            Err(stepwell::Error::NoSession(_)) if free.is_none() => {
                // The one after it may be ours: the first may have been erased since.
                free = Some(id);
                continue;
            }
            Err(stepwell::Error::NoSession(_)) => break,
            Err(error) => return Err(error.into()),
        };
        let from = info.head.source.as_ref();
        let same = from.is_some_and(|it| it.system == source.system && it.id == source.id);
        if same && !taboo.contains(&id) {
            return Ok(Destination::There(id));
        }
    }
    match free {
        Some(id) => Ok(Destination::New(id)),
        None => Err(stepwell::Error::Exists(wanted).into()),
    }
}

/// The name that a session should have here: its own, where that can be one.
pub(super) fn wanted(id: &str) -> SessionId {
    if let Ok(id) = id.parse::<SessionId>()
        && id.as_str().len() + 3 <= MAX_NAME_BYTES
        // What begins so is an option, wherever it is typed.
        && !id.as_str().starts_with('-')
    {
        return id;
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = id.chars().map(|c| if allowed(c) { c } else { '-' }).take(80).collect();
    // Two names must not become one by what was taken out of them.
    let digest = Digest::of(id.as_bytes()).to_string();
    let name = format!("{}-{}", plain.trim_start_matches(['.', '-']), &digest[..8]);
    name.trim_start_matches('-').parse().expect("it keeps the rules")
}

/// The name of a session that keeps its own where it can: with a number, if it is one of
/// those in `taboo`.
pub(super) fn beside(own: &SessionId, taboo: &[SessionId]) -> SessionId {
    let free = |id: &SessionId| !taboo.contains(id);
    (1..=MAX_CLASHES).map(|n| numbered(own, n)).find(free).unwrap_or_else(|| own.clone())
}

fn numbered(wanted: &SessionId, n: u32) -> SessionId {
    match n {
        1 => wanted.clone(),
        // Only a name of the greatest length has no room for a number.
        n => format!("{wanted}-{n}").parse().unwrap_or_else(|_| wanted.clone()),
    }
}

/// The ids of a session's imported events, which tell them from those that were recorded
/// here. They grow with the seq, so that in a store's index one comes behind the other, and a
/// long session is not written all over it.
pub(super) struct Marks {
    source: Source,
    told: [u8; 12],
    again: [u8; 12],
}

impl Marks {
    /// Those of the session that came from there.
    pub(super) fn of(source: &Source) -> Self {
        let Source { system, id, .. } = source;
        let front = |what: &str| {
            let mut front = [0; 12];
            let whole = EventId::derived(format!("{what}\0{system}\0{id}").as_bytes());
            front.copy_from_slice(&whole.as_bytes()[..12]);
            front
        };
        Self { source: source.clone(), told: front("import"), again: front("import again") }
    }

    /// The id of an imported event.
    pub(super) fn told(&self, seq: Seq) -> EventId {
        at(self.told, seq)
    }

    /// The id of the rewind that takes back what another system has since told differently.
    pub(super) fn again(&self, seq: Seq) -> EventId {
        at(self.again, seq)
    }

    /// Was this event imported?
    pub(super) fn is_told(&self, id: Option<EventId>, seq: Seq) -> bool {
        id.is_some_and(|id| id == self.told(seq) || id == self.former("import", seq))
    }

    /// Is this such a rewind?
    pub(super) fn is_again(&self, id: Option<EventId>, seq: Seq) -> bool {
        id.is_some_and(|id| id == self.again(seq) || id == self.former("import again", seq))
    }

    /// The ids of what was imported before they had an order.
    fn former(&self, what: &str, seq: Seq) -> EventId {
        let Source { system, id, .. } = &self.source;
        EventId::derived(format!("{what}\0{system}\0{id}\0{seq}").as_bytes())
    }
}

fn at(front: [u8; 12], seq: Seq) -> EventId {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&front);
    // A session has fewer events than this holds.
    let seq = u32::try_from(seq.get()).unwrap_or(u32::MAX);
    bytes[12..].copy_from_slice(&seq.to_be_bytes());
    EventId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_anywhere_and_no_two_become_one() {
        let long = "x".repeat(500);
        let names = [
            "../../etc/passwd",
            "..\\..\\x",
            "",
            ".",
            "a b",
            "a\0b",
            "ä",
            &long,
            "-",
            "--yes",
            "yes",
        ];
        let ids: Vec<SessionId> = names.iter().map(|name| wanted(name)).collect();
        for (n, id) in ids.iter().enumerate() {
            assert!(
                !id.as_str().contains(['/', '\\']) && !id.as_str().starts_with(['.', '-']),
                "{id}"
            );
            assert!(!ids[..n].contains(id), "{id}");
        }
        assert_eq!(wanted("7be2d940-15c3").as_str(), "7be2d940-15c3");
    }

    #[test]
    fn ids_follow_each_other_and_those_of_before_are_known_still() {
        let source =
            Source { system: "claude-code".to_owned(), id: "7be2".to_owned(), started_at: None };
        let marks = Marks::of(&source);
        let (one, two) = (Seq::new(255), Seq::new(256));
        assert!(marks.told(one) < marks.told(two) && marks.again(one) != marks.told(one));
        let former = EventId::derived(b"import\0claude-code\x007be2\x00255");
        assert!(marks.is_told(Some(former), one) && !marks.is_told(Some(former), two));
        assert!(marks.is_told(Some(marks.told(one)), one) && !marks.is_told(None, one));
        assert!(!marks.is_again(Some(marks.told(one)), one));
    }
}
