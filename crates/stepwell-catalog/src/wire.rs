//! What programs get to read of prices.

use stepwell_wire::LongPrice;

use crate::price::Long;

impl From<&Long> for LongPrice {
    fn from(long: &Long) -> Self {
        let Long { over, input, cached, cache_written, output } = *long;
        Self { over, input, cached, cache_written, output }
    }
}
