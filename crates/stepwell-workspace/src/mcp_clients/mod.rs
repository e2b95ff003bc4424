//! Other agents' settings: our MCP server's entry in them, and everything else left as its owner
//! wrote it, comments included.
//!
//! An entry is put in as one piece of text, and what was put in is remembered. So taking it out
//! gives the file back byte for byte, unless someone changed the file since; then the entry alone
//! is taken out.

mod jsonc;
mod receipt;
mod toml_text;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use stepwell::Remedy;
use stepwell_postgres::Address;

use self::jsonc::Document;
use self::receipt::Receipt;
use self::toml_text::TomlText;
use crate::atomic_file::replace_users_file;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::workspace::{Workspace, no_folder};

/// What the server is called in other agents' settings.
const NAME: &str = "stepwell";

/// An agent that uses MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpClient {
    /// Claude Code: `.mcp.json` in the workspace.
    Claude,
    /// Codex: `config.toml` in its folder in the user's home.
    Codex,
    /// Gemini CLI: `.gemini/settings.json` in the workspace.
    Gemini,
    /// opencode: `opencode.json` or `opencode.jsonc` in the workspace.
    Opencode,
    /// Zed: `.zed/settings.json` in the workspace.
    Zed,
}

/// An editor, or another client, that uses agents of the Agent Client Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcpClient {
    /// Zed: `settings.json` in the user's configuration.
    Zed,
    /// The IDEs of `JetBrains`: `.jetbrains/acp.json` in the home folder.
    Jetbrains,
    /// acpx: `.acpx/config.json` in the user's home.
    Acpx,
}

/// Whose settings an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Mcp(McpClient),
    Acp(AcpClient),
}

/// A change of an agent's settings that is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// The file.
    pub path: PathBuf,
    /// The piece of text that comes in or goes out.
    pub piece: String,
    /// What the file holds now; none, if it is not there.
    before: Option<String>,
    /// What it is to hold; none, if it is to go.
    after: Option<String>,
    /// Where the piece stands.
    offset: usize,
    receipt: PathBuf,
}

/// What is to be changed so that an agent uses `stepwell` with these arguments; none, if it
/// does already.
///
/// # Errors
/// If the settings cannot be read, or hold another server of that name.
pub fn plan_mcp_install(
    workspace: &Workspace,
    client: McpClient,
    arguments: &[String],
) -> Result<Option<SettingsChange>> {
    plan_install(workspace, Target::Mcp(client), arguments)
}

/// The same for a client that uses agents, as which `stepwell` is added.
///
/// # Errors
/// As [`plan_mcp_install`].
pub fn plan_acp_install(
    workspace: &Workspace,
    client: AcpClient,
    arguments: &[String],
) -> Result<Option<SettingsChange>> {
    plan_install(workspace, Target::Acp(client), arguments)
}

/// A server's arguments, with the store that the user named, if any: its folder, or the address
/// of a team's.
///
/// # Errors
/// If the address holds a password: other programs' settings are read, copied and committed.
pub fn with_store(mut arguments: Vec<String>, named: Option<&Path>) -> Result<Vec<String>> {
    let Some(named) = named else { return Ok(arguments) };
    let text = named.to_string_lossy().trim().to_owned();
    let store = match Address::of_store(&text).map_err(Error::Address)? {
        Some(address) if address.password().is_some() => {
            let why = "the store's address has a password, which does not belong in another \
                       program's settings; leave it out and set PGPASSWORD where the server \
                       is started, or keep the address in your own settings";
            let remedy = Remedy::SetVariable("PGPASSWORD".to_owned());
            return Err(Error::invalid(why).helped_by(remedy));
        }
        Some(_) => text,
        None => {
            let folder = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
            folder.display().to_string()
        }
    };
    arguments.extend(["--store".to_owned(), store]);
    Ok(arguments)
}

fn plan_install(
    workspace: &Workspace,
    client: Target,
    arguments: &[String],
) -> Result<Option<SettingsChange>> {
    let (path, receipt) = (settings_file(workspace, client)?, receipt_file(workspace, client)?);
    if path.starts_with(&workspace.place.root) {
        stepwell::store::refuse_links_below(&workspace.place.root, &path)?;
    }
    let before = read(&path)?;
    let text = before.as_deref().unwrap_or_default();
    let unfit = |why: String| unfit(&path, &why);
    let found = client.entry(text).map_err(unfit)?;
    let wanted = client.settings(&own_command(&workspace.host), arguments);
    match found {
        Some(found) if found == wanted => return Ok(None),
        Some(_) => {
            let why = format!("it has an entry {NAME:?} with other settings");
            return Err(unfit(why));
        }
        None => {}
    }
    let (offset, piece) = client.piece(text, &wanted).map_err(unfit)?;
    let after = format!("{}{piece}{}", &text[..offset], &text[offset..]);
    // What comes out must say what was meant, whatever stood there before.
    let is_added = client.entry(&after).map_err(unfit)?.as_ref() == Some(&wanted);
    if !is_added || !client.is_alike(text, &after).map_err(unfit)? {
        return Err(unfit("there is no place in it where the server can be added".to_owned()));
    }
    Ok(Some(SettingsChange { path, piece, before, after: Some(after), offset, receipt }))
}

/// What other programs start us with: our plain name, if the PATH leads from it to this program;
/// else this program's own path. A relative folder of the PATH does not count: the other program
/// starts in another folder.
fn own_command(host: &Host) -> String {
    let running = host.program.as_ref().and_then(|it| fs::canonicalize(it).ok());
    let Some(running) = running else { return NAME.to_owned() };
    let path = host.variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join(NAME)).find(|file| file.is_file());
    match found.and_then(|file| fs::canonicalize(file).ok()) == Some(running.clone()) {
        true => NAME.to_owned(),
        false => running.display().to_string(),
    }
}

/// What is to be changed so that an agent no longer uses our server; none, if it does not.
///
/// # Errors
/// If the settings cannot be read.
pub fn plan_mcp_uninstall(
    workspace: &Workspace,
    client: McpClient,
) -> Result<Option<SettingsChange>> {
    plan_uninstall(workspace, Target::Mcp(client))
}

/// The same for a client that uses agents.
///
/// # Errors
/// If the settings cannot be read.
pub fn plan_acp_uninstall(
    workspace: &Workspace,
    client: AcpClient,
) -> Result<Option<SettingsChange>> {
    plan_uninstall(workspace, Target::Acp(client))
}

fn plan_uninstall(workspace: &Workspace, client: Target) -> Result<Option<SettingsChange>> {
    let (path, receipt) = (settings_file(workspace, client)?, receipt_file(workspace, client)?);
    let Some(before) = read(&path)? else { return Ok(None) };
    let unfit = |why: String| unfit(&path, &why);
    if client.entry(&before).map_err(unfit)?.is_none() {
        return Ok(None);
    }
    if let Some((offset, piece, after)) = Receipt::read(&receipt).and_then(|it| it.undo(&before)) {
        let before = Some(before);
        return Ok(Some(SettingsChange { path, piece, before, after, offset, receipt }));
    }
    let places = client.places(&before).map_err(unfit)?;
    let piece: String = places.iter().map(|place| &before[place.clone()]).collect();
    let (offset, after) = (places[0].start, without(&before, &places));
    // What comes out must say what was meant, and all that others wrote.
    let is_gone = client.entry(&after).map_err(unfit)?.is_none();
    if !is_gone || !client.is_alike(&before, &after).map_err(unfit)? {
        return Err(unfit("the server cannot be taken out of it; do it by hand".to_owned()));
    }
    let (before, after) = (Some(before), Some(after));
    Ok(Some(SettingsChange { path, piece, before, after, offset, receipt }))
}

fn settings_file(workspace: &Workspace, client: Target) -> Result<PathBuf> {
    let root = &workspace.place.root;
    let home = || workspace.host.home.as_ref().ok_or_else(no_folder);
    Ok(match client {
        Target::Mcp(McpClient::Claude) => root.join(".mcp.json"),
        Target::Mcp(McpClient::Gemini) => root.join(".gemini/settings.json"),
        Target::Mcp(McpClient::Opencode) => opencodes(root, client),
        Target::Mcp(McpClient::Zed) => root.join(".zed/settings.json"),
        Target::Mcp(McpClient::Codex) => {
            let named = workspace.host.variable("CODEX_HOME").map(PathBuf::from);
            let usual = workspace.host.home.as_ref().map(|home| home.join(".codex"));
            named.or(usual).ok_or_else(no_folder)?.join("config.toml")
        }
        Target::Acp(AcpClient::Zed) => {
            let named = workspace.host.variable("XDG_CONFIG_HOME").map(PathBuf::from);
            let usual = || Ok::<_, Error>(home()?.join(".config"));
            named.map_or_else(usual, Ok)?.join("zed/settings.json")
        }
        Target::Acp(AcpClient::Jetbrains) => home()?.join(".jetbrains/acp.json"),
        Target::Acp(AcpClient::Acpx) => home()?.join(".acpx/config.json"),
    })
}

fn receipt_file(workspace: &Workspace, client: Target) -> Result<PathBuf> {
    let state = workspace.host.state.as_ref().ok_or_else(no_folder)?;
    Ok(Receipt::file(state, &settings_file(workspace, client)?))
}

impl SettingsChange {
    /// Makes the change, unless the file changed since it was planned.
    ///
    /// # Errors
    /// If it cannot be written. It is then as it was.
    pub fn apply(&self) -> Result<()> {
        if read(&self.path)? != self.before {
            return Err(unfit(&self.path, "it changed meanwhile; nothing was done"));
        }
        let failed = |doing| Error::file(&self.path, doing);
        match &self.after {
            Some(after) => {
                let folder = self.path.parent().map_or(Ok(()), fs::create_dir_all);
                folder.map_err(failed("making its folder"))?;
                replace_users_file(&self.path, after).map_err(failed("writing it"))?;
            }
            None => fs::remove_file(&self.path).map_err(failed("removing it"))?,
        }
        // Without a receipt the entry alone is taken out later.
        let is_install = self.after.as_ref().is_some_and(|after| {
            self.before.as_ref().is_none_or(|before| before.len() < after.len())
        });
        match (is_install, &self.after) {
            (true, Some(after)) => {
                Receipt::new(self.before.as_deref(), after, self.offset, &self.piece)
                    .write(&self.receipt);
            }
            _ => drop(fs::remove_file(&self.receipt)),
        }
        Ok(())
    }

    /// Is the file made by this, or removed?
    #[must_use]
    pub const fn is_whole_file(&self) -> bool {
        self.before.is_none() || self.after.is_none()
    }
}

/// The file of opencode's in a folder: the one that has our entry, else the one that is there. It
/// reads both.
fn opencodes(root: &Path, client: Target) -> PathBuf {
    let both = ["opencode.json", "opencode.jsonc"].map(|name| root.join(name));
    let has_entry = |path: &&PathBuf| {
        let text = read(path).ok().flatten().unwrap_or_default();
        matches!(client.entry(&text), Ok(Some(_)))
    };
    let found = both.iter().find(has_entry).or_else(|| both.iter().find(|path| path.exists()));
    found.unwrap_or(&both[0]).clone()
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path, "reading it")(error)),
    }
}

fn unfit(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{}: {why}; it was left as it is", path.display()))
}

impl Target {
    /// Where in its settings servers or agents stand.
    const fn section(self) -> &'static str {
        match self {
            Self::Mcp(McpClient::Claude | McpClient::Gemini) => "mcpServers",
            Self::Mcp(McpClient::Codex) => "mcp_servers",
            Self::Mcp(McpClient::Opencode) => "mcp",
            Self::Mcp(McpClient::Zed) => "context_servers",
            Self::Acp(AcpClient::Zed | AcpClient::Jetbrains) => "agent_servers",
            Self::Acp(AcpClient::Acpx) => "agents",
        }
    }

    /// What our entry says.
    fn settings(self, program: &str, arguments: &[String]) -> Value {
        match self {
            Self::Mcp(McpClient::Opencode) => {
                let command: Vec<&str> =
                    [program].into_iter().chain(arguments.iter().map(String::as_str)).collect();
                json!({ "type": "local", "command": command, "enabled": true })
            }
            Self::Acp(AcpClient::Zed) => {
                json!({ "type": "custom", "command": program, "args": arguments, "env": {} })
            }
            _ => json!({ "command": program, "args": arguments }),
        }
    }

    /// Our entry in a file's text, if it is there.
    fn entry(self, text: &str) -> Result<Option<Value>, String> {
        match self {
            Self::Mcp(McpClient::Codex) => Ok(TomlText::read(text)?.entry(self.section(), NAME)),
            _ => Document::read(text)?.entry(self.section(), NAME),
        }
    }

    /// Do two texts say the same, but for our entry? JSON's comments count as well; of TOML only
    /// whole lines of ours are taken out.
    fn is_alike(self, one: &str, other: &str) -> Result<bool, String> {
        let section = self.section();
        let (mut all, comments) = match self {
            Self::Mcp(McpClient::Codex) => {
                ([TomlText::read(one)?.all(), TomlText::read(other)?.all()], true)
            }
            _ => {
                let (one, other) = (Document::read(one)?, Document::read(other)?);
                let kept = one.comments(section, NAME)? == other.comments(section, NAME)?;
                ([one.all(), other.all()], kept)
            }
        };
        all.iter_mut().for_each(|settings| forget(settings, section, NAME));
        Ok(comments && all[0] == all[1])
    }

    /// Where our entry is put in, and as which text.
    fn piece(self, text: &str, settings: &Value) -> Result<(usize, String), String> {
        match self {
            Self::Mcp(McpClient::Codex) => {
                Ok(TomlText::read(text)?.insertion(self.section(), NAME, settings))
            }
            _ => Document::read(text)?.insertion(self.section(), NAME, settings),
        }
    }

    /// Where our entry stands in a text, with what only separates it from the others.
    fn places(self, text: &str) -> Result<Vec<Range<usize>>, String> {
        match self {
            Self::Mcp(McpClient::Codex) => TomlText::read(text)?.removal(self.section(), NAME),
            _ => Document::read(text)?.removal(self.section(), NAME),
        }
    }
}

/// A text without some stretches of it, which are given in order.
fn without(text: &str, places: &[Range<usize>]) -> String {
    let (mut rest, mut at) = (String::new(), 0);
    for place in places {
        rest.push_str(&text[at..place.start]);
        at = place.end;
    }
    rest + &text[at..]
}

/// Takes an entry out of settings, and its section if that holds no other.
fn forget(settings: &mut Value, section: &str, name: &str) {
    let Some(all) = settings.as_object_mut() else { return };
    if let Some(section) = all.get_mut(section).and_then(Value::as_object_mut) {
        section.remove(name);
    }
    if all.get(section).and_then(Value::as_object).is_some_and(Map::is_empty) {
        all.remove(section);
    }
}
