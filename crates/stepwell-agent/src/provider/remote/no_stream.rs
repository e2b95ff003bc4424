//! What answers where a stream of events was expected. The client library shows neither the
//! headers nor the body of such an answer, so that the place is looked at again, without the key
//! and without the conversation.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;

use super::Protocol;

/// How long that look may take: the failure is known already.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came instead of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// A web page: the address is not that of an API.
    Page,
    /// The answer, in one piece.
    OnePiece,
    /// One of them: it could not be found out.
    Unknown,
}

/// Looks at what stands where a model is asked. A page is there for everyone; an API is not.
pub(super) async fn look(client: &reqwest::Client, base_url: &str, protocol: Protocol) -> Instead {
    let path = match protocol {
        Protocol::OpenAi => "chat/completions",
        Protocol::Anthropic => "messages",
        Protocol::Gemini => "models",
    };
    let asked = client.get(format!("{base_url}{path}")).timeout(PATIENCE).send().await;
    let Ok(mut response) = asked else { return Instead::Unknown };
    let status = response.status();
    // A page that says that this cannot be fetched says nothing of what is sent there.
    let page = if status.is_success() { Instead::Page } else { Instead::Unknown };
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if kind.is_some_and(|kind| kind.contains("html")) {
        return page;
    }
    match response.chunk().await {
        Ok(Some(front)) if front.trim_ascii_start().starts_with(b"<") => page,
        // Only something of an API says so in JSON; an empty refusal may be anybody's.
        Ok(Some(front)) if front.trim_ascii_start().starts_with(b"{") => Instead::OnePiece,
        Ok(_) if status.is_success() => Instead::OnePiece,
        Ok(_) | Err(_) => Instead::Unknown,
    }
}
