//! Those who worked for a session: its subagents, and the conversations of a flow's nodes, read from
//! the store.

use stepwell::{Event, Lane, SessionId, Stepwell};
use stepwell_runtime::Error;

use super::reads::{Last, Reader, last_events};
use crate::effect::Reply;
use crate::helper::Helper;

/// How many of them are listed, the newest.
const MOST: usize = 50;

/// How many events of each are read.
const EVENTS: usize = 100;

/// How many events of a flow are looked through for what its nodes said.
const OF_FLOW: usize = 2_000;

impl Reader {
    /// Lists who worked for a session.
    pub(super) fn helpers(&mut self, id: &SessionId) {
        let read = self.existing().and_then(|well| read(well, id));
        self.reply(read.map(|helpers| Reply::Helpers { session: id.clone(), helpers }));
    }
}

fn read(well: &Stepwell, id: &SessionId) -> Result<Vec<Helper>, Error> {
    let head = well.info(id)?.head;
    let mut helpers = Vec::new();
    if head.flow.is_some() {
        let page = last_events(well, id, Last::at(head.seq, OF_FLOW))?;
        for event in page.events {
            let Event::Message(message) = &event.event else { continue };
            if message.lane == Lane::main() {
                continue;
            }
            let name = crate::clean::Clean::line(&message.lane.to_string());
            let at = helpers.iter().position(|helper: &Helper| helper.name == name);
            let at = at.unwrap_or_else(|| {
                helpers.push(Helper::new(name));
                helpers.len() - 1
            });
            helpers[at].learn_from(&event);
        }
        helpers.iter_mut().for_each(|helper| helper.end(head.status));
    }
    let below = well.subagents(id)?;
    for info in below.iter().skip(below.len().saturating_sub(MOST)) {
        let head = &info.head;
        let page = last_events(well, &head.id, Last::at(head.seq, EVENTS))?;
        let redactor = well.redactor().with_own_count();
        let task = redactor.redact(&format!("{}: {}", head.agent, head.task)).into_owned();
        helpers.push(Helper::of(&head.id, &task, head.status, &page));
    }
    Ok(helpers)
}
