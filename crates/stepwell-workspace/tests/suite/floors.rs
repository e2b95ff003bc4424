//! The floors of the house: what lies below the front ends knows no terminal, no command line and
//! no environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The front ends: the only crates that may parse arguments, draw on terminals and read the
/// environment.
const DOORS: [&str; 4] = ["stepwell-cli", "stepwell-terminal", "stepwell-tui", "stepwell-python"];

/// Programs and helpers of tests and benchmarks, which nobody ships.
const FOR_TESTS: [&str; 6] = [
    "stepwell-bench",
    "stepwell-cluster",
    "stepwell-conformance",
    "stepwell-strict",
    "stepwell-testkit",
    "stepwell-torture",
];

/// What only front ends may depend on, also by way of others.
const ONLY_FOR_DOORS: [&str; 2] = ["clap", "crossterm"];

/// The one file that may name the environment: it decides which few variables git inherits, and
/// reads none of them.
const PASSES_ON: &str = "stepwell-files/src/git/environment.rs";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What cargo knows of the workspace.
fn metadata() -> Value {
    // For this machine only: what others need was perhaps never downloaded.
    let rustc = ask("rustc", &["-vV"]);
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let args = ["metadata", "--format-version=1", "--offline", "--filter-platform", host];
    serde_json::from_str(&ask(env!("CARGO"), &args)).unwrap()
}

/// What a program answers.
fn ask(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Names by id, and the ids that each one depends on when it is built for use.
struct Graph {
    names: BTreeMap<String, String>,
    needs: BTreeMap<String, Vec<String>>,
    members: Vec<String>,
}

impl Graph {
    fn read() -> Self {
        let metadata = metadata();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let names = packages.map(|it| (text(&it["id"]), text(&it["name"]))).collect();
        let is_normal = |dependency: &&Value| {
            let mut kinds = dependency["dep_kinds"].as_array().unwrap().iter();
            kinds.any(|kind| kind["kind"].is_null())
        };
        let nodes = metadata["resolve"]["nodes"].as_array().unwrap().iter();
        let needs = nodes.map(|node| {
            let all = node["deps"].as_array().unwrap().iter().filter(is_normal);
            (text(&node["id"]), all.map(|it| text(&it["pkg"])).collect())
        });
        let needs = needs.collect();
        let members = metadata["workspace_members"].as_array().unwrap().iter().map(text).collect();
        Self { names, needs, members }
    }

    /// All that a package is built of.
    fn parts(&self, id: &str) -> BTreeSet<&str> {
        let (mut found, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if found.insert(self.names[id].as_str()) {
                open.extend(self.needs[id].iter().map(String::as_str));
            }
        }
        found
    }

    /// The crates below the front ends.
    fn below(&self) -> Vec<&str> {
        let is_below = |id: &&String| !DOORS.contains(&self.names[*id].as_str());
        let below = self.members.iter().filter(is_below);
        let for_use = |id: &&String| !FOR_TESTS.contains(&self.names[*id].as_str());
        below.filter(for_use).map(String::as_str).collect()
    }
}

#[test]
fn nothing_below_the_front_ends_depends_on_a_command_line_or_a_terminal() {
    let graph = Graph::read();
    let below = graph.below();
    assert!(below.len() >= 6, "{below:?}");
    for id in below {
        let parts = graph.parts(id);
        for forbidden in ONLY_FOR_DOORS.iter().chain(&DOORS) {
            assert!(!parts.contains(forbidden), "{} is built of {forbidden}", graph.names[id]);
        }
    }
    // The test sees what it looks for.
    let door = graph.members.iter().find(|id| graph.names[*id] == DOORS[0]).unwrap();
    assert!(graph.parts(door).contains("clap"));
}

#[test]
fn no_front_end_is_built_of_another_but_the_program_itself() {
    let graph = Graph::read();
    let doors = ["acp", "mcp", "python", "server", "tui"].map(|name| format!("stepwell-{name}"));
    for door in &doors {
        let id = graph.members.iter().find(|id| graph.names[*id] == *door).unwrap();
        let parts = graph.parts(id);
        let others = doors.iter().filter(|other| *other != door && parts.contains(other.as_str()));
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new(), "{door}");
    }
}

/// The lines of a crate's sources that speak of the environment.
fn lines_on_environment(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines_on_environment(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let speaks = |line: &&str| {
                // To take a list of paths apart is to read nothing.
                let line = line.trim_start().replace("std::env::split_paths", "");
                !line.starts_with("//") && (line.contains("std::env") || line.contains(" env::"))
            };
            let lines = text.lines().filter(speaks);
            found.extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
    }
}

#[test]
fn nothing_below_the_front_ends_reads_the_environment() {
    let graph = Graph::read();
    let sources = |name: &str| root().join("crates").join(name).join("src");
    for id in graph.below() {
        let mut found = Vec::new();
        lines_on_environment(&sources(&graph.names[id]), &mut found);
        found.retain(|line| !line.contains(PASSES_ON));
        assert!(found.is_empty(), "{found:#?}");
    }
    // The test sees what it looks for.
    let mut found = Vec::new();
    lines_on_environment(&sources(DOORS[0]), &mut found);
    assert!(!found.is_empty());
}
