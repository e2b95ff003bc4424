//! Words for what an import found and did.

use stepwell_formats::{Became, Format, ImportedSession, Searched};

/// What became of a session; None, if nothing did.
#[must_use]
pub fn taken_in(taken: &ImportedSession, would: bool) -> Option<String> {
    let says = match (taken.became, would) {
        (Became::Imported, false) => "Imported",
        (Became::Imported, true) => "Would import",
        (Became::Updated, false) => "Updated",
        (Became::Updated, true) => "Would update",
        (Became::Unchanged, _) => return None,
    };
    let clash = match (&taken.instead_of, taken.became) {
        (Some(wanted), Became::Imported) => format!(", since {wanted} is another session"),
        _ => String::new(),
    };
    let continues = taken.continues.as_ref();
    let after = continues.map(|it| format!(", which goes on from {it}")).unwrap_or_default();
    Some(format!("{says} {}{clash}{after}", taken.id))
}

/// Why nothing was found at a path, and what is there instead if that can be told.
#[must_use]
pub fn no_session(only: Option<Format>, searched: &Searched) -> String {
    if let Some(system) = searched.unread {
        return format!("{system}'s sessions are not read; stepwell formats lists those that are");
    }
    let Some(format) = only else {
        return "no session of a known format; stepwell formats lists them".to_owned();
    };
    let named: Vec<String> =
        searched.others.iter().map(|it| format!("{} (--from {it})", it.title())).collect();
    match named.is_empty() {
        true => format!("no session of {}; stepwell formats lists what is read", format.title()),
        false => format!("no session of {}, but of {}", format.title(), named.join(", ")),
    }
}
