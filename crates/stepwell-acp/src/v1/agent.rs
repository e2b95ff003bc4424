//! The agent's side of a connection: which request does what.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use stepwell::model::{Change, Edited};
use stepwell::sqlite::Access;
use stepwell::{ErrorKind as StoreErrorKind, SessionId};
use stepwell_runtime::{Error, ForkRequest, Notices, Runtime, ToldOnce};
use stepwell_workspace::other_sessions;
use tokio::task::block_in_place;

use crate::peer::Peer;
use crate::rpc::{Id, Result, RpcError};
use crate::setup::Setup;
use crate::turn::{Brought, Conversation, Input, TurnEvent, runtime_notice};

use super::brought::{brought, check_folder};
use super::client::Client;
use super::extension::{self, Target};
use super::fault::{failed, is_no_id, session_id};
use super::input::{
    CancelRequest, Initialize, ListSessions, NewSession, OldSession, OneSession, SetMode,
    SetOption, SetTitle, read,
};
use super::open::Open;
use super::open_prompts::Prompts;
use super::{hello, list, options};

/// The tag of sessions that a client archived.
const ARCHIVED: &str = "archived";

/// The agent's side of a connection.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(super) client: Arc<Client>,
    setup: Setup,
    open: Mutex<HashMap<String, Arc<Open>>>,
    pub(super) prompts: Prompts,
}

/// What follows an answer.
enum After {
    /// A session was made or opened, for a folder.
    Opened(Arc<Open>, PathBuf),
    /// Nothing.
    Nothing,
}

impl Agent {
    pub(crate) fn new(peer: Peer, setup: Setup) -> Arc<Self> {
        let (client, open) = (Arc::new(Client::new(peer)), Mutex::default());
        Arc::new(Self { client, setup, open, prompts: Prompts::default() })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.open.lock()
    }

    /// Fails if the client has not said hello.
    pub(super) fn check_greeted(&self) -> Result<()> {
        match self.client.has_greeted() {
            true => Ok(()),
            false => Err(RpcError::invalid_request("`initialize` comes first")),
        }
    }

    /// Sees to a request.
    pub(crate) async fn request(self: &Arc<Self>, id: Id, method: String, params: Value) {
        if method == "session/prompt" {
            return self.prompt(id, params);
        }
        match self.answer(&method, params).await {
            Ok((answer, after)) => {
                self.client.peer.respond(&id, Ok(answer));
                let After::Opened(open, folder) = after else { return };
                open.tell_commands(&self.client);
                block_in_place(|| {
                    open.tell_root(&self.client, &folder);
                    open.tell_waiting(&self.client);
                    // Watched first, so that nobody who begins now is missed.
                    open.watch(&self.client);
                    open.follow(&self.client);
                });
            }
            Err(error) => self.client.peer.respond(&id, Err(error)),
        }
    }

    /// Sees to a notification. What is not known is nothing.
    pub(crate) fn notified(&self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                let Ok(OneSession { session_id }) = read(params) else { return };
                self.prompts.cancel(|session| session == session_id);
                let open = self.sessions().get(&session_id).cloned();
                if let Some(running) = open.and_then(|open| open.running()) {
                    running.send(Input::Cancel);
                }
            }
            "$/cancel_request" => {
                let Ok(CancelRequest { request_id }) = read(params) else { return };
                self.prompts.withdraw(&request_id);
            }
            _ => {}
        }
    }

    /// The client is gone: what runs for it is recorded as interrupted, or paused at its question.
    pub(crate) async fn leave(&self) {
        self.client.peer.gone();
        self.prompts.cancel(|_| true);
        let open: Vec<Arc<Open>> = self.sessions().drain().map(|(_, open)| open).collect();
        for open in open {
            open.leave().await;
        }
        self.prompts.answered(|_| true).await;
    }

    async fn answer(self: &Arc<Self>, method: &str, params: Value) -> Result<(Value, After)> {
        if method == "initialize" {
            return self.initialize(params).map(|answer| (answer, After::Nothing));
        }
        self.check_greeted()?;
        let answer = match method {
            "session/new" => return block_in_place(|| self.new_session(read(params)?)),
            "session/load" => return block_in_place(|| self.load(read(params)?)),
            "session/resume" => return block_in_place(|| self.resume(read(params)?)),
            "session/list" => block_in_place(|| self.list(&read(params)?))?,
            "session/close" => self.close(&read(params)?).await?,
            "session/delete" => self.delete(&read(params)?).await?,
            "session/set_mode" => block_in_place(|| self.set_mode(&read(params)?))?,
            "session/set_config_option" => block_in_place(|| self.set_option(&read(params)?))?,
            "authenticate" => {
                return Err(RpcError::invalid_params("there is nothing to authenticate with"));
            }
            method if extension::METHODS.contains(&method) => {
                block_in_place(|| self.extension(method, params))?
            }
            method if self.setup.unstable => {
                return block_in_place(|| self.unstable(method, params));
            }
            method => return Err(RpcError::method_not_found(method)),
        };
        Ok((answer, After::Nothing))
    }

    fn initialize(&self, params: Value) -> Result<Value> {
        // Whatever version is asked for, the answer is the one that we speak.
        let Initialize { protocol_version, client_capabilities } = read(params)?;
        if !protocol_version.is_u64() {
            return Err(RpcError::invalid_params("`protocolVersion` is no whole number"));
        }
        self.client.greet(client_capabilities);
        Ok(hello::answer(&self.setup))
    }

    fn extension(&self, method: &str, params: Value) -> Result<Value> {
        let asked = extension::Asked::read(method, params)?;
        let runtime = match asked.place() {
            Target::Folder(folder) => self.runtime_in(folder, None)?,
            Target::Session(session) => self.runtime_of(session)?,
        };
        asked.answer(&runtime)
    }

    /// A runtime in a folder; of a session that lies in another store of the user's, there.
    fn runtime_in(&self, cwd: Option<&Path>, session: Option<&str>) -> Result<Runtime> {
        if let Some(cwd) = cwd.filter(|cwd| !cwd.is_absolute()) {
            let why = format!("`cwd` is no absolute path: {}", cwd.display());
            return Err(RpcError::invalid_params(why));
        }
        let runtime = self.setup.runtime(cwd, session);
        runtime.map_err(|error| RpcError::invalid_params(error.to_string()))
    }

    /// A runtime in the folder of a session that is open, or is found in the user's stores.
    fn runtime_of(&self, session: &str) -> Result<Runtime> {
        let open = self.sessions().get(session).cloned();
        match open {
            Some(open) => Ok(open.conversation.runtime().clone()),
            None => self.runtime_in(None, Some(session)),
        }
    }

    /// A session that is open.
    pub(super) fn opened(&self, session: &str) -> Result<Arc<Open>> {
        let open = self.sessions().get(session).cloned();
        open.ok_or_else(|| RpcError::not_found(format!("no session {session:?} is open")))
    }

    /// Opens a session, in place of what was open under its name, unless a run goes on in that.
    fn open(&self, id: SessionId, runtime: Runtime, brought: Brought) -> Arc<Open> {
        let name = id.to_string();
        let before = self.sessions().get(&name).cloned();
        if let Some(before) = before.filter(|open| open.running().is_some()) {
            return before;
        }
        let (client, told, known) = (Arc::clone(&self.client), name.clone(), ToldOnce::default());
        let runtime = runtime.telling(Notices::to(move |notice| {
            if known.is_news(notice) {
                client.tell(&told, &TurnEvent::Notice(runtime_notice(notice)));
            }
        }));
        let open = Open::new(Conversation::new(id, runtime, brought));
        if let Some(before) = self.sessions().insert(name, Arc::clone(&open)) {
            // Nothing runs in it; its servers end.
            tokio::spawn(async move { before.leave().await });
        }
        open
    }

    fn new_session(&self, asked: NewSession) -> Result<(Value, After)> {
        check_folder("`cwd`", &asked.cwd)?;
        let runtime = self.runtime_in(Some(&asked.cwd), None)?;
        let brought = brought(asked.mcp_servers, asked.additional_directories, &asked.cwd)?;
        // It is recorded with its first prompt: a window that is opened and closed leaves nothing.
        let id = runtime.new_session_id().map_err(|error| failed(&error))?;
        let open = self.open(id, runtime, brought);
        let answer = json!({
            "sessionId": open.name(),
            "modes": options::modes(&open.conversation)?,
            "configOptions": options::options(&open.conversation)?,
        });
        Ok((answer, After::Opened(open, asked.cwd)))
    }

    fn old_session(&self, asked: OldSession) -> Result<Arc<Open>> {
        let runtime = self.runtime_in(Some(&asked.cwd), Some(&asked.session_id))?;
        let brought = brought(asked.mcp_servers, asked.additional_directories, &asked.cwd)?;
        let absent = || RpcError::not_found(format!("there is no session {:?}", asked.session_id));
        let id: SessionId = asked.session_id.parse().map_err(|_| absent())?;
        let well = runtime.workspace().open_if_present().map_err(|error| failed(&error.into()))?;
        match well.map(|well| well.info(&id)) {
            Some(Ok(info)) if info.trashed_at.is_none() => Ok(self.open(id, runtime, brought)),
            Some(Ok(_)) => Err(absent()),
            Some(Err(error)) if error.kind() != StoreErrorKind::Absent => {
                Err(failed(&error.into()))
            }
            // It may be another agent's that was listed, and is imported now.
            _ => match other_sessions::import(runtime.workspace(), &id)
                .map_err(|error| failed(&error.into()))?
            {
                Some(id) => Ok(self.open(id, runtime, brought)),
                None => Err(absent()),
            },
        }
    }

    fn load(&self, asked: OldSession) -> Result<(Value, After)> {
        let folder = asked.cwd.clone();
        let open = self.old_session(asked)?;
        open.tell_history(&self.client).map_err(|error| failed(&error))?;
        Ok((self.settings(&open)?, After::Opened(open, folder)))
    }

    fn resume(&self, asked: OldSession) -> Result<(Value, After)> {
        let folder = asked.cwd.clone();
        let open = self.old_session(asked)?;
        let head = open.conversation.head().map_err(|error| failed(&error))?;
        if let Some(head) = head.filter(|_| open.running().is_none()) {
            open.conversation.set_told(head.seq);
        }
        Ok((self.settings(&open)?, After::Opened(open, folder)))
    }

    fn settings(&self, open: &Open) -> Result<Value> {
        let on = &open.conversation;
        Ok(json!({"modes": options::modes(on)?, "configOptions": options::options(on)?}))
    }

    fn list(&self, asked: &ListSessions) -> Result<Value> {
        let runtime = self.runtime_in(asked.cwd.as_deref(), None)?;
        list::list(&runtime, asked.cwd.as_deref(), asked.cursor.as_deref())
    }

    async fn close(&self, OneSession { session_id }: &OneSession) -> Result<Value> {
        let open = self.opened(session_id)?;
        self.prompts.cancel(|session| session == session_id);
        open.leave().await;
        self.prompts.answered(|session| session == session_id).await;
        self.sessions().remove(session_id);
        Ok(json!({}))
    }

    async fn delete(&self, OneSession { session_id }: &OneSession) -> Result<Value> {
        let runtime = block_in_place(|| self.runtime_of(session_id))?;
        let open = self.sessions().remove(session_id);
        if let Some(open) = open {
            self.prompts.cancel(|session| session == session_id);
            open.leave().await;
            self.prompts.answered(|session| session == session_id).await;
        }
        let delete = || {
            let id = super::fault::session_id(session_id)?;
            let Some(well) = runtime.workspace().open_if_present()? else { return Ok(()) };
            match well.info(&id) {
                Ok(info) if info.trashed_at.is_some() => return Ok(()),
                Err(error) if error.kind() == StoreErrorKind::Absent => return Ok(()),
                found => drop(found?),
            }
            let well = runtime.workspace().open_existing(Access::Write)?;
            let removal = well.delete_all(&[id], &|_| true)?;
            match removal.left.into_iter().next() {
                Some((_, error)) => Err(error.into()),
                None => Ok(()),
            }
        };
        let deleted: Result<(), Error> = block_in_place(delete);
        match deleted {
            Ok(()) => Ok(json!({})),
            // What has no name of a session was never there.
            Err(error) if is_no_id(&error) => Ok(json!({})),
            Err(error) => Err(failed(&error)),
        }
    }

    fn set_mode(&self, asked: &SetMode) -> Result<Value> {
        let open = self.opened(&asked.session_id)?;
        options::choose(&open.conversation, "mode", &asked.mode_id)?;
        self.tell_options(&open)?;
        Ok(json!({}))
    }

    fn set_option(&self, asked: &SetOption) -> Result<Value> {
        let open = self.opened(&asked.session_id)?;
        let Some(value) = asked.value.as_str() else {
            return Err(RpcError::invalid_params("`value` is no text"));
        };
        options::choose(&open.conversation, &asked.config_id, value)?;
        if asked.config_id == "mode" {
            self.tell_mode(&open, value);
        }
        Ok(json!({"configOptions": options::options(&open.conversation)?}))
    }

    pub(super) fn tell_mode(&self, open: &Open, mode: &str) {
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode});
        open.send(&self.client, &update);
    }

    pub(super) fn tell_options(&self, open: &Open) -> Result<()> {
        let options = options::options(&open.conversation)?;
        let update = json!({"sessionUpdate": "config_option_update", "configOptions": options});
        open.send(&self.client, &update);
        Ok(())
    }

    /// Methods that the protocol may still change.
    fn unstable(&self, method: &str, params: Value) -> Result<(Value, After)> {
        let edit = |session: &str, edited: Edited| {
            let runtime = self.runtime_of(session)?;
            let edit = || {
                let id = session_id(session)?;
                runtime.workspace().open_existing(Access::Write)?.edit(&id, edited)?;
                Ok(json!({}))
            };
            edit().map_err(|error: Error| failed(&error))
        };
        let tags = || BTreeSet::from([ARCHIVED.to_owned()]);
        let answer = match method {
            "session/fork" => return self.fork(read(params)?),
            "session/set_title" => {
                let SetTitle { session_id, title } = read(params)?;
                let label = title.map_or(Change::Clear, Change::Set);
                edit(&session_id, Edited { label, ..Edited::default() })?
            }
            "session/archive" => {
                let OneSession { session_id } = read(params)?;
                edit(&session_id, Edited { tag: tags(), ..Edited::default() })?
            }
            "session/unarchive" => {
                let OneSession { session_id } = read(params)?;
                edit(&session_id, Edited { untag: tags(), ..Edited::default() })?
            }
            method => return Err(RpcError::method_not_found(method)),
        };
        Ok((answer, After::Nothing))
    }

    fn fork(&self, asked: OldSession) -> Result<(Value, After)> {
        let runtime = self.runtime_in(Some(&asked.cwd), Some(&asked.session_id))?;
        let brought = brought(asked.mcp_servers, asked.additional_directories, &asked.cwd)?;
        let fork = || {
            let session = session_id(&asked.session_id)?;
            runtime.fork(&ForkRequest { session, at: None, label: None })
        };
        let forked = fork().map_err(|error| failed(&error))?;
        let open = self.open(forked.session, runtime, brought);
        let mut answer = self.settings(&open)?;
        answer["sessionId"] = json!(open.name());
        open.conversation.set_told(forked.at);
        Ok((answer, After::Opened(open, asked.cwd)))
    }
}
