//! The server: its parts, the dispatch of requests, and its shutdown.

mod streams;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::routing::MethodFilter;
use stepwell::model::EventId;
use tokio::sync::watch;

use crate::access::{AccessEntry, AccessLog};
use crate::connections::Peer;
use crate::mcp;
use crate::mcp_handler::McpHandler;
use crate::problem::{Problem, Result};
use crate::received::{body, caller, login};
use crate::repeats::Repeats;
use crate::reply::{LINES, NEXT, Reply};
use crate::route::{Call, Route, Wants};
use crate::security::{
    BrowserLogin, Caller, Credential, Entrance, Guard, Logins, Logouts, OneTimeLink, Origin,
    Tokens, harden,
};
use crate::site::{Limits, Site};
use crate::stores::{Hearing, Stores, Workspaces};
use crate::tidying::Tidying;
use crate::{api, assets, connections, openapi};

/// The file of revoked cookies, in the user's state folder.
const LOGOUTS: &str = "serve.logouts";

/// How the server can be reached from other machines.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Not at all.
    Local,
    /// With its own TLS, under this name.
    Tls(Arc<rustls::ServerConfig>, Origin),
    /// Through a proxy with this name, which terminates TLS.
    Behind(Origin),
}

/// The options of a server.
#[derive(Debug)]
pub struct Options {
    /// The accepted tokens.
    pub tokens: Tokens,
    /// Refuse all changes?
    pub read_only: bool,
    /// May runs in the mode `yolo` be started?
    pub may_yolo: bool,
    /// How it can be reached.
    pub reach: Reach,
    /// The handler for `/mcp`, if any.
    pub mcp: Option<Arc<dyn McpHandler>>,
    /// The access log, if any.
    pub access: Option<Arc<dyn AccessLog>>,
}

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Shutdown {
    /// Stops the server. Pending requests are still answered.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}

/// A server that is ready to serve.
#[derive(Debug)]
pub struct Server {
    site: Arc<Site>,
    listeners: Vec<TcpListener>,
    reach: Reach,
}

impl Server {
    /// A server on these listeners, over a user's stores. A missing home store is created. If the
    /// store becomes unreachable later, requests fail
    /// [soon](stepwell_workspace::Workspace::with_short_timeout).
    ///
    /// # Errors
    /// If the store cannot be opened, or a listener is reachable from other machines
    /// without protection.
    pub fn new(
        listeners: Vec<TcpListener>,
        mut workspaces: Workspaces,
        options: Options,
    ) -> io::Result<Self> {
        workspaces.home = workspaces.home.with_short_timeout();
        let mut origins = Vec::new();
        let mut port = 0;
        let scheme = if matches!(options.reach, Reach::Tls(..)) { "https" } else { "http" };
        for listener in &listeners {
            let address = listener.local_addr()?;
            port = address.port();
            let is_protected = !matches!(options.reach, Reach::Local);
            if !connections::is_local(address) && !is_protected {
                return Err(io::Error::other(format!(
                    "{address} is reachable from other machines: it needs TLS, or a proxy with TLS"
                )));
            }
            origins.extend(Origin::of_listener(address, scheme));
        }
        if let Reach::Tls(_, origin) | Reach::Behind(origin) = &options.reach {
            origins.push(origin.clone());
        }
        let host = &workspaces.home.host;
        let logouts = host.state.as_ref().map(|state| state.join(LOGOUTS));
        let clock = Arc::clone(&host.clock);
        let hearing = match options.reach {
            Reach::Local => Hearing::Own,
            Reach::Tls(..) | Reach::Behind(_) => Hearing::None,
        };
        let stores = Stores::open(workspaces, hearing).map_err(io::Error::other)?;
        let logins = Logins::new(options.tokens, Logouts::new(logouts), Arc::clone(&clock));
        let guard = Guard { origins, logins, cookie: format!("stepwell_{port}") };
        let limits = Limits { read_only: options.read_only, may_yolo: options.may_yolo };
        let (repeats, mcp, access) = (Repeats::default(), options.mcp, options.access);
        let tidying = Tidying::default();
        let site = Arc::new(Site { stores, tidying, guard, limits, repeats, mcp, access, clock });
        Ok(Self { site, listeners, reach: options.reach })
    }

    /// A link that logs the user's browser in, once.
    ///
    /// # Errors
    /// If the user has no token, or the machine provides no random bits.
    pub fn link(&self) -> io::Result<OneTimeLink> {
        self.site.guard.logins.link()
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If a listener fails.
    pub async fn run(self, shutdown: &Shutdown) -> io::Result<()> {
        let tls = match &self.reach {
            Reach::Tls(config, _) => Some(Arc::clone(config)),
            _ => None,
        };
        connections::serve(self.listeners, router(self.site), tls, shutdown.0.subscribe()).await
    }
}

/// The response type of all routes.
type Answer = Response<Body>;

fn router(site: Arc<Site>) -> Router {
    let mut router = Router::new();
    for route in api::routes() {
        let handler =
            move |State(site): State<Arc<Site>>, parameters: Parameters, request: Request| {
                dispatch(site, route, parameters, request)
            };
        let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
        let path = format!("/api/v1{}", route.path);
        router = router.route(&path, axum::routing::on(filter, handler));
    }
    router
        .route("/api/v1/sessions/{id}/stream", axum::routing::get(streams::session))
        .route("/api/v1/changes", axum::routing::get(streams::changes))
        .route("/api/v1/openapi.json", axum::routing::get(describe))
        .route("/api/v1/login", axum::routing::post(log_in))
        .route("/api/v1/logout", axum::routing::post(log_out))
        .route("/api/v1/healthz", axum::routing::get(|| async { StatusCode::NO_CONTENT }))
        .route(mcp::PATH, axum::routing::any(mcp::answer))
        .fallback(page)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// Checks every request, and adds headers to every answer.
async fn guard(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: axum::middleware::Next,
) -> Answer {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let entrance = if path == mcp::PATH { Entrance::Mcp } else { Entrance::Api };
    let peer = request.extensions().get::<Peer>().cloned();
    let mut who = None;
    let mut response = match site.guard.check(entrance, request.method(), request.headers()) {
        Err(problem) => problem.response(),
        Ok(passed) => {
            who = passed.clone().caller().ok().map(|caller| caller.name);
            if let (Some(_), Some(peer)) = (&who, &peer) {
                peer.is_known();
            }
            request.extensions_mut().insert(passed);
            next.run(request).await
        }
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers().get(header::ALLOW).cloned();
        let title = format!("{path} does not support {method}");
        response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", title).response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    harden(response.headers_mut());
    let (at, method, status) = (site.clock.now(), method.to_string(), response.status().as_u16());
    // Without the query, which may contain search terms.
    tracing::info!(method, path, status, who, "request");
    if let Some(log) = &site.access {
        let from = peer.map(|peer| peer.address);
        log.keep(&AccessEntry { at, who, from, method, path, status });
    }
    response
}

async fn dispatch(
    site: Arc<Site>,
    route: &'static Route,
    parameters: Parameters,
    request: Request,
) -> Answer {
    let answer = async { read(site, route, named(parameters)?, request).await };
    answered(answer.await)
}

/// The parameters of the path, by name, unless they are not valid text.
type Parameters =
    std::result::Result<Path<HashMap<String, String>>, axum::extract::rejection::PathRejection>;

fn named(parameters: Parameters) -> Result<HashMap<String, String>> {
    match parameters {
        Ok(Path(parameters)) => Ok(parameters),
        Err(error) => Err(Problem::invalid(error.body_text()).at("path")),
    }
}

async fn read(
    site: Arc<Site>,
    route: &'static Route,
    parameters: HashMap<String, String>,
    request: Request,
) -> Result<Reply> {
    let caller = caller(&request)?;
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let (target, query) = (format!("{path}?{query}"), query.to_owned());
    let headers = request.headers().clone();
    let (body, key) = match route.method {
        // Reading requests may be repeated freely.
        Method::GET => (Vec::new(), None),
        _ => (
            body(request.into_body()).await?,
            request_key(&headers, &caller, &format!("{} {target}", route.method))?,
        ),
    };
    let wants = if accepts_lines(&headers) { Wants::Lines } else { Wants::Json };
    let event = key.as_ref().map(|key| EventId::derived(key.as_bytes()));
    let call = Call { caller, parameters, query, body, event, wants };
    blocking(move || match key {
        Some(key) => site.repeats.once(key, &call.body, || route.run(&site, &call)),
        None => route.run(&site, &call),
    })
    .await
}

/// Does the client ask for one item a line?
fn accepts_lines(headers: &axum::http::HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let mut media = accepted.flat_map(|it| it.split(',')).map(|it| it.split(';').next());
    media.any(|it| it.map(str::trim) == Some(LINES))
}

/// The key of a repeatable request, if it has one: unique for this caller and target.
fn request_key(
    headers: &axum::http::HeaderMap,
    caller: &Caller,
    target: &str,
) -> Result<Option<String>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= 255);
    let key = key
        .ok_or_else(|| Problem::invalid("the key is up to 255 characters").at("idempotency-key"))?;
    Ok(Some(format!("{} {target} {key}", caller.name)))
}

/// Stores block, so handlers run on separate threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => {
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "a handler failed"))
        }
    }
}

fn answered(reply: Result<Reply>) -> Answer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(problem) => return problem.response(),
    };
    let mut next = None;
    let (status, media, bytes, name) = match reply {
        Reply::Json(status, body) => (status, "application/json", body, None),
        Reply::Lines { body, next: following } => {
            next = following;
            (StatusCode::OK, LINES, body, None)
        }
        Reply::File { name, media, bytes } => (StatusCode::OK, media, bytes, Some(name)),
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        headers.insert(NEXT, next);
    }
    if let Some(name) = name {
        // A browser saves the file, whatever it contains, and runs nothing in it.
        let sandbox = HeaderValue::from_static("sandbox; default-src 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
        let plain: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' })
            .collect();
        if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"")) {
            headers.insert(header::CONTENT_DISPOSITION, value);
        }
    }
    response
}

async fn describe(request: Request) -> Answer {
    match caller(&request) {
        Err(problem) => problem.response(),
        Ok(_) => answered(Ok(Reply::Json(StatusCode::OK, openapi::own().to_vec()))),
    }
}

/// A login request.
#[derive(serde::Deserialize)]
struct LogIn {
    code: String,
}

/// Takes a one-time link or a token, and returns a cookie and its key.
async fn log_in(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let taken = async {
        let body = body(request.into_body()).await?;
        let LogIn { code } =
            serde_json::from_slice(&body).map_err(|_| Problem::invalid("the body has no code"))?;
        site.guard.logins.redeem(&code).map_err(|why| match why {
            crate::security::Refused::Unknown => Problem::unauthorized()
                .hint("a link works once, for a minute; stepwell serve --print-token prints what always does"),
            crate::security::Refused::TooMany => Problem::too_many_attempts(),
        })
    };
    match taken.await {
        Err(problem) => problem.response(),
        Ok(BrowserLogin { cookie, key }) => {
            let body = serde_json::json!({"key": key}).to_string().into_bytes();
            let answer = answered(Ok(Reply::Json(StatusCode::OK, body)));
            with_cookie(&site, &cookie, answer)
        }
    }
}

async fn log_out(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let out = match login(&request) {
        Ok((_, Credential::Cookie(cookie))) => site.guard.logins.log_out(&cookie),
        // A cookie without its key cannot be revoked.
        _ => Ok(()),
    };
    match out {
        Ok(()) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            with_cookie(&site, "", response)
        }
        // A logout must hold, also after a restart.
        Err(error) => Problem::failed(format!("the logout could not be kept: {error}"))
            .hint("stepwell serve --new-token ends every login")
            .response(),
    }
}

fn with_cookie(site: &Site, cookie: &str, mut response: Answer) -> Answer {
    if let Ok(value) = HeaderValue::from_str(&site.guard.set_cookie(cookie)) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// The page, or an error for other paths.
async fn page(request: Request) -> Answer {
    let path = request.uri().path();
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let asset = assets::serve(path, request.headers()).filter(|_| is_get);
    asset.unwrap_or_else(|| Problem::absent(format!("there is nothing at {path}")).response())
}

/// Listens on an address, or on all loopback addresses of this machine.
///
/// # Errors
/// If the port is in use.
pub fn listen(address: Option<IpAddr>, port: u16) -> io::Result<Vec<TcpListener>> {
    let bind = |ip: IpAddr, port| TcpListener::bind(SocketAddr::new(ip, port));
    if let Some(ip) = address {
        return Ok(vec![bind(ip, port)?]);
    }
    let first = bind(Ipv4Addr::LOCALHOST.into(), port)?;
    let port = first.local_addr()?.port();
    // A machine without IPv6 has only the other one.
    let second = bind(Ipv6Addr::LOCALHOST.into(), port).ok();
    Ok(std::iter::once(first).chain(second).collect())
}
