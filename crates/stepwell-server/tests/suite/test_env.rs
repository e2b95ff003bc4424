//! A server over its own store, and a client that checks all answers against the `OpenAPI`
//! document.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use stepwell::model::{AskedCall, Effect, Gate};
use stepwell::{Message, SessionId, Status, Stepwell};
use stepwell_runtime::{RunHandle, RunOptions, RunRequest, Runtime};
use stepwell_server::{
    AccessEntry, AccessLog, NamedToken, Options, Reach, Role, Server, Shutdown, Token, Tokens,
    Workspaces,
};
use stepwell_strict::Strict;
use stepwell_workspace::{Host, Notices, Wanted, Workspace};
use tokio::task::JoinHandle;

/// A server and its store.
pub(crate) struct TestEnv {
    folder: tempfile::TempDir,
    pub(crate) well: Stepwell,
    pub(crate) port: u16,
    pub(crate) operator: Token,
    pub(crate) colleague: Token,
    pub(crate) viewer: Token,
    pub(crate) document: Value,
    /// Reused, because creating one takes longer than a request.
    client: reqwest::Client,
    shutdown: Shutdown,
    served: Option<JoinHandle<std::io::Result<()>>>,
    limits: Limits,
    reach: Reach,
    accesses: Arc<Accesses>,
}

/// An access log in memory.
#[derive(Debug, Default)]
struct Accesses(Mutex<Vec<AccessEntry>>);

impl AccessLog for Accesses {
    fn keep(&self, entry: &AccessEntry) {
        self.0.lock().unwrap().push(entry.clone());
    }
}

/// Restrictions of the server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) read_only: bool,
}

/// The login of a browser.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) cookie: String,
    pub(crate) key: String,
}

/// A read answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Value,
}

fn workspace(folder: &Path) -> Workspace {
    let root = folder.join("work");
    std::fs::create_dir_all(&root).unwrap();
    let (state, home) = (Some(folder.join("state")), Some(folder.join("home")));
    let host = Host { folder: Some(root.clone()), state, home, ..Host::bare() };
    let wanted = Wanted { folder: Some(root), ..Wanted::default() };
    Workspace::locate(host, wanted, Notices::to_nobody()).unwrap()
}

impl TestEnv {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        let mut env = Self::serving(limits, Reach::Local);
        env.document = env.send(Method::GET, "/openapi.json", None).await.json;
        env
    }

    /// A server that other machines can reach.
    pub(crate) fn reached(reach: Reach) -> Self {
        Self::serving(Limits::default(), reach)
    }

    fn serving(limits: Limits, reach: Reach) -> Self {
        // Another test in this process may have chosen it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let well = workspace(folder.path()).open_or_create().unwrap();
        let [operator, colleague, viewer] = [(); 3].map(|()| Token::generate().unwrap());
        let mut env = Self {
            folder,
            well,
            port: 0,
            operator,
            colleague,
            viewer,
            document: Value::Null,
            client: reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap(),
            shutdown: Shutdown::default(),
            served: None,
            limits,
            reach,
            accesses: Arc::default(),
        };
        env.serve();
        env
    }

    /// Starts the server; on the same port, if it ran before.
    pub(crate) fn serve(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).unwrap();
        self.port = listener.local_addr().unwrap().port();
        let token = |name: &str, role, token: &Token| {
            let (is_user, name, token) = (name == "ann", name.to_owned(), token.clone());
            NamedToken { name, role, is_user, token }
        };
        let tokens = vec![
            token("ann", Role::Operator, &self.operator),
            token("bob", Role::Operator, &self.colleague),
            token("victor", Role::Viewer, &self.viewer),
        ];
        let home = workspace(self.folder.path());
        let workspaces = Workspaces { home, others: true, program: None };
        let read_only = self.limits.read_only;
        let reach = self.reach.clone();
        let access = Some(Arc::clone(&self.accesses) as Arc<dyn AccessLog>);
        let tokens = Tokens::new(tokens).unwrap();
        let options = Options { tokens, read_only, may_yolo: false, reach, mcp: None, access };
        let server = Server::new(vec![listener], workspaces, options).unwrap();
        self.shutdown = Shutdown::default();
        let shutdown = self.shutdown.clone();
        self.served = Some(tokio::spawn(async move { server.run(&shutdown).await }));
    }

    /// Starts a run, as another process of the user would, with a model that streams.
    pub(crate) fn start_run(&self, strict: &Strict) -> RunHandle {
        let config = self.folder.path().join("config");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!(
            "[providers.local]\nbase_url = \"{}\"\nprotocol = \"openai\"\nkey_env = \"LOCAL_KEY\"\n",
            strict.base_url()
        );
        std::fs::write(config.join("config.toml"), text).unwrap();
        let host = workspace(self.folder.path()).host;
        let key = BTreeMap::from([("LOCAL_KEY".to_owned(), strict.key().to_owned())]);
        let host = Host { config: Some(config), environment: Arc::new(key), ..host };
        let wanted = Wanted { folder: host.folder.clone(), ..Wanted::default() };
        let workspace = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
        let options = RunOptions { model: Some("local/large".to_owned()), ..RunOptions::default() };
        let request = RunRequest { options, ..RunRequest::new("tell me") };
        Runtime::new(workspace).start(request).unwrap()
    }

    /// The access log so far.
    pub(crate) fn accesses(&self) -> Vec<AccessEntry> {
        self.accesses.0.lock().unwrap().clone()
    }

    /// Another store of the same user.
    pub(crate) fn other_store(&self) -> Stepwell {
        let root = self.folder.path().join("other");
        std::fs::create_dir_all(&root).unwrap();
        let host = workspace(self.folder.path()).host;
        let host = Host { folder: Some(root.clone()), ..host };
        let wanted = Wanted { folder: Some(root), ..Wanted::default() };
        let other = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
        other.open_or_create().unwrap()
    }

    /// The file of another store of the same user.
    pub(crate) fn other_store_file(&self) -> std::path::PathBuf {
        self.folder.path().join("other/.stepwell/stepwell.db")
    }

    /// Sends a change with a key, and returns the answer.
    pub(crate) async fn post_once(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.send_once(key, Method::POST, path, body).await
    }

    pub(crate) async fn send_once(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        let request = self
            .client
            .request(method, self.url(path))
            .header(AUTHORIZATION, format!("Bearer {}", self.operator.reveal()))
            .header(CONTENT_TYPE, "application/json")
            .header("x-stepwell", "1")
            .header("idempotency-key", key)
            .body(body.to_string());
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let json = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null);
        Answer { status, json }
    }

    /// Logs a browser in.
    pub(crate) async fn log_in(&self, token: &Token) -> Login {
        let request = self
            .client
            .post(self.url("/login"))
            .header(CONTENT_TYPE, "application/json")
            .header("x-stepwell", "1")
            .body(json!({"code": token.reveal()}).to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        Login { cookie, key: body["key"].as_str().unwrap().to_owned() }
    }

    /// Sends a request of a browser.
    pub(crate) async fn browse(&self, login: &Login, method: Method, path: &str) -> Response {
        let request = self
            .client
            .request(method, self.url(path))
            .header("cookie", &login.cookie)
            .header("x-stepwell-key", &login.key)
            .header(CONTENT_TYPE, "application/json")
            .header("x-stepwell", "1")
            .body("{}");
        request.send().await.unwrap()
    }

    /// Stops it, as a restart would.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.ask();
        self.served.take().unwrap().await.unwrap().unwrap();
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/api/v1{path}", self.port)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.send_as(&self.operator, method, path, body).await
    }

    /// Sends a request with a token, and checks the answer against the document.
    pub(crate) async fn send_as(
        &self,
        token: &Token,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let mut request = self
            .client
            .request(method.clone(), self.url(path))
            .header(AUTHORIZATION, format!("Bearer {}", token.reveal()));
        if method != Method::GET {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .header("x-stepwell", "1")
                .body(body.unwrap_or_else(|| json!({})).to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let is_json = is_json(&response);
        // A stream does not end by itself: its beginning is enough.
        let is_stream = media(&response).is_some_and(|media| media == "text/event-stream");
        let bytes = if is_stream { Default::default() } else { response.bytes().await.unwrap() };
        let json = if is_json { serde_json::from_slice(&bytes).unwrap() } else { Value::Null };
        self.check(&method, path, status, &json);
        Answer { status: status.as_u16(), json }
    }

    fn check(&self, method: &Method, path: &str, status: StatusCode, json: &Value) {
        if self.document.is_null() || json.is_null() {
            return;
        }
        let Some(operation) = self.operation(method, path) else { return };
        let named = &operation["responses"][status.as_str()];
        let (response, media) = match named.is_null() {
            true => (&operation["responses"]["default"], "application/problem+json"),
            false => (named, "application/json"),
        };
        let mut schema = response["content"][media]["schema"].clone();
        assert!(schema.is_object(), "{method} {path}: {status} is not documented");
        schema["components"] = self.document["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        if let Err(error) = validator.validate(json) {
            panic!("{method} {path}: {error} in {json:#}");
        }
    }

    /// The document's description of a path.
    fn operation(&self, method: &Method, path: &str) -> Option<&Value> {
        let path = format!("/api/v1{}", path.split('?').next().unwrap());
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |known: &&String| {
            let known: Vec<&str> = known.split('/').collect();
            let alike = |(a, b): (&&str, &&str)| a == b || b.starts_with('{');
            known.len() == parts.len() && parts.iter().zip(&known).all(alike)
        };
        let paths = self.document["paths"].as_object()?;
        let exact = paths.keys().find(|known| **known == path);
        let found = exact.or_else(|| paths.keys().find(fits))?;
        paths[found].get(method.as_str().to_lowercase())
    }

    pub(crate) fn paths(&self) -> Vec<(String, String)> {
        let paths = self.document["paths"].as_object().unwrap();
        let methods = |(path, it): (&String, &Value)| {
            let methods: Vec<_> = it.as_object().unwrap().keys().cloned().collect();
            let path = path.strip_prefix("/api/v1").unwrap().to_owned();
            methods.into_iter().map(move |method| (method, path.clone())).collect::<Vec<_>>()
        };
        paths.iter().flat_map(methods).collect()
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> std::path::PathBuf {
        self.folder.path().join("home")
    }

    /// The folder of the store.
    pub(crate) fn store(&self) -> std::path::PathBuf {
        self.folder.path().join("work").join(stepwell::store::STORE_FOLDER)
    }

    /// A session of two steps, the second of which asks before it runs a command.
    pub(crate) fn session(&self) -> SessionId {
        let session = self.well.create(self.well.draft("fix the <b>login</b>")).unwrap();
        let id = session.id().clone();
        session.append(Message::user("fix the login")).unwrap();
        session
            .step([
                Message::assistant("I look.").calling("c1", "read_file", r#"{"path":"a.rs"}"#),
                Message::tool_result("c1", "fn login() {}"),
            ])
            .unwrap();
        session.append(gate("ask-1")).unwrap();
        session.finish(Status::Paused, None).unwrap();
        id
    }
}

/// An approval of a command.
pub(crate) fn gate(id: &str) -> Gate {
    let call = AskedCall {
        tool: "run_command".to_owned(),
        effect: Effect::Unsafe,
        arguments: r#"{"command":"make"}"#.to_owned(),
        detail: None,
        choices: Vec::new(),
        holds_secret: false,
    };
    Gate { call: Some(Box::new(call)), ..Gate::new(id, "run make?") }
}

fn media(response: &Response) -> Option<&str> {
    response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok())
}

fn is_json(response: &Response) -> bool {
    media(response).is_some_and(|media| media.contains("json"))
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        self.shutdown.ask();
    }
}
