//! The caller and the body of a request.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use http_body_util::{BodyExt, Limited};

use crate::connections;
use crate::problem::{Problem, Result};
use crate::security::{Caller, Credential};

/// The largest body, in bytes.
const BODY: usize = 1 << 20;

/// The time limit for sending it.
const BODY_TIME: Duration = Duration::from_secs(20);

/// The caller of a request that passed the guard.
pub(crate) fn caller(request: &Request) -> Result<Caller> {
    login(request).map(|(caller, _)| caller)
}

/// The caller, and their credential.
pub(crate) fn login(request: &Request) -> Result<(Caller, Credential)> {
    let passed = request.extensions().get::<crate::security::Passed>().cloned();
    passed.ok_or_else(Problem::unauthorized)?.login()
}

/// The body of a request, within the limits of size and time.
pub(crate) async fn body(body: Body) -> Result<Vec<u8>> {
    body_within(BODY_TIME, body).await
}

async fn body_within(time: Duration, body: Body) -> Result<Vec<u8>> {
    let read = Limited::new(body, BODY).collect();
    match connections::in_time(time, read).await {
        None => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "invalid", "the body took too long")),
        Some(Err(_)) => Err(Problem::too_large()),
        Some(Ok(body)) => Ok(body.to_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_that_comes_too_slowly_is_not_waited_for() {
        let first = futures_util::stream::iter([Ok::<_, io::Error>("{")]);
        let slow = Body::from_stream(first.chain(futures_util::stream::pending()));
        let refused = body_within(Duration::from_millis(20), slow).await.unwrap_err();
        assert_eq!(refused.response().status(), StatusCode::REQUEST_TIMEOUT);
        let quick = Body::from("{}");
        assert_eq!(body_within(BODY_TIME, quick).await.unwrap(), b"{}");
    }
}
