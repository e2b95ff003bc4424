//! A model provider for tests that rejects what the vendors reject.
//!
//! It listens on a loopback port and speaks OpenAI's chat completions (`/v1/chat/completions`) and
//! responses (`/v1/responses`) and Anthropic's messages (`/v1/messages`), streaming and not. It
//! records every request. A conversation that a vendor would reject with 400 is rejected with 400
//! here, in the vendor's words. The test provides all other answers: queued, or from a function.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use stepwell_strict::{Reply, Rules, Say, Strict};
//!
//! let strict = Strict::start(Rules::default()).await.unwrap();
//! strict.push(Say::text("Hello.").calling("call_1", "read_file", &["{\"path\":", "\"a\"}"]));
//! strict.push(Reply::error(429, "slow down").retry_after("2"));
//! assert!(strict.base_url().ends_with("/v1"));
//! assert_eq!(strict.rejected(), 0);
//! # });
//! ```

mod anthropic;
mod asked;
mod openai;
mod picture;
mod reply;
mod responses;
mod server;

pub use asked::{Asked, Protocol};
pub use reply::{Dialect, Ending, HttpError, Piece, Raw, Reply, Say, Stop, Tokens};
pub use server::{Rules, Strict};

/// Checks a request's body by a vendor's rules, without a server. The error is the vendor's
/// message. Signed thinking is rejected, because its signatures cannot be known here.
pub fn check(protocol: Protocol, body: &serde_json::Value) -> Result<(), String> {
    match protocol {
        Protocol::OpenAi => openai::check(body),
        Protocol::Responses => responses::check(body),
        Protocol::Anthropic => anthropic::check_body(body, &std::collections::HashSet::new()),
    }
}
