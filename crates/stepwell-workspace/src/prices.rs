//! The user's prices, and what a session may have cost whose tokens are known and whose cost is
//! not.

use std::cell::OnceCell;
use std::sync::Arc;

use stepwell::log::Head;
use stepwell::model::{Estimate, Money, Spent};
use stepwell_catalog::price::list::List;
use stepwell_catalog::price::{Price, Prices};

use crate::error::{Error, ErrorKind, Result};
use crate::notice::Notice;
use crate::price_list::{NoPriceList, PriceListFile};
use crate::workspace::Workspace;

/// Whose models are shown unasked.
const VENDORS: [&str; 4] = ["anthropic", "gemini", "ollama", "openai"];

/// The newest list of prices that there is, and why it is not the user's if theirs cannot be
/// read.
#[must_use]
pub fn newest_list(workspace: &Workspace) -> (List, Option<NoPriceList>) {
    match PriceListFile::of(&workspace.host) {
        Some(file) => file.newest(),
        None => (List::shipped(), None),
    }
}

/// The user's prices: those of a list, and their own over it.
///
/// # Errors
/// If prices in the configuration are none.
pub fn with_list(workspace: &Workspace, list: List) -> Result<Prices> {
    let prices = Prices::of(Arc::new(list)).with(&workspace.config.prices);
    prices.map_err(|error| Error::refused(ErrorKind::Config, error.to_string()))
}

/// The models whose names hold this part; without one, those of the vendors that Stepwell knows
/// by itself and of the configuration. And how many others there are.
#[must_use]
pub fn shown(
    workspace: &Workspace,
    all: &Prices,
    part: Option<&str>,
) -> (Vec<(String, Price)>, usize) {
    let (mut shown, mut others) = (Vec::new(), 0);
    for provider in all.providers() {
        for (model, price) in &*all.models(provider) {
            let name = format!("{provider}/{model}");
            let wanted = match part {
                Some(part) => name.contains(part),
                None => VENDORS.contains(&provider) || workspace.config.prices.contains_key(&name),
            };
            match wanted {
                true => shown.push((name, price.clone())),
                false => others += 1,
            }
        }
    }
    (shown, others)
}

/// The user's prices: the newest list, and their own over it. A list that cannot be read is a
/// notice.
///
/// # Errors
/// If prices in the configuration are none.
pub fn current(workspace: &Workspace) -> Result<Prices> {
    let (list, why) = newest_list(workspace);
    if let Some(why) = why {
        workspace.notices.tell(Notice::warning(
            "the newest prices are not read, and those that ship are used",
            &why,
        ));
    }
    with_list(workspace, list)
}

/// What sessions may have cost of which nobody said it. The prices are read when one is asked for.
#[derive(Debug)]
pub struct Estimates<'a> {
    workspace: &'a Workspace,
    prices: OnceCell<Option<Prices>>,
}

impl<'a> Estimates<'a> {
    /// By the prices that hold in a workspace.
    #[must_use]
    pub const fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, prices: OnceCell::new() }
    }

    /// What calls of several sessions may have cost together, each by its own model.
    #[must_use]
    pub fn of_all<'h>(&self, heads: impl IntoIterator<Item = &'h Head>) -> Option<Estimate> {
        let unpriced = heads.into_iter().filter(|head| head.spent.unpriced > 0);
        let estimates: Vec<_> = unpriced.map(|head| self.of(head, &head.spent)).collect();
        let partial = estimates.iter().any(|it| it.is_none_or(|it| it.partial));
        let costs = estimates.into_iter().flatten().map(|it| it.cost);
        Some(Estimate { cost: costs.reduce(Money::plus)?, partial })
    }

    /// What calls of a session may have cost whose price nobody said; absent, all of it was said,
    /// or no price is known.
    #[must_use]
    pub fn of(&self, head: &Head, spent: &Spent) -> Option<Estimate> {
        if spent.unpriced == 0 {
            return None;
        }
        let prices = self.prices.get_or_init(|| current(self.workspace).ok()).as_ref()?;
        let (model, provider) = (&head.model, head.model_provider());
        let Some(before) = &head.imported else {
            let cost = prices.estimate(provider, model, spent)?;
            return Some(Estimate { cost, partial: false });
        };
        // What came from elsewhere, and what was spent since, each by its own model.
        let since = spent.minus(before.spent);
        let imported = prices.estimate(&before.provider, &before.model, &before.spent);
        let own = prices.estimate(provider, model, &since);
        let partial = imported.is_none() || (since.unpriced > 0 && own.is_none());
        let cost = imported.into_iter().chain(own).reduce(Money::plus)?;
        Some(Estimate { cost, partial })
    }
}
