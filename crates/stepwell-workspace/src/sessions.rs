//! Every session that a query asks for, a page at a time.

use std::collections::VecDeque;

use stepwell::{Query, Standing, Stepwell};

/// How many sessions are read at a time where all are looked at.
const PAGE: usize = 1_000;

/// Every session that a query asks for. The query's limit bounds a page, not the whole.
pub fn sessions(well: &Stepwell, mut query: Query) -> Sessions<'_> {
    // Whoever asks for a few is not made to wait for a whole page.
    query.limit = query.limit.min(PAGE);
    Sessions { well, query: Some(query), page: VecDeque::new() }
}

/// The sessions that a query asks for, read as they are needed.
#[derive(Debug)]
pub struct Sessions<'a> {
    well: &'a Stepwell,
    /// Asks for the next page; none, if there is no other.
    query: Option<Query>,
    page: VecDeque<Standing>,
}

impl Iterator for Sessions<'_> {
    type Item = stepwell::Result<Standing>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(standing) = self.page.pop_front() {
                return Some(Ok(standing));
            }
            let query = self.query.take()?;
            let page = match self.well.list(&query) {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            self.page = page.sessions.into();
            self.query = page.next.map(|next| Query { after: Some(next), ..query });
        }
    }
}
