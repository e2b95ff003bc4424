//! The prices that a user has, and what a session may have cost whose tokens are known and whose
//! cost is not.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use stepwell::{Head, Money, Spent};
use stepwell_agent::price::Prices;
use stepwell_agent::price::list::List;
use stepwell_workspace::{NoPriceList, PriceListFile, Workspace};

use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::text::cost;

/// Below this, two digits behind the point would say nothing.
const CENT: Money = Money::from_picos(10_000_000_000);

/// The user's prices: the newest list, and their own over it.
pub(crate) fn prices(workspace: &Workspace) -> Result<Prices> {
    let prices = Prices::of(Arc::new(list(workspace))).with(&workspace.config.prices);
    prices.map_err(|error| Failure::new(Exit::Absent, error))
}

/// The newest list that there is.
pub(crate) fn list(workspace: &Workspace) -> List {
    let Some(file) = file(workspace) else { return List::shipped() };
    let (list, why) = file.newest();
    if let Some(why) = why {
        note(format_args!("warning: {why}; the prices that ship are used"));
    }
    list
}

/// Takes a list from a file, for this and all later commands of the user.
pub(crate) fn take(from: &Path, workspace: &Workspace) -> Result<List> {
    let file = file(workspace).ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no place to keep prices in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    file.take(from).map_err(|error| match error {
        NoPriceList::NotOne { .. } => Failure::new(Exit::Absent, error)
            .hint("scripts/prices.py in Stepwell's repository makes one"),
        NoPriceList::File { .. } => Failure::new(Exit::Failed, error),
    })
}

fn file(workspace: &Workspace) -> Option<PriceListFile> {
    workspace.price_list()
}

/// What sessions may have cost of which nobody said it. The prices are read when one is asked for.
pub(crate) struct Estimates<'a> {
    workspace: &'a Workspace,
    prices: OnceCell<Option<Prices>>,
}

impl<'a> Estimates<'a> {
    pub(crate) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, prices: OnceCell::new() }
    }

    /// What a session may have cost.
    pub(crate) fn of(&self, head: &Head, spent: &Spent) -> Option<Money> {
        if spent.unpriced == 0 {
            return None;
        }
        let prices = self.prices.get_or_init(|| prices(self.workspace).ok()).as_ref()?;
        prices.estimate(&head.provider, &head.model, spent)
    }

    /// What a session cost, or may have cost.
    pub(crate) fn told(&self, head: &Head, spent: &Spent) -> String {
        self.of(head, spent).map_or_else(|| cost(spent), estimated)
    }
}

/// An estimate, which can be taken for nothing else.
pub(crate) fn estimated(estimate: Money) -> String {
    match estimate < CENT {
        true => format!("~${estimate:.4}"),
        false => format!("~${estimate:.2}"),
    }
}
