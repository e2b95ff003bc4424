//! A client over two pipes, which says exactly what it is told to.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use stepwell_acp::{Setup, serve};
use stepwell_runtime::Runtime;
use stepwell_workspace::{Host, Notices, Wanted, Workspace};
use tempfile::TempDir;

/// A folder with a store and a model that says what a script says.
pub(crate) struct TestEnv {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

impl TestEnv {
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let path = root.join("script.yaml");
        std::fs::write(&path, script).unwrap();
        let settings = format!("[model]\nname = \"script:{}\"\n", path.display());
        std::fs::write(root.join("stepwell.toml"), settings).unwrap();
        Self { folder, variables: BTreeMap::new() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    /// With a home folder, in which other agents' sessions are looked for or not.
    pub(crate) fn with_home(self, index: bool) -> Self {
        let config = self.root().join("home/.config/stepwell");
        std::fs::create_dir_all(&config).unwrap();
        let settings = format!("[other_agents]\nindex = {index}\n");
        std::fs::write(config.join("config.toml"), settings).unwrap();
        self
    }

    /// With a model that streams its answers from an address.
    pub(crate) fn with_provider(mut self, address: &str, key: &str) -> Self {
        let config = self.root().join("home/.config/stepwell");
        std::fs::create_dir_all(&config).unwrap();
        let settings = format!(
            "[providers.local]\nbase_url = \"{address}\"\nprotocol = \"openai\"\nkey_env = \"LOCAL_KEY\"\n"
        );
        std::fs::write(config.join("config.toml"), settings).unwrap();
        let model = "[model]\nname = \"local/large\"\n";
        std::fs::write(self.root().join("stepwell.toml"), model).unwrap();
        self.variables.insert("LOCAL_KEY".to_owned(), key.to_owned());
        self
    }

    fn host(&self) -> (Host, Wanted) {
        self.host_in(self.root())
    }

    fn host_in(&self, folder: PathBuf) -> (Host, Wanted) {
        let root = self.root();
        let home = Some(root.join("home")).filter(|home| home.is_dir());
        let host = Host {
            folder: Some(folder.clone()),
            environment: Arc::new(self.variables.clone()),
            state: Some(root.join("state")),
            config: home.as_ref().map(|home| home.join(".config/stepwell")),
            home,
            ..Host::bare()
        };
        (host, Wanted { folder: Some(folder), ..Wanted::default() })
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.runtime_in(self.root())
    }

    /// The same user's runtime in another folder.
    pub(crate) fn runtime_in(&self, folder: PathBuf) -> Runtime {
        let (host, wanted) = self.host_in(folder);
        Runtime::new(Workspace::locate(host, wanted, Notices::to_nobody()).unwrap())
    }

    /// A client that has not said anything yet.
    pub(crate) fn client(&self) -> Client {
        let (input, to) = pipe().unwrap();
        let (from, output) = pipe().unwrap();
        let (host, wanted) = self.host();
        let version = "0".to_owned();
        let setup = Setup { host, wanted, supervisor: None, unstable: true, version };
        let server = std::thread::spawn(move || {
            let mut tokio = tokio::runtime::Builder::new_multi_thread();
            let tokio = tokio.worker_threads(2).enable_all().build().unwrap();
            tokio.block_on(serve(setup, input, output, std::future::pending())).unwrap();
            tokio.shutdown_background();
        });
        let from = BufReader::new(from);
        Client { to: Some(to), from, server, last: 0, heard: Vec::new() }
    }

    /// A client that said hello.
    pub(crate) fn greeted(&self, capabilities: &Value) -> Client {
        let mut client = self.client();
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        assert_eq!(client.ask("initialize", &hello).unwrap()["protocolVersion"], 1);
        client
    }
}

pub(crate) struct Client {
    to: Option<PipeWriter>,
    from: BufReader<PipeReader>,
    server: JoinHandle<()>,
    last: i64,
    /// Notifications and requests that came meanwhile.
    pub(crate) heard: Vec<Value>,
}

impl Client {
    /// Sends a line as it is.
    pub(crate) fn send(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n")).unwrap();
    }

    /// Sends a request; the answer is waited for elsewhere.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.last += 1;
        let id = self.last;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    pub(crate) fn answer(&mut self, request: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
    }

    /// The next message; none, if the server is gone.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.from.read_line(&mut line).unwrap() {
            0 => None,
            _ => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// Waits for a message, and keeps what comes before it.
    pub(crate) fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().unwrap();
            if is_it(&message) {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn answered(&mut self, id: i64) -> Result<Value, i64> {
        let answer = self.answer_of(id);
        match answer.get("error") {
            Some(error) => Err(error["code"].as_i64().unwrap()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// The same, as it came.
    pub(crate) fn answer_of(&mut self, id: i64) -> Value {
        let is_it = |it: &Value| it.get("method").is_none() && it["id"] == id;
        let before = self.heard.iter().position(is_it).map(|at| self.heard.remove(at));
        before.unwrap_or_else(|| self.wait(is_it))
    }

    /// Hears more until the model has said so much.
    pub(crate) fn until_said(&mut self, text: &str) {
        while self.said("agent_message_chunk") != text {
            let message = self.next().unwrap();
            self.heard.push(message);
            let said = self.said("agent_message_chunk");
            assert!(text.starts_with(&said), "{said:?}");
        }
    }

    /// Says something in words of its own, and waits for the end of the turn: what was told of it.
    pub(crate) fn says(&mut self, session: &str, text: &str) -> String {
        let before = self.said("agent_message_chunk").len();
        let prompt = self.prompt(session, text);
        assert_eq!(self.answered(prompt).unwrap()["stopReason"], "end_turn", "{text}");
        self.said("agent_message_chunk").split_off(before)
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, i64> {
        let id = self.request(method, params);
        self.answered(id)
    }

    pub(crate) fn new_session(&mut self, env: &TestEnv) -> String {
        let made = self.ask("session/new", &json!({"cwd": env.root(), "mcpServers": []})).unwrap();
        made["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// What was said, of a kind.
    pub(crate) fn said(&self, kind: &str) -> String {
        let updates = self.heard.iter().map(|it| &it["params"]["update"]);
        let said = updates.filter(|it| it["sessionUpdate"] == kind);
        said.filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    /// The updates of a kind.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.heard.iter().map(|it| &it["params"]["update"]);
        updates.filter(|it| it["sessionUpdate"] == kind).cloned().collect()
    }

    /// Closes the input; the answer is all that still came.
    pub(crate) fn leave(mut self) -> Vec<Value> {
        self.to = None;
        let mut rest = Vec::new();
        while let Some(message) = self.next() {
            rest.push(message);
        }
        self.server.join().unwrap();
        rest
    }
}
