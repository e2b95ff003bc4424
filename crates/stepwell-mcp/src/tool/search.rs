//! Searches sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::store::query::{Family, Filter, Rank, Search, SystemPrompts};
use stepwell_wire::SearchHit;

use crate::bounded::{LeftOut, Page, Shortened};
use crate::error::{Error, Result};
use crate::input::{Limit, Which};
use crate::stores::{Purpose, Stores};

/// The longest query: a longer one is probably a pasted document.
const LONGEST_QUERY: usize = 1_000;

/// The last hit that paging can reach. A search with more hits should be narrowed.
const FARTHEST: usize = 1_000;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// The words. Each must occur, in any order and case.
    pub(crate) query: String,
    /// Only in this session: its id, a part of it, its label, or @last.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// Only these sessions.
    #[serde(default)]
    pub(crate) which: Which,
    /// Which hits come first.
    #[serde(default)]
    pub(crate) rank: Ranked,
    /// The most hits; 20, if absent.
    #[serde(default)]
    pub(crate) limit: Option<Limit>,
    /// Hits to skip: the `next` of the page before.
    #[serde(default)]
    pub(crate) offset: usize,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ranked {
    /// The newest first.
    #[default]
    Newest,
    /// The most relevant first.
    Relevance,
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    /// The hits.
    hits: Vec<Shortened<SearchHit>>,
    /// Lists with omitted entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The offset of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// Are there more hits than paging can reach? Other words or fewer sessions find them.
    #[serde(skip_serializing_if = "is_false")]
    too_many: bool,
    /// New events that are not indexed, because the store is read-only.
    unsearched: u64,
}

/// Searches sessions.
pub(crate) fn search_sessions(stores: &Stores, input: SearchInput) -> Result<SearchAnswer> {
    if input.query.len() > LONGEST_QUERY {
        let why = format!("`query` has more than {LONGEST_QUERY} bytes");
        return Err(Error::Arguments(why));
    }
    if !input.query.chars().any(char::is_alphanumeric) {
        return Err(Error::Arguments("`query` contains no word".to_owned()));
    }
    let limit = Limit::of(input.limit);
    let wanted = input.offset.saturating_add(limit).saturating_add(1);
    let rank = match input.rank {
        Ranked::Newest => Rank::Newest,
        Ranked::Relevance => Rank::Relevance,
    };
    let mut filter = input.which.filter(Family::Any);
    let opened = match input.session {
        Some(name) => {
            let found = stores.session(&name.into(), Purpose::Search)?;
            filter = Filter { prefix: Some(found.id.to_string()), ..filter };
            vec![(None, found.well)]
        }
        None => {
            let opened = stores.all(Purpose::Search)?.into_iter();
            opened.map(|open| (open.name, open.well)).collect()
        }
    };
    let (text, system) = (input.query, SystemPrompts::Skipped);
    // One more than can be reached shows whether there are more.
    let search = Search { text, filter, rank, limit: wanted.min(FARTHEST + 1), system };
    let (mut hits, mut unsearched) = (Vec::new(), 0);
    for (store, well) in opened {
        let found = well.search(&search)?;
        unsearched += found.unseen;
        hits.extend(found.hits.into_iter().map(|hit| (store.clone(), hit)));
    }
    // Relevance cannot be compared across stores; time can.
    if rank == Rank::Newest {
        hits.sort_by_key(|(_, hit)| std::cmp::Reverse(hit.at));
    }
    let mut page = Page::new(&stores.redactor, limit);
    let (all, mut next) = (hits.len(), None);
    for (n, (store, hit)) in hits.into_iter().enumerate().take(FARTHEST).skip(input.offset) {
        if !page.push(&SearchHit { store, ..hit.into() })? {
            next = Some(n);
            break;
        }
    }
    // Several stores together return more than the limit; only the last page reports that.
    let too_many = next.is_none() && all > FARTHEST;
    let left_out = page.left_out("hits");
    Ok(SearchAnswer { hits: page.into_items(), left_out, next, too_many, unsearched })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
