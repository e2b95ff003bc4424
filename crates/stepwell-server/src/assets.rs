//! The files of the page, which are part of the program.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use stepwell::model::Digest;

/// A file of the page.
struct Asset {
    path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal, $media:literal;)*) => {
        const ASSETS: &[Asset] = &[$(Asset {
            path: $path,
            media: $media,
            bytes: include_bytes!(concat!("../page/", $path)),
        },)*];
    };
}

assets! {
    "api.js", "text/javascript; charset=utf-8";
    "app.js", "text/javascript; charset=utf-8";
    "browser.js", "text/javascript; charset=utf-8";
    "conversation.js", "text/javascript; charset=utf-8";
    "diff.js", "text/javascript; charset=utf-8";
    "frame.js", "text/javascript; charset=utf-8";
    "gate.js", "text/javascript; charset=utf-8";
    "graph.js", "text/javascript; charset=utf-8";
    "html.js", "text/javascript; charset=utf-8";
    "hub.js", "text/javascript; charset=utf-8";
    "icons.js", "text/javascript; charset=utf-8";
    "icon.svg", "image/svg+xml";
    "index.html", "text/html; charset=utf-8";
    "keys.js", "text/javascript; charset=utf-8";
    "live.js", "text/javascript; charset=utf-8";
    "log.js", "text/javascript; charset=utf-8";
    "markdown.js", "text/javascript; charset=utf-8";
    "marks.js", "text/javascript; charset=utf-8";
    "notify.js", "text/javascript; charset=utf-8";
    "parts.js", "text/javascript; charset=utf-8";
    "plot.js", "text/javascript; charset=utf-8";
    "route.js", "text/javascript; charset=utf-8";
    "search.js", "text/javascript; charset=utf-8";
    "state.js", "text/javascript; charset=utf-8";
    "still.js", "text/javascript; charset=utf-8";
    "style.css", "text/css; charset=utf-8";
    "talk.js", "text/javascript; charset=utf-8";
    "text.js", "text/javascript; charset=utf-8";
    "theme.js", "text/javascript; charset=utf-8";
    "typing.js", "text/javascript; charset=utf-8";
    "screens/aside.js", "text/javascript; charset=utf-8";
    "screens/compare.js", "text/javascript; charset=utf-8";
    "screens/cost.js", "text/javascript; charset=utf-8";
    "screens/health.js", "text/javascript; charset=utf-8";
    "screens/import.js", "text/javascript; charset=utf-8";
    "screens/inbox.js", "text/javascript; charset=utf-8";
    "screens/login.js", "text/javascript; charset=utf-8";
    "screens/session.js", "text/javascript; charset=utf-8";
    "screens/sessions.js", "text/javascript; charset=utf-8";
    "screens/start.js", "text/javascript; charset=utf-8";
    "screens/time.js", "text/javascript; charset=utf-8";
    "vendor/hooks.mjs", "text/javascript; charset=utf-8";
    "vendor/htm.mjs", "text/javascript; charset=utf-8";
    "vendor/preact.mjs", "text/javascript; charset=utf-8";
}

/// The tags of all files, by which browsers validate their caches.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ASSETS.iter().map(|asset| format!("\"{}\"", Digest::of(asset.bytes))).collect()
});

/// The file at a path, or `None`. Other paths are served with the page itself.
pub(crate) fn serve(path: &str, asked: &HeaderMap) -> Option<Response<Body>> {
    let name = match path.trim_start_matches('/') {
        "" | "login" => "index.html",
        other => other,
    };
    let found = ASSETS.iter().position(|asset| asset.path == name)?;
    let (asset, tag) = (&ASSETS[found], &TAGS[found]);
    let known = asked.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if known { Body::empty() } else { Body::from(asset.bytes) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    Some(response)
}
