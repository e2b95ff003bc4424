//! Which session of the store a session of another system is: its identity is the system
//! and that system's own name for it.

use stepwell::{Digest, EventId, MAX_NAME_BYTES, Seq, SessionId, Source, Stepwell};

use crate::Result;

/// How many sessions may want the same name.
const MAX_CLASHES: u32 = 99;

/// Where a session goes.
#[derive(Debug)]
pub(super) enum Berth {
    /// It came in before.
    There(SessionId),
    /// It is new, and gets this name.
    New(SessionId),
}

/// The session that came from there, or a free name for it. Those in `taboo` are passed over.
pub(super) fn berth(well: &Stepwell, source: &Source, taboo: &[SessionId]) -> Result<Berth> {
    let wanted = wanted(&source.id);
    let mut free = None;
    for n in 1..=MAX_CLASHES {
        let id = numbered(&wanted, n);
        let standing = match well.store().standing(&id) {
            Ok(standing) => standing,
            Err(stepwell::Error::NoSession(_)) if free.is_none() => {
                // The one after it may be ours: the first may have been erased since.
                free = Some(id);
                continue;
            }
            Err(stepwell::Error::NoSession(_)) => break,
            Err(error) => return Err(error.into()),
        };
        let from = standing.head.source.as_ref();
        let same = from.is_some_and(|it| it.system == source.system && it.id == source.id);
        if same && !taboo.contains(&id) {
            return Ok(Berth::There(id));
        }
    }
    match free {
        Some(id) => Ok(Berth::New(id)),
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

fn numbered(wanted: &SessionId, n: u32) -> SessionId {
    match n {
        1 => wanted.clone(),
        n => format!("{wanted}-{n}").parse().expect("there is room for a number"),
    }
}

/// The id of an imported event, which tells it from those that were recorded here.
pub(super) fn mark(source: &Source, seq: Seq) -> EventId {
    derived("import", source, seq)
}

/// The id of the rewind that takes back what another system has since told differently.
pub(super) fn again(source: &Source, seq: Seq) -> EventId {
    derived("import again", source, seq)
}

fn derived(what: &str, Source { system, id, .. }: &Source, seq: Seq) -> EventId {
    EventId::derived(format!("{what}\0{system}\0{id}\0{seq}").as_bytes())
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
}
