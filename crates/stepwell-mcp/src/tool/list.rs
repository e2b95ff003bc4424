//! Lists sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::store::Order;
use stepwell::store::query::{Cursor, Family, Query, Sort};
use stepwell_wire::Session;

use crate::bounded::{LeftOut, Page, Shortened};
use crate::error::{Error, Result};
use crate::input::{Limit, Which};
use crate::stores::{Purpose, Stores};

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListInput {
    /// Only these sessions.
    pub(crate) which: Which,
    /// Include subagents' sessions?
    pub(crate) subagents: bool,
    /// The order, largest or newest first.
    pub(crate) sort: Sorted,
    /// The most sessions; 20, if absent.
    pub(crate) limit: Option<Limit>,
    /// The end of the page before: its `next`.
    pub(crate) cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sorted {
    /// By its last change.
    #[default]
    Updated,
    /// By its beginning.
    Created,
    /// By its cost.
    Cost,
    /// By its number of steps.
    Steps,
}

impl From<Sorted> for Sort {
    fn from(sorted: Sorted) -> Self {
        match sorted {
            Sorted::Updated => Self::Updated,
            Sorted::Created => Self::Created,
            Sorted::Cost => Self::Cost,
            Sorted::Steps => Self::Steps,
        }
    }
}

/// Sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    /// The sessions; of several stores, this workspace's first.
    pub(crate) sessions: Vec<Shortened<ListedSession>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The cursor of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl ListAnswer {
    fn of(page: Page<'_, ListedSession>, next: Option<String>) -> Self {
        Self { left_out: page.left_out("sessions"), sessions: page.into_items(), next }
    }
}

/// A session in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedSession {
    /// The session.
    #[serde(flatten)]
    pub(crate) session: Session,
    /// Its store, if several are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
}

/// Lists sessions.
pub(crate) fn list_sessions(stores: &Stores, input: ListInput) -> Result<ListAnswer> {
    let limit = Limit::of(input.limit);
    let mut place = input.cursor.as_deref().map(PageCursor::read).transpose()?.unwrap_or_default();
    let family = if input.subagents { Family::Any } else { Family::Roots };
    let filter = input.which.filter(family);
    let mut page = Page::new(&stores.redactor, limit);
    for (n, open) in stores.all(Purpose::Read)?.into_iter().enumerate().skip(place.store) {
        if n > place.store {
            place = PageCursor { store: n, after: None };
        }
        loop {
            if page.is_full() {
                return Ok(ListAnswer::of(page, Some(place.to_string())));
            }
            // One at a time, because the end of the page is known only when it is full.
            let query = Query {
                filter: filter.clone(),
                sort: input.sort.into(),
                order: Order::Newest,
                limit: 1,
                after: place.after,
            };
            let found = open.well.list(&query)?;
            for info in found.sessions {
                let session = Session::from(info).listed();
                let listed = ListedSession { session, store: open.name.clone() };
                if !page.push(&listed)? {
                    return Ok(ListAnswer::of(page, Some(place.to_string())));
                }
            }
            match found.next {
                Some(next) => place.after = Some(next),
                None => break,
            }
        }
    }
    Ok(ListAnswer::of(page, None))
}

/// The end of a page: the store, and the last session there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageCursor {
    store: usize,
    after: Option<Cursor>,
}

impl std::fmt::Display for PageCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.after {
            Some(Cursor { value, key }) => write!(f, "{}.{value}.{key}", self.store),
            None => write!(f, "{}", self.store),
        }
    }
}

impl PageCursor {
    fn read(text: &str) -> Result<Self> {
        let wrong = || Error::Arguments("invalid `cursor`: give the `next` of a page".to_owned());
        let mut parts = text.split('.');
        let store = parts.next().and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
        let numbers: Result<Vec<i64>, _> = parts.map(str::parse).collect();
        let after = match numbers.map_err(|_| wrong())?[..] {
            [] => None,
            [value, key] => Some(Cursor { value, key }),
            _ => return Err(wrong()),
        };
        Ok(Self { store, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        for after in [None, Some(Cursor { value: -3, key: 7 })] {
            let place = PageCursor { store: 2, after };
            assert_eq!(PageCursor::read(&place.to_string()).unwrap(), place);
        }
        for wrong in ["", "x", "1.2", "1.2.3.4", "-1", "1.a.b"] {
            assert!(PageCursor::read(wrong).is_err(), "{wrong}");
        }
    }
}
