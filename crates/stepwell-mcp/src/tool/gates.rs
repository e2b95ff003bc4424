//! Questions that wait for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::Status;
use stepwell::store::query::Query;
use stepwell::work::{Asker, Gates};
use stepwell_files::forwarded::waits_above;
use stepwell_wire::OpenGate;

use crate::bounded::{LeftOut, Page, Shortened};
use crate::error::Result;
use crate::input::Limit;
use crate::stores::{Purpose, Stores};

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatesInput {
    /// Only those of this session: its id, a part of it, its label, or @last.
    session: Option<String>,
    /// The most questions; 20, if absent.
    limit: Option<Limit>,
    /// Questions to skip: the `next` of the page before.
    cursor: usize,
}

/// Questions that wait for a person.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GatesAnswer {
    /// The questions.
    gates: Vec<Shortened<OpenGate>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The cursor of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

impl GatesAnswer {
    fn of(page: Page<'_, OpenGate>, next: Option<usize>) -> Self {
        Self { left_out: page.left_out("gates"), gates: page.into_items(), next }
    }
}

/// Lists the questions that wait for a person.
pub(crate) fn open_gates(stores: &Stores, input: GatesInput) -> Result<GatesAnswer> {
    let mut waiting = Vec::new();
    match input.session {
        Some(name) => {
            let found = stores.session(&name.into(), Purpose::Read)?;
            waiting.push((None, found.well, found.id));
        }
        None => {
            for open in stores.all(Purpose::Read)? {
                for info in open.well.sessions(Query::default()) {
                    let head = info?.head;
                    // Questions of an abandoned session do not count.
                    if head.open_gates > 0
                        && head.status != Status::Abandoned
                        && !waits_above(&**open.well.store(), &head.id)?
                    {
                        waiting.push((open.name.clone(), open.well.clone(), head.id));
                    }
                }
            }
        }
    }
    let mut page = Page::new(&stores.redactor, Limit::of(input.limit));
    let mut n = 0;
    for (store, well, session_id) in waiting {
        for asked in Gates::waiting(&**well.store(), &session_id)?.open() {
            let asker = Asker::of(&**well.store(), &session_id, asked)?;
            let store = store.clone();
            let gate = OpenGate { store, ..OpenGate::new(session_id.clone(), asked, asker) };
            if n >= input.cursor && !page.push(&gate)? {
                return Ok(GatesAnswer::of(page, Some(n)));
            }
            n += 1;
        }
    }
    Ok(GatesAnswer::of(page, None))
}
