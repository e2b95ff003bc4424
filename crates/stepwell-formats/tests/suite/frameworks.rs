//! What Python frameworks keep in databases of their own. The fixtures are what the libraries wrote.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use stepwell::store::query::{Filter, Query};
use stepwell::{Event, SessionId, Status, Stepwell};
use stepwell_formats::{Became, Format, LangGraphTables, Mode, Report, take_in};

use crate::mirror::{became, said, shown, taken};
use crate::seeds::{built, fixtures};
use crate::support::log;

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

/// A database of a framework, and the folder that holds it.
fn database(format: Format, name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = built(&fixtures(format).unwrap());
    let path = folder.path().join(name);
    (folder, path)
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// The one session of a system whose task holds these words.
fn about(well: &Stepwell, system: &str, words: &str) -> SessionId {
    let filter = Filter { system: Some(system.to_owned()), ..Filter::default() };
    let found = well.list(&Query { filter, ..Query::default() }).unwrap().sessions;
    let mut ids = found.into_iter().filter(|it| it.head.task.contains(words)).map(|it| it.head.id);
    let found = ids.next().unwrap_or_else(|| panic!("no session of {system} is about {words}"));
    assert_eq!(ids.next(), None);
    found
}

fn imported(well: &Stepwell, format: Format, path: &Path) -> Report {
    take_in(well, Mode::Write, format, path)
}

fn warnings(report: &Report) -> String {
    report.warnings.iter().map(|it| format!("{}\n", it.what)).collect()
}

#[test]
fn a_thread_of_langgraph_is_told_with_what_it_removed_in_the_log() {
    let well = Stepwell::in_memory();
    let (_folder, path) = database(format("langgraph"), "checkpoints.db");
    let report = imported(&well, format("langgraph"), &path);
    assert!(report.fault.is_none(), "{report:?}");
    assert_eq!(became(&report.sessions, Became::Imported), 2, "{report:?}");
    assert!(warnings(&report).contains("copy_checkpoints"), "{report:?}");
    let trip = about(&well, "langgraph", "weather in Bern");
    let head = well.info(&trip).unwrap().head;
    assert_eq!(
        (head.status, head.spent.usage.input, head.spent.usage.output),
        (Status::Success, 10, 5)
    );
    assert_eq!(head.source.unwrap().id, "trip 1");
    let shown = said(&shown(&well, &trip)).join("\n");
    assert!(
        shown.contains("I look it up.") && shown.contains("weather") && shown.contains("sunny")
    );
    assert!(shown.contains("Forgotten.") && !shown.contains("thanks"), "{shown}");
    let log = log(&well, &trip);
    assert!(log.iter().any(|it| matches!(&it.event, Event::Rewound(_))));
    let thanks = |event: &Event| matches!(event, Event::Message(it) if it.text() == "thanks");
    assert!(log.iter().any(|it| thanks(&it.event)), "what was removed is in the log");
    let state =
        |event: &Event| matches!(event, Event::Foreign(it) if it.data.contains(r#""city":"Bern""#));
    assert!(log.iter().any(|it| state(&it.event)), "other channels are kept");
}

/// A row as a server gives it.
fn row<const N: usize>(cells: [&str; N]) -> [Option<&[u8]>; N] {
    cells.map(|cell| Some(cell.as_bytes()))
}

#[test]
fn langgraphs_tables_on_a_server_are_told_as_its_files_are() {
    let mut tables = LangGraphTables::scratch().unwrap();
    for (id, version) in [("a", 1), ("b", 2)] {
        let checkpoint = format!(
            r#"{{"v": 4, "ts": "2026-11-16T10:00:0{version}+00:00",
                "channel_values": {{"city": "Bern", "key": true}},
                "channel_versions": {{"messages": "000{version}.5", "key": 1, "plan": {version}, "gone": 7}}}}"#
        );
        let mut cells = row(["trip", "", id, "", &checkpoint, "{}"]);
        cells[3] = None;
        tables.checkpoint(&cells).unwrap();
    }
    let asked = r#"{"role": "user", "content": "weather in Bern"}"#;
    let said = format!(r#"[{asked}, {{"role": "assistant", "content": "sunny"}}]"#);
    let blob = |channel: &str, version: &str, kind: &str, value: &str| {
        tables.blob(&row(["trip", "", channel, version, kind, value])).unwrap();
    };
    blob("messages", "0001.5", "json", &format!("[{asked}]"));
    blob("messages", "0002.5", "json", &said);
    blob("key", "1", "pickle", "cposix");
    blob("plan", "1", "json", r#"{"days": 1}"#);
    blob("plan", "2", "json", r#"{"days": 2}"#);
    tables
        .blob(&[Some(b"trip"), Some(b""), Some(b"gone"), Some(b"7"), Some(b"empty"), None])
        .unwrap();
    let interrupt = r#"{"value": "which hotel?"}"#;
    tables
        .write(&row(["trip", "", "b", "t", "", "-3", "__interrupt__", "json", interrupt]))
        .unwrap();
    let path = tables.finish().unwrap().to_owned();

    let well = Stepwell::in_memory();
    let found = stepwell_formats::search(&path, None).unwrap().found;
    assert_eq!(found[0].format, format("langgraph"));
    let report = imported(&well, format("langgraph"), &path);
    assert!(report.fault.is_none(), "{report:?}");
    assert!(warnings(&report).contains("2 checkpoints of thread trip came without a value"));
    assert!(warnings(&report).contains("pickle"), "{report:?}");
    let trip = about(&well, "langgraph", "weather in Bern");
    assert_eq!(said_of(&well, &trip), ["weather in Bern", "sunny"]);
    let kept: Vec<String> = log(&well, &trip)
        .into_iter()
        .filter_map(|it| match it.event {
            Event::Foreign(it) if it.data.contains("channel_values") => Some(it.data),
            _ => None,
        })
        .collect();
    let state: serde_json::Value = serde_json::from_str(kept.last().unwrap()).unwrap();
    assert_eq!(state["channel_values"], serde_json::json!({"city": "Bern", "plan": {"days": 2}}));
    assert_eq!(state["interrupts"][0]["value"], "which hotel?");
    // The same again brings nothing.
    let again = imported(&well, format("langgraph"), &path);
    assert_eq!(became(&again.sessions, Became::Unchanged), 1, "{again:?}");
}

fn said_of(well: &Stepwell, id: &SessionId) -> Vec<String> {
    shown(well, id).iter().map(stepwell::Message::text).collect()
}

#[test]
fn items_of_openai_agents_become_answers_and_what_has_no_word_is_kept() {
    let well = Stepwell::in_memory();
    let (_folder, path) = database(format("openai-agents"), "agents.db");
    assert_eq!(became(&taken(&well, &path), Became::Imported), 2);
    let told = id("user-123");
    assert_eq!(well.info(&told).unwrap().head.task, "what is the refund policy?");
    let said = said(&shown(&well, &told));
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[1].contains("I should look.") && said[1].contains("lookup"), "{said:#?}");
    assert!(said[2].contains("30 days") && said[3].contains("Thirty days."), "{said:#?}");
    let log = log(&well, &told);
    let kept =
        |event: &Event| matches!(event, Event::Foreign(it) if it.data.contains("web_search_call"));
    assert!(log.iter().any(|it| kept(&it.event)));
    assert_eq!(well.info(&id("user-124")).unwrap().head.task, "hi");
}

#[test]
fn sessions_of_adk_come_under_their_apps_and_users_scope_in_both_schemas() {
    let well = Stepwell::in_memory();
    let (folder, path) = database(format("adk"), "sessions.db");
    assert_eq!(became(&taken(&well, &path), Became::Imported), 1);
    let told = about(&well, "adk", "what is two?");
    let head = well.info(&told).unwrap().head;
    assert_eq!(head.scope.as_deref(), Some("adk/shop/ann%20b"));
    assert_eq!(
        (head.agent.as_str(), head.spent.usage.input, head.spent.usage.output),
        ("shop", 4, 2)
    );
    let said = said(&shown(&well, &told));
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[1].contains("I look.") && said[3].contains("Two is 2."), "{said:#?}");
    let older = imported(&well, format("adk"), &folder.path().join("older.db"));
    assert!(older.fault.is_none() && warnings(&older).contains("older schema"), "{older:?}");
    let told = about(&well, "adk", "are you open?");
    let head = well.info(&told).unwrap().head;
    assert_eq!(
        (head.spent.usage.input, head.created_at.to_string().as_str()),
        (7, "2025-11-01T10:00:00Z")
    );
}

#[test]
fn a_database_that_has_not_changed_brings_nothing_and_one_that_grew_what_is_new() {
    for name in ["langgraph", "openai", "adk"] {
        let well = Stepwell::in_memory();
        let folder = built(&fixtures(format(name)).unwrap());
        let first = taken(&well, folder.path());
        let again = taken(&well, folder.path());
        assert_eq!(became(&again, Became::Unchanged), first.len(), "{name}: {again:?}");
    }
    let well = Stepwell::in_memory();
    let (_folder, path) = database(format("openai"), "agents.db");
    taken(&well, &path);
    let before = log(&well, &id("user-124")).len();
    let more = r#"{"role": "assistant", "content": "Hello."}"#;
    let sql = "INSERT INTO agent_messages (session_id, message_data) VALUES ('user-124', ?1)";
    Connection::open(&path).unwrap().execute(sql, [more]).unwrap();
    let grown = taken(&well, &path);
    assert_eq!((became(&grown, Became::Updated), became(&grown, Became::Unchanged)), (1, 1));
    let log = log(&well, &id("user-124"));
    assert!(log.len() > before && !log.iter().any(|it| matches!(&it.event, Event::Rewound(_))));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_comes_in() {
    let well = Stepwell::in_memory();
    let (_folder, path) = database(format("langgraph"), "checkpoints.db");
    let database = Connection::open(&path).unwrap();
    let spoil = "UPDATE checkpoints SET type = 'msgpack+aes' WHERE thread_id = 'two'";
    database.execute(spoil, []).unwrap();
    let torn = "UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 40) WHERE rowid = \
                (SELECT min(rowid) FROM checkpoints WHERE thread_id = 'trip 1')";
    database.execute(torn, []).unwrap();
    drop(database);
    let report = imported(&well, format("langgraph"), &path);
    assert!(report.fault.is_none(), "{report:?}");
    let said = warnings(&report);
    assert!(said.contains("thread two") && said.contains("msgpack+aes"), "{said}");
    assert!(said.contains("1 checkpoints of thread trip 1 were left out"), "{said}");
    about(&well, "langgraph", "weather in Bern");
}

#[test]
fn a_damaged_or_foreign_database_is_told_as_such() {
    let well = Stepwell::in_memory();
    let (folder, path) = database(format("adk"), "sessions.db");
    Connection::open(&path).unwrap().execute("DROP TABLE events", []).unwrap();
    let report = imported(&well, format("adk"), &path);
    assert!(report.fault.unwrap().to_string().contains("no tables of sessions and events"));
    let bytes = std::fs::read(folder.path().join("older.db")).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let report = imported(&well, format("adk"), &path);
    assert!(report.fault.is_some() && report.sessions.is_empty(), "{report:?}");
}
