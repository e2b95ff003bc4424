//! Other agents' settings: our server is added, shown first, and taken out exactly.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stepwell_workspace::mcp_clients::with_store;
use stepwell_workspace::{
    AcpClient, Error, Host, McpClient, Notices, Wanted, Workspace, mcp_clients,
};
use tempfile::TempDir;

const ALL: [(McpClient, &str, &str); 5] = [
    (McpClient::Claude, ".mcp.json", "{\n  \"mcpServers\": {\"other\": {\"command\": \"x\"}}\n}"),
    (
        McpClient::Codex,
        ".codex/config.toml",
        "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"",
    ),
    (McpClient::Gemini, ".gemini/settings.json", "{\"theme\":   \"dark\"}"),
    (McpClient::Opencode, "opencode.json", "{ // mine\n  \"mcp\": {},\n}\n"),
    (McpClient::Zed, ".zed/settings.json", "// Zed\n{\n  \"tab_size\": 2, // two\n}\n"),
];

struct TestEnv {
    folder: TempDir,
    workspace: Workspace,
}

impl TestEnv {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let (home, state) = (Some(root.clone()), Some(root.join("state")));
        let host = Host { home, state, ..Host::bare() };
        let wanted = Wanted { folder: Some(root), ..Wanted::default() };
        let workspace = Workspace::locate(host, wanted, Notices::to_nobody()).unwrap();
        Self { folder, workspace }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn install(&self, client: McpClient) {
        let plan =
            mcp_clients::plan_mcp_install(&self.workspace, client, &["mcp".to_owned()]).unwrap();
        plan.unwrap().apply().unwrap();
    }

    fn uninstall(&self, client: McpClient) {
        mcp_clients::plan_mcp_uninstall(&self.workspace, client).unwrap().unwrap().apply().unwrap();
    }
}

#[test]
fn a_server_is_added_once_and_taken_out_byte_for_byte() {
    for (client, name, theirs) in ALL {
        let env = TestEnv::new();
        let path = env.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, theirs).unwrap();
        let arguments = ["mcp".to_owned()];
        let plan =
            mcp_clients::plan_mcp_install(&env.workspace, client, &arguments).unwrap().unwrap();
        assert!(plan.path.ends_with(name) && plan.piece.contains("stepwell"), "{plan:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), theirs, "a plan changes nothing");
        plan.apply().unwrap();
        let with = fs::read_to_string(&path).unwrap();
        assert!(with.contains(&plan.piece), "{with}");
        assert_eq!(
            mcp_clients::plan_mcp_install(&env.workspace, client, &arguments).unwrap(),
            None
        );
        let other = mcp_clients::plan_mcp_install(&env.workspace, client, &["other".to_owned()]);
        assert!(matches!(other, Err(Error::Refused { .. })), "{other:?}");
        env.uninstall(client);
        assert_eq!(fs::read_to_string(&path).unwrap(), theirs, "{name}");
        assert_eq!(mcp_clients::plan_mcp_uninstall(&env.workspace, client).unwrap(), None);
    }
}

#[test]
fn a_file_that_was_made_for_it_goes_with_it() {
    for (client, name, _) in ALL {
        let env = TestEnv::new();
        env.install(client);
        assert!(env.file(name).exists());
        env.uninstall(client);
        assert!(!env.file(name).exists(), "{name}");
    }
}

#[test]
fn what_someone_added_since_stays_when_the_server_is_taken_out() {
    for (client, name, theirs) in ALL {
        let env = TestEnv::new();
        let path = env.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, theirs).unwrap();
        env.install(client);
        let with = fs::read_to_string(&path).unwrap();
        let comment = if client == McpClient::Codex { "# since\n" } else { "// since\n" };
        // Claude Code's and Gemini's settings have no comments in truth; ours reads them anyway.
        fs::write(&path, format!("{comment}{with}")).unwrap();
        env.uninstall(client);
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(comment) && !after.contains("stepwell"), "{after}");
        let kept = |word: &&str| word.len() > 4;
        for word in theirs.split_whitespace().filter(kept) {
            assert!(after.contains(word.trim_matches(['{', '}', ','])), "{word} is gone: {after}");
        }
    }
}

#[test]
fn settings_that_cannot_be_understood_are_left_alone() {
    for (client, name, _) in ALL {
        let env = TestEnv::new();
        let path = env.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{ \"a\": [1, }\n").unwrap();
        let refused = mcp_clients::plan_mcp_install(&env.workspace, client, &[]);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{name}: {refused:?}");
    }
}

#[test]
fn a_file_that_changed_since_the_plan_is_not_overwritten() {
    let env = TestEnv::new();
    let plan =
        mcp_clients::plan_mcp_install(&env.workspace, McpClient::Claude, &[]).unwrap().unwrap();
    fs::write(env.file(".mcp.json"), "{\"mine\": 1}").unwrap();
    assert!(plan.apply().is_err());
    assert_eq!(fs::read_to_string(env.file(".mcp.json")).unwrap(), "{\"mine\": 1}");
}

#[test]
fn an_agent_is_added_to_editors_and_taken_out_byte_for_byte() {
    let zed = "// Zed\n{\n  \"tab_size\": 2, // two\n}\n";
    for (client, name, theirs, entry) in [
        (AcpClient::Zed, ".config/zed/settings.json", zed, "\"type\":\"custom\""),
        (
            AcpClient::Jetbrains,
            ".jetbrains/acp.json",
            "{\"agent_servers\": {}}",
            "\"agent_servers\"",
        ),
        (
            AcpClient::Acpx,
            ".acpx/config.json",
            "{\"agents\": {\"a\": {\"command\": \"b\"}}}",
            "\"agents\"",
        ),
    ] {
        let env = TestEnv::new();
        let (path, arguments) = (env.file(name), ["acp".to_owned()]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, theirs).unwrap();
        mcp_clients::plan_acp_install(&env.workspace, client, &arguments)
            .unwrap()
            .unwrap()
            .apply()
            .unwrap();
        let with = fs::read_to_string(&path).unwrap();
        assert!(with.contains(entry) && with.contains("[\"acp\"]"), "{with}");
        assert_eq!(
            mcp_clients::plan_acp_install(&env.workspace, client, &arguments).unwrap(),
            None
        );
        mcp_clients::plan_acp_uninstall(&env.workspace, client).unwrap().unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
        assert_eq!(mcp_clients::plan_acp_uninstall(&env.workspace, client).unwrap(), None);
    }
}

/// What a file says after its comments are left out by hand: those of these tests have none.
fn settings(env: &TestEnv, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(env.file(name)).unwrap()).unwrap()
}

#[test]
fn each_client_gets_the_form_that_its_documentation_gives() {
    let server = json!({"command": "stepwell", "args": ["mcp"]});
    let local = json!({"type": "local", "command": ["stepwell", "mcp"], "enabled": true});
    for (client, name, expected) in [
        (McpClient::Claude, ".mcp.json", json!({"mcpServers": {"stepwell": server}})),
        (McpClient::Gemini, ".gemini/settings.json", json!({"mcpServers": {"stepwell": server}})),
        (McpClient::Opencode, "opencode.json", json!({"mcp": {"stepwell": local}})),
        (McpClient::Zed, ".zed/settings.json", json!({"context_servers": {"stepwell": server}})),
    ] {
        let env = TestEnv::new();
        env.install(client);
        assert_eq!(settings(&env, name), expected, "{name}");
    }
    let agent = json!({"command": "stepwell", "args": ["acp"]});
    let custom = json!({"type": "custom", "command": "stepwell", "args": ["acp"], "env": {}});
    for (client, name, expected) in [
        (
            AcpClient::Zed,
            ".config/zed/settings.json",
            json!({"agent_servers": {"stepwell": custom}}),
        ),
        (
            AcpClient::Jetbrains,
            ".jetbrains/acp.json",
            json!({"agent_servers": {"stepwell": agent}}),
        ),
        (AcpClient::Acpx, ".acpx/config.json", json!({"agents": {"stepwell": agent}})),
    ] {
        let env = TestEnv::new();
        let plan =
            mcp_clients::plan_acp_install(&env.workspace, client, &["acp".to_owned()]).unwrap();
        plan.unwrap().apply().unwrap();
        assert_eq!(settings(&env, name), expected, "{name}");
    }
}

#[test]
fn opencodes_other_file_is_used_where_it_is_the_one_that_is_there() {
    let env = TestEnv::new();
    let theirs = "{ // mine\n  \"theme\": \"dark\",\n}\n";
    fs::write(env.file("opencode.jsonc"), theirs).unwrap();
    env.install(McpClient::Opencode);
    assert!(fs::read_to_string(env.file("opencode.jsonc")).unwrap().contains("stepwell"));
    assert!(!env.file("opencode.json").exists());
    // Someone makes the usual one later: the entry is taken out of where it is.
    fs::write(env.file("opencode.json"), "{}").unwrap();
    env.uninstall(McpClient::Opencode);
    assert_eq!(fs::read_to_string(env.file("opencode.jsonc")).unwrap(), theirs);
}

/// Uninstalls from a file that somebody else wrote, so that nothing is remembered of it.
fn taken_out_of(client: McpClient, name: &str, text: &str) -> String {
    let env = TestEnv::new();
    let path = env.file(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    env.uninstall(client);
    fs::read_to_string(path).unwrap()
}

#[test]
fn codex_keeps_its_other_tables_and_comments() {
    let ours = "[mcp_servers.stepwell]\ncommand = \"stepwell\"\nargs = [\"mcp\"]\n";
    let env = "[mcp_servers.stepwell.env]\nSTEPWELL_STORE = \"/x\"\n";
    for rest in [
        "  [other]\n  a = 1\n",
        "# my own notes\n[mcp_servers.other]\ncommand = \"x\"\n",
        "# [mcp_servers.stepwell]\n",
    ] {
        for text in [format!("{ours}{rest}"), format!("{ours}{env}{rest}")] {
            let after = taken_out_of(McpClient::Codex, ".codex/config.toml", &text);
            assert_eq!(after, rest, "{text}");
        }
    }
    let quoted = "[mcp_servers.\"stepwell\"]\ncommand = \"stepwell\"\n";
    assert_eq!(taken_out_of(McpClient::Codex, ".codex/config.toml", quoted), "");
}

#[test]
fn a_codex_entry_with_other_settings_is_not_taken_for_ours() {
    for more in ["enabled = false\n", "[mcp_servers.stepwell.env]\nA = \"b\"\n"] {
        let env = TestEnv::new();
        let text = "[mcp_servers.stepwell]\ncommand = \"stepwell\"\nargs = [\"mcp\"]\n";
        fs::create_dir_all(env.file(".codex")).unwrap();
        fs::write(env.file(".codex/config.toml"), format!("{text}{more}")).unwrap();
        let refused =
            mcp_clients::plan_mcp_install(&env.workspace, McpClient::Codex, &["mcp".to_owned()]);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
}

#[test]
fn zed_keeps_a_server_that_stands_on_our_line() {
    let text = "{\n  \"context_servers\": {\n    // my servers\n    \"stepwell\": {}, \"other\": {}\n  }\n}\n";
    let after = taken_out_of(McpClient::Zed, ".zed/settings.json", text);
    assert_eq!(after, text.replace("\"stepwell\": {}, ", ""));
    let text = "{\"context_servers\": {\n// mine\n\"stepwell\": {} }}";
    let after = taken_out_of(McpClient::Zed, ".zed/settings.json", text);
    assert_eq!(after, "{\"context_servers\": {\n// mine\n}}");
}

#[test]
fn nothing_is_written_into_json_that_is_broken_anywhere() {
    for text in [
        "{\"mcpServers\": {}, \"x\": {a b c}}",
        "{\"mcpServers\": {}} trailing {{{",
        "{\"mcpServers\": {\"stepwell\": {}}, \"mcpServers\": {}}",
    ] {
        let env = TestEnv::new();
        fs::write(env.file(".mcp.json"), text).unwrap();
        let refused = mcp_clients::plan_mcp_install(&env.workspace, McpClient::Claude, &[]);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
        assert!(
            mcp_clients::plan_mcp_uninstall(&env.workspace, McpClient::Claude).is_err(),
            "{text}"
        );
    }
}

#[test]
fn a_link_that_leads_nowhere_is_not_replaced() {
    let env = TestEnv::new();
    std::os::unix::fs::symlink(env.file("absent"), env.file(".mcp.json")).unwrap();
    assert!(mcp_clients::plan_mcp_install(&env.workspace, McpClient::Claude, &[]).is_err());
    assert!(env.file(".mcp.json").is_symlink());
}

#[test]
fn a_named_store_goes_into_the_entry() {
    let env = TestEnv::new();
    let (named, plain) = (env.file("kept"), vec!["mcp".to_owned()]);
    let with = with_store(plain.clone(), Some(&named)).unwrap();
    assert_eq!(with, ["mcp", "--store", named.to_str().unwrap()]);
    assert_eq!(with_store(plain.clone(), None).unwrap(), plain);
}

#[test]
fn a_teams_store_goes_into_the_entry_but_never_a_password() {
    let plain = vec!["mcp".to_owned()];
    let team = "postgres://mila@db.example:5432/work?namespace=team";
    let with = with_store(plain.clone(), Some(Path::new(team))).unwrap();
    assert_eq!(with, ["mcp", "--store", team]);
    for secret in
        ["postgres://mila:pass@db.example/work", "postgres://db.example/work?user=m&password=pass"]
    {
        let refused = with_store(plain.clone(), Some(Path::new(secret)));
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("has a password"), "{why}");
    }
    assert!(with_store(plain, Some(Path::new("http://x:y@z"))).is_err());
}
