//! Outcomes and costs of sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::SessionInfo;
use stepwell::store::query::{Family, Query};
use stepwell_wire::Statistics;
use stepwell_workspace::Estimates;

use crate::bounded::{LeftOut, PAGE_BYTES, Shortened};
use crate::error::Result;
use crate::input::Which;
use crate::stores::{Purpose, Stores};

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StatsInput {
    /// Only this session with its subagents: its id, a part of it, its label, or @last.
    session: Option<String>,
    /// Only these sessions.
    which: Which,
}

/// Outcomes and costs of sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatsAnswer {
    /// The statistics. Subagents' sessions count as well.
    statistics: Shortened<Statistics>,
    /// Lists with omitted entries; use `which` to request less at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
}

/// Computes the statistics.
pub(crate) fn session_stats(stores: &Stores, input: StatsInput) -> Result<StatsAnswer> {
    let mut counted = stepwell::report::Statistics::default();
    let estimates = Estimates::new(&stores.workspace);
    let mut count = |info: &SessionInfo| {
        let moment = info.head.created_at.to_string();
        let day = moment.split('T').next().unwrap_or_default().to_owned();
        let estimate = estimates.of(&info.head, &info.head.spent);
        counted.count(info, day, estimate);
    };
    match input.session {
        Some(name) => {
            let found = stores.session(&name.into(), Purpose::Read)?;
            count(&found.well.info(&found.id)?);
            found.well.subagents(&found.id)?.iter().for_each(count);
        }
        None => {
            let filter = input.which.filter(Family::Any);
            for open in stores.all(Purpose::Read)? {
                let query = Query { filter: filter.clone(), ..Query::default() };
                for info in open.well.sessions(query) {
                    count(&info?);
                }
            }
        }
    }
    let statistics = Shortened::to(&(&counted).into(), PAGE_BYTES, &stores.redactor)?;
    Ok(StatsAnswer { left_out: statistics.left_out("/statistics"), statistics })
}
