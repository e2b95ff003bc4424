//! The streams: one session's log as it grows, and changes of sessions with the logs of several.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use stepwell::Seq;

use super::{Answer, Parameters, blocking, named};
use crate::live::{self, Outlet, Watch, Watcher};
use crate::problem::{Problem, Result};
use crate::received::login;
use crate::security::{Caller, Credential, Role};
use crate::site::{Look, Site};

/// The most open streams of one caller. Each followed session counts as one, because it has its own
/// thread.
const STREAMS: usize = 128;

/// Selects all stores, where that is possible.
const EVERY_STORE: &str = "*";

/// A session's log as it grows.
pub(super) async fn session(
    State(site): State<Arc<Site>>,
    parameters: Parameters,
    request: Request,
) -> Answer {
    let parameters = match named(parameters) {
        Ok(parameters) => parameters,
        Err(problem) => return problem.response(),
    };
    let last = request.headers().get("last-event-id").and_then(|it| it.to_str().ok()?.parse().ok());
    let from = last.map(|last: u64| Seq::new(last).next());
    let from = from.or_else(|| query(&request, "from").next()?.parse().ok().map(Seq::new));
    let store = query(&request, "store").next();
    open(site, login(&request), 1, move |site, caller| {
        let look = Look::new(site, caller, store.as_deref(), &parameters)?;
        let (to, events) = live::stream();
        let watch = Watch { id: look.session()?, from, watcher: watcher(caller) };
        look.store.live.watch(watch, to)?;
        Ok(events)
    })
    .await
}

/// Changes of sessions, and the logs of followed ones.
pub(super) async fn changes(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let follows: Result<Vec<Follow>> =
        query(&request, "follow").map(|text| Follow::parse(&text)).collect();
    let follows = match follows {
        Ok(follows) => follows,
        Err(problem) => return problem.response(),
    };
    let store = query(&request, "store").next();
    open(site, login(&request), 1 + follows.len(), move |site, caller| {
        let (to, events) = live::stream();
        match store.as_deref() {
            Some(EVERY_STORE) => site.stores.tell_changes(caller, &to)?,
            store => site.stores.get(store, caller)?.live.tell_changes(to.clone())?,
        }
        for follow in follows {
            follow.begin(site, caller, &to);
        }
        Ok(events)
    })
    .await
}

/// A session that is followed beside others: `STORE/ID/FROM`.
struct Follow {
    store: String,
    id: String,
    from: Seq,
}

impl Follow {
    fn parse(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, '/').map(ToOwned::to_owned);
        let (store, id) = (parts.next(), parts.next());
        let from = parts.next().and_then(|from| from.parse().ok()).map(Seq::new);
        match (store, id, from) {
            (Some(store), Some(id), Some(from)) => Ok(Self { store, id, from }),
            _ => Err(Problem::invalid(format!("{text:?} is not STORE/ID/FROM")).at("follow")),
        }
    }

    /// Begins to follow it. If that fails, the others are still followed.
    fn begin(self, site: &Site, caller: &Caller, to: &Outlet) {
        let to = to.of_session(&self.store, &self.id);
        let begun = site.stores.get(Some(&self.store), caller).and_then(|store| {
            let id = store.session(&self.id)?;
            let watch = Watch { id, from: Some(self.from), watcher: watcher(caller) };
            store.live.watch(watch, to.clone())
        });
        match begun {
            Ok(()) => {}
            Err(problem) if problem.status() < 500 => to.say_gone(),
            Err(_) => to.say_lost(),
        }
    }
}

/// Only the user who runs the server receives live pieces.
fn watcher(caller: &Caller) -> Watcher {
    match caller.is_user && caller.role == Role::Operator {
        true => Watcher::User,
        false => Watcher::Other,
    }
}

/// The values of a query parameter.
fn query<'a>(request: &'a Request, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let named = pairs.filter_map(|pair| pair.split_once('=')).filter(move |(key, _)| *key == name);
    let plain = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    named.map(move |(_, value)| plain(value))
}

/// A stream that is counted until it ends. It ends with its login.
struct Counted {
    site: Arc<Site>,
    caller: Caller,
    shown: Credential,
    many: usize,
}

impl live::Recipient for Counted {
    fn may_hear(&self) -> bool {
        self.site.guard.logins.still_counts(&self.shown)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.site.guard.logins.close_streams(&self.caller, self.many);
    }
}

/// Opens a stream with this count.
async fn open(
    site: Arc<Site>,
    login: Result<(Caller, Credential)>,
    many: usize,
    begin: impl FnOnce(&Site, &Caller) -> Result<live::Events> + Send + 'static,
) -> Answer {
    let opened = async {
        let (caller, shown) = login?;
        if !site.guard.logins.open_streams(&caller, many, STREAMS) {
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(Problem::new(status, "busy", "too many open streams"));
        }
        let counted = Counted { site: Arc::clone(&site), caller: caller.clone(), shown, many };
        let events = blocking(move || begin(&site, &caller)).await?;
        Ok((events, counted))
    }
    .await;
    let (events, counted) = match opened {
        Ok(opened) => opened,
        Err(problem) => return problem.response(),
    };
    let mut response = Response::new(Body::from_stream(live::body(events, counted)));
    let media = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
