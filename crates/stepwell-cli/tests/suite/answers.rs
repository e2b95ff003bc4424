//! What `--json` prints, laid beside its schema: whatever any test of the suite has a command
//! answer in JSON is checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::Value;

use crate::test_env::{STEPWELL, TestEnv};

/// The names of the answers that each command may give, by its first word.
fn by_command() -> &'static BTreeMap<String, BTreeSet<String>> {
    static KNOWN: OnceLock<BTreeMap<String, BTreeSet<String>>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let listed = Command::new(STEPWELL).args(["--json", "schema"]).output().unwrap();
        let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8(listed.stdout).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            for command in line["commands"].as_array().unwrap() {
                let first = command.as_str().unwrap().split(' ').next().unwrap();
                let name = line["name"].as_str().unwrap().to_owned();
                known.entry(first.to_owned()).or_default().insert(name);
            }
        }
        known
    })
}

/// Options whose value stands behind them, before a command or anywhere.
const WITH_VALUE: [&str; 4] = ["-C", "--store", "--config", "--color"];

/// The command that was typed, and its first argument.
fn command<'a>(args: &[&'a str]) -> Option<(&'a str, Option<&'a str>)> {
    let mut words = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match *arg {
            option if WITH_VALUE.contains(&option) => drop(rest.next()),
            option if option.starts_with('-') => {}
            word => words.push(word),
        }
    }
    words.first().map(|first| (*first, words.get(1).copied()))
}

/// Has every line of an answer in JSON the form that its command promises? Tells which ones were
/// given.
pub(crate) fn check(args: &[&str], stdout: &str) -> BTreeSet<String> {
    let mut given = BTreeSet::new();
    let Some((first, second)) = command(args).filter(|_| args.contains(&"--json")) else {
        return given;
    };
    // What is exported is an archive, and a schema is a schema.
    let has_file = args.contains(&"-o") || args.contains(&"--output");
    let is_raw = (first == "export" && !has_file)
        || (first == "schema" && second.is_some())
        || (first, second) == ("flow", Some("schema"))
        || args.contains(&"--help");
    let lines = stdout.lines().filter(|_| !is_raw);
    for line in lines {
        let value: Value = serde_json::from_str(line).expect("a line of --json is JSON");
        let names = by_command().get(first).expect("every command says what it answers with");
        let name = names.iter().find(|name| fits(name, &value));
        assert!(name.is_some(), "{args:?}: none of {names:?} is {line}\n{}", why(names, &value));
        given.extend(name.cloned());
    }
    given
}

fn fits(name: &str, value: &Value) -> bool {
    with_validator(name, |validator| validator.is_valid(value))
}

fn why(names: &BTreeSet<String>, value: &Value) -> String {
    let faults = names.iter().map(|name| {
        let first = |validator: &Validator| match validator.iter_errors(value).next() {
            Some(error) => format!("{name}: {error} at {}\n", error.instance_path()),
            None => String::new(),
        };
        with_validator(name, first)
    });
    faults.collect()
}

fn with_validator<T>(name: &str, ask: impl FnOnce(&Validator) -> T) -> T {
    static VALIDATORS: Mutex<BTreeMap<String, Validator>> = Mutex::new(BTreeMap::new());
    let mut all = VALIDATORS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let validator = all.entry(name.to_owned()).or_insert_with(|| {
        let form = stepwell_wire::all().iter().find(|form| form.name == name).unwrap();
        let mut schema = form.schema().to_value();
        // A field that is not described would not be missed by whoever reads the schema.
        if schema.get("allOf").is_none() {
            schema["unevaluatedProperties"] = false.into();
        }
        jsonschema::validator_for(&schema).unwrap()
    });
    ask(validator)
}

/// Commands that a furnished environment answers in JSON, in this order.
fn tour() -> Vec<Vec<&'static str>> {
    let said = [
        "init",
        "sessions --tree",
        "show a1b2c3 --tree",
        "show a1b2c3 --events",
        "show d4e5f6 --messages",
        "show a1b2c3 --view",
        "log a1b2c3",
        "search module",
        "stats",
        "ledger",
        "du",
        "state a1b2c3",
        "tasks a1b2c3 add refactor",
        "tasks a1b2c3",
        "label a1b2c3 auth",
        "tag a1b2c3 one,two",
        "untag a1b2c3 one",
        "pin a1b2c3",
        "unpin a1b2c3",
        "meta a1b2c3 k=v",
        "say a1b2c3 hello",
        "pin-message a1b2c3 2",
        "unpin-message a1b2c3 2",
        "checkpoint a1b2c3 here",
        "checkpoint a1b2c3",
        "fork a1b2c3 --at here",
        "files a1b2c3",
        "diff a1b2c3",
        "rewind a1b2c3 --chat --to 2 --dry-run",
        "rewind a1b2c3 --chat --to 2",
        "compact a1b2c3 --diff",
        "verify",
        "doctor",
        "models",
        "models add anthropic/claude-x",
        "models prices anthropic",
        "config",
        "config set sessions.cleanup_after_days 9",
        "config unset sessions.cleanup_after_days",
        "formats",
        "schema",
        "man pages",
        "gates",
        "store status",
        "store retention",
        "store role team ann",
        "store copy .stepwell ../copy",
        "backup ../backup.db",
        "export a1b2c3 -o a.json",
        "convert a.json b.jsonl --to jsonl",
        "agent create --agent a --purpose p --id agent-1",
        "agent update agent-1 --phase planning",
        "agent say agent-1 hello",
        "agent turns agent-1",
        "agent get agent-1",
        "agent should-resume agent-1",
        "agent list",
        "phase agent-1",
        "hook test",
        "hook install claude",
        "hook uninstall claude",
        "mcp install claude --yes",
        "mcp uninstall claude --yes",
        "acp install zed --yes",
        "acp uninstall zed --yes",
        "worktrees",
        "abandon f7a8b9",
        "cleanup --older-than 0 --dry-run",
        "delete 0a0b0c",
        "trash list",
        "trash restore 0a0b0c",
        "import a.json",
        "scrub --yes auth",
        "cleanup --older-than 0 --yes",
        "purge d4e5f6 --yes",
        "trash empty --yes",
    ];
    said.iter().map(|line| line.split(' ').collect()).collect()
}

/// Answers that need a model, another program, a server or damage; other tests of the suite have
/// them printed, and each is checked in the same way.
const ELSEWHERE: [&str; 26] = [
    "agent-unreadable",
    "compaction",
    "compaction-undone",
    "delegation",
    "detached",
    "favourite",
    "file-content",
    "file-diff",
    "flow-check",
    "flow-next",
    "flow-plan",
    "flow-report",
    "gate",
    "gate-answered",
    "gate-change",
    "handed-over",
    "hook-stop",
    "mcp-server",
    "models-adopted",
    "prices-taken",
    "run-report",
    "stop-asked",
    "store-restored",
    "unfinished-rewind",
    "worktree",
    "worktree-removed",
];

#[test]
fn every_answer_in_json_has_the_form_that_its_schema_says() {
    let mut env = TestEnv::furnished();
    let (mut given, mut refused) = (BTreeSet::new(), Vec::new());
    for words in tour() {
        let mut args = vec!["--json"];
        args.extend(words);
        let ran = env.run(&args);
        if !matches!(ran.code, Some(0 | 1)) || ran.stderr.contains("error: ") {
            refused.push(format!("{args:?}: {}", ran.stderr));
        }
        given.extend(check(&args, &ran.stdout));
    }
    let all: BTreeSet<String> = stepwell_wire::all().iter().map(|it| it.name.to_owned()).collect();
    let missing: Vec<&String> =
        all.difference(&given).filter(|name| !ELSEWHERE.contains(&name.as_str())).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(missing.is_empty(), "no command of the tour printed {missing:?}");
}

#[test]
fn a_schema_is_printed_by_name_and_a_mistyped_name_finds_the_right_one() {
    let env = TestEnv::new();
    let printed = env.quietly(&["schema", "session-item"]);
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(schema["properties"]["task"]["description"], "The user's task.");
    assert!(schema["required"].as_array().unwrap().contains(&"updated_at".into()));
    let wrong = env.quietly(&["schema", "sesion-item"]);
    assert_eq!(wrong.code, Some(3));
    assert!(wrong.stderr.contains("did you mean session-item?"), "{}", wrong.stderr);
}
