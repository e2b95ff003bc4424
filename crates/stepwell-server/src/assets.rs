//! The page: files that are part of the program.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use stepwell::Digest;

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
    "index.html", "text/html; charset=utf-8";
    "style.css", "text/css; charset=utf-8";
    "app.js", "text/javascript; charset=utf-8";
}

/// The tags of all files, by which a browser knows that it has them.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ASSETS.iter().map(|asset| format!("\"{}\"", Digest::of(asset.bytes))).collect()
});

/// The file at a path, or nothing. Everything that is no file is the page itself.
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
