//! Sessions as documents that people read.

pub(crate) mod document;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod work;

use stepwell::log::State;
use stepwell::store::Span;
use stepwell::{SessionId, Stepwell};

use self::document::Document;
use crate::write::writer::{Exported, Losses, Outlet, Wishes};
use crate::{Error, Result};

/// Writes the conversation as a page for people, without secrets: what was imported is kept as it
/// came, and a page is there to be shown around.
fn export_page(
    well: &Stepwell,
    id: &SessionId,
    to: &mut Outlet<'_>,
    render: fn(&Document) -> String,
) -> Result<Exported> {
    let mut info = well.info(id)?;
    let redactor = well.redactor().with_own_count();
    info.head = info.head.redacted(&redactor);
    let Wishes { estimate, up_to, .. } = to.wishes();
    let up_to = up_to.filter(|at| *at < info.head.seq);
    let span = Span { to: up_to.unwrap_or(info.head.seq), ..Span::ALL };
    let mut slice = well.store().events(id, span)?;
    for recorded in &mut slice.events {
        recorded.event = recorded.event.clone().redacted(&redactor);
    }
    let events = slice.events.len() as u64;
    let damaged = slice.damage.iter().map(|damage| (id.clone(), damage.clone())).collect();
    if let (Some(_), Some(state)) = (up_to, State::fold(&slice.events)) {
        // What ran then ran: nothing is said of what became of it.
        info.head = state.head;
    }
    let document = Document::of(&info, slice, estimate.filter(|_| up_to.is_none()));
    to.main()?.write_all(render(&document).as_bytes()).map_err(Error::Write)?;
    Ok(Exported { sessions: 1, events, damaged, losses: Losses::default() })
}

/// The text without any meaning in HTML. What HTML cannot hold is replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // A terminal's colours in a tool's output, NUL, and their like.
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
