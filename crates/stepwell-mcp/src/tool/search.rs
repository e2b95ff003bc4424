//! Searching sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell::store::query::{Family, Filter, Rank, Search, SystemPrompts};
use stepwell_wire::SearchHit;

use crate::bounded::{LeftOut, Page, Shortened};
use crate::error::{Error, Result};
use crate::input::{Limit, Which};
use crate::stores::{Purpose, Stores};

/// The longest question: whoever asks for more pastes a document.
const LONGEST_QUERY: usize = 1_000;

/// The last hit that can be reached by paging. A search that finds more is better narrowed.
const FARTHEST: usize = 1_000;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// The words. Every one must occur, in any order and case.
    pub(crate) query: String,
    /// Only in this session: its id, a part of it, its label, or @last.
    #[serde(default)]
    pub(crate) session: Option<String>,
    /// Only in such sessions.
    #[serde(default)]
    pub(crate) which: Which,
    /// Which hits come first.
    #[serde(default)]
    pub(crate) rank: Ranked,
    /// At most so many hits; 20, if absent.
    #[serde(default)]
    pub(crate) limit: Option<Limit>,
    /// Hits to pass over: the `next` of the page before.
    #[serde(default)]
    pub(crate) offset: usize,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ranked {
    /// The newest.
    #[default]
    Newest,
    /// The most relevant.
    Relevance,
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    /// The hits.
    hits: Vec<Shortened<SearchHit>>,
    /// Lists of which only the front is here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The offset of the next page; absent, if this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// Was more found than can be paged to? Other words, or fewer sessions, bring the rest.
    #[serde(skip_serializing_if = "is_false")]
    too_many: bool,
    /// New events that could not be searched, because the store can only be read.
    unsearched: u64,
}

/// Searches sessions.
pub(crate) fn search_sessions(stores: &Stores, input: SearchInput) -> Result<SearchAnswer> {
    if input.query.len() > LONGEST_QUERY {
        let why = format!("`query` has more than {LONGEST_QUERY} bytes");
        return Err(Error::Arguments(why));
    }
    if !input.query.chars().any(char::is_alphanumeric) {
        return Err(Error::Arguments("`query` holds no word to search for".to_owned()));
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
    // One more than can be reached says whether there is more.
    let search = Search { text, filter, rank, limit: wanted.min(FARTHEST + 1), system };
    let (mut hits, mut unsearched) = (Vec::new(), 0);
    for (store, well) in opened {
        let found = well.search(&search)?;
        unsearched += found.unseen;
        hits.extend(found.hits.into_iter().map(|hit| (store.clone(), hit)));
    }
    // Relevance means nothing across stores; the newest are the newest everywhere.
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
    // Stores give more than is asked for all together: only whoever is at the end is told.
    let too_many = next.is_none() && all > FARTHEST;
    let left_out = page.left_out("hits");
    Ok(SearchAnswer { hits: page.into_items(), left_out, next, too_many, unsearched })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
