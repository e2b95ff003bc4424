//! Errors as documents (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use stepwell::{ErrorKind as StoreKind, Remedy};
use stepwell_runtime::{Error, ErrorKind};
use stepwell_workspace::ErrorKind as WorkspaceKind;

/// The seconds after which a request to an unreachable store may be repeated.
const LATER: &str = "2";

/// A failed request.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    title: String,
    place: Option<String>,
    hint: Option<String>,
}

pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

impl Problem {
    /// The error.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// A key that was used for another request.
    pub(crate) fn other_request() -> Self {
        let title = "this key was used for another request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", title).at("idempotency-key")
    }

    pub(crate) fn new(status: StatusCode, kind: &'static str, title: impl Into<String>) -> Self {
        Self { status, kind, title: title.into(), place: None, hint: None }
    }

    /// The failure that another process reported.
    pub(crate) fn of(kind: ErrorKind, title: impl Into<String>) -> Self {
        let (status, kind) = of_run(kind);
        Self::new(status, kind, title)
    }

    /// The request is wrong.
    pub(crate) fn invalid(title: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", title)
    }

    /// The named thing does not exist.
    pub(crate) fn absent(title: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "absent", title)
    }

    /// The state has changed.
    pub(crate) fn conflict(title: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", title)
    }

    /// The caller may not do this.
    pub(crate) fn denied(title: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", title)
    }

    /// A failure that the caller cannot fix.
    pub(crate) fn failed(title: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "io", title)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "not logged in")
            .hint("send Authorization: Bearer TOKEN, or open the link that stepwell serve printed")
    }

    pub(crate) fn too_many_attempts() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", "too many wrong tokens")
            .hint("try again in a minute")
    }

    pub(crate) fn wrong_host() -> Self {
        Self::new(StatusCode::MISDIRECTED_REQUEST, "denied", "this server has another name")
    }

    pub(crate) fn foreign_origin() -> Self {
        Self::denied("this request comes from another site")
    }

    pub(crate) fn not_from_us() -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(
            status,
            "invalid",
            "a change needs Content-Type: application/json and X-Stepwell: 1",
        )
    }

    pub(crate) fn head_too_large() -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::new(status, "invalid", "the headers are too large")
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid", "the request is too large")
    }

    #[must_use]
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the remedies as a hint.
    fn helped_by(self, remedies: &[Remedy]) -> Self {
        let hints: Vec<String> = remedies.iter().map(ToString::to_string).collect();
        if hints.is_empty() { self } else { self.hint(hints.join("; ")) }
    }

    /// Adds a hint if the store is temporarily unreachable.
    fn or_later(self) -> Self {
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => self.hint(
                "the store is temporarily unreachable: repeat the request in a moment, a change \
                 with the same Idempotency-Key; `stepwell doctor` says more",
            ),
            _ => self,
        }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The answer.
    pub(crate) fn response(self) -> Response<Body> {
        let status = self.status;
        let document = stepwell_wire::Problem {
            form: "about:blank".to_owned(),
            title: self.title,
            status: status.as_u16(),
            kind: self.kind.to_owned(),
            place: self.place,
            hint: self.hint,
        };
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let media = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, media);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(LATER));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The status and kind for a store's error.
const fn of_store(kind: StoreKind) -> (StatusCode, &'static str) {
    match kind {
        StoreKind::Invalid => (StatusCode::BAD_REQUEST, "invalid"),
        StoreKind::Absent => (StatusCode::NOT_FOUND, "absent"),
        StoreKind::Conflict | StoreKind::Fenced => (StatusCode::CONFLICT, "conflict"),
        StoreKind::Busy => (StatusCode::CONFLICT, "busy"),
        StoreKind::Damaged => (StatusCode::UNPROCESSABLE_ENTITY, "damaged"),
        StoreKind::Incompatible => (StatusCode::UNPROCESSABLE_ENTITY, "incompatible"),
        StoreKind::Denied => (StatusCode::FORBIDDEN, "denied"),
        StoreKind::Full => (StatusCode::INSUFFICIENT_STORAGE, "full"),
        StoreKind::Io => (StatusCode::SERVICE_UNAVAILABLE, "io"),
    }
}

const fn of_workspace(kind: WorkspaceKind) -> (StatusCode, &'static str) {
    match kind {
        WorkspaceKind::Store(kind) => of_store(kind),
        WorkspaceKind::Config => (StatusCode::UNPROCESSABLE_ENTITY, "config"),
        WorkspaceKind::Invalid | WorkspaceKind::Misspelt => (StatusCode::BAD_REQUEST, "invalid"),
        WorkspaceKind::Absent => (StatusCode::NOT_FOUND, "absent"),
        WorkspaceKind::Damaged => (StatusCode::UNPROCESSABLE_ENTITY, "damaged"),
        WorkspaceKind::Io => (StatusCode::SERVICE_UNAVAILABLE, "io"),
    }
}

impl From<stepwell::Error> for Problem {
    fn from(error: stepwell::Error) -> Self {
        let (status, kind) = of_store(error.kind());
        Self::new(status, kind, error.to_string()).helped_by(&error.remedies()).or_later()
    }
}

impl From<stepwell_workspace::Error> for Problem {
    fn from(error: stepwell_workspace::Error) -> Self {
        let (status, kind) = of_workspace(error.kind());
        Self::new(status, kind, error.to_string()).helped_by(&error.remedies()).or_later()
    }
}

/// The status and kind for a run's error.
const fn of_run(kind: ErrorKind) -> (StatusCode, &'static str) {
    match kind {
        ErrorKind::Store(kind) => of_store(kind),
        ErrorKind::Workspace(kind) => of_workspace(kind),
        ErrorKind::Config => (StatusCode::UNPROCESSABLE_ENTITY, "config"),
        ErrorKind::Absent => (StatusCode::NOT_FOUND, "absent"),
        ErrorKind::Usage => (StatusCode::BAD_REQUEST, "invalid"),
        ErrorKind::Invalid => (StatusCode::CONFLICT, "invalid"),
        ErrorKind::Credentials => (StatusCode::UNPROCESSABLE_ENTITY, "credentials"),
        ErrorKind::Busy => (StatusCode::CONFLICT, "busy"),
        ErrorKind::Unsaved => (StatusCode::SERVICE_UNAVAILABLE, "unsaved"),
        ErrorKind::Interrupted => (StatusCode::CONFLICT, "interrupted"),
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, kind) = match &error {
            Error::AnsweredBefore { .. } => (StatusCode::CONFLICT, "conflict"),
            Error::NoGate { .. } => (StatusCode::NOT_FOUND, "absent"),
            error => of_run(error.kind()),
        };
        Self::new(status, kind, error.to_string()).helped_by(&error.remedies()).or_later()
    }
}
