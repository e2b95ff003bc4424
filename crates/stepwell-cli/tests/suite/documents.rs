//! What the documents show can be typed: every command in them is one, with the flags that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::test_env::TestEnv;

/// The manual: the documents, the README and those of the examples.
fn documents() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![top.join("README.md")];
    let mut folders = vec![top.join("docs"), top.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|it| it == "md") => all.push(path),
                false => {}
            }
        }
    }
    all
}

/// The commands that a line of a document shows: of a block, one; of prose, those in backquotes.
fn commands(line: &str, in_block: bool) -> Vec<String> {
    let mut shown: Vec<&str> = match in_block {
        true => {
            let line = line.trim().trim_start_matches("$ ");
            let begins = |at: usize| {
                let before = line[..at].trim_end();
                before.is_empty() || before.ends_with(['(', '|', '&', '='])
            };
            let at = line.match_indices("stepwell ").map(|(at, _)| at).find(|at| begins(*at));
            at.map(|at| &line[at..]).into_iter().collect()
        }
        false => {
            line.split('`').skip(1).step_by(2).filter(|it| it.starts_with("stepwell ")).collect()
        }
    };
    for command in &mut shown {
        let ends = ["  #", " #", " | ", " > ", " && ", ";", ")"];
        let end = ends.iter().filter_map(|end| command.find(end)).min();
        *command = &command[..end.unwrap_or(command.len())];
    }
    shown.into_iter().map(str::to_owned).collect()
}

/// What each command says of itself.
struct Help<'a> {
    env: &'a TestEnv,
    known: BTreeMap<Vec<String>, String>,
}

impl Help<'_> {
    fn of(&mut self, path: &[String]) -> &str {
        let env = self.env;
        self.known.entry(path.to_vec()).or_insert_with(|| {
            let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
            args.push("--help");
            env.quietly(&args).stdout
        })
    }

    /// The commands below one.
    fn below(&mut self, path: &[String]) -> BTreeSet<String> {
        let name = |line: &str| {
            let line =
                line.strip_prefix("  ").filter(|it| !it.starts_with([' ', '-', '<', '[']))?;
            Some(line.split_whitespace().next()?.to_owned())
        };
        let text = self.of(path);
        let lists = path.is_empty() || text.contains("\nCommands:\n");
        text.lines().filter(|_| lists).filter_map(name).collect()
    }

    /// What is wrong with a command.
    fn fault(&mut self, command: &str) -> Option<String> {
        let words: Vec<String> =
            command.split_whitespace().skip(1).map(|it| it.trim_matches('"').to_owned()).collect();
        let mut path: Vec<String> = Vec::new();
        for word in words.iter().filter(|it| !it.starts_with('-')) {
            match self.below(&path).contains(word) {
                true => path.push(word.clone()),
                // A group may take a session in front of what is to be done.
                false if path.is_empty() => break,
                false => {}
            }
        }
        let first = words.first().filter(|it| it.chars().all(|c| c.is_ascii_lowercase()));
        if path.is_empty() {
            return first.map(|first| format!("there is no command {first:?}"));
        }
        let mut flags = String::new();
        for length in 0..=path.len() {
            flags.push_str(self.of(&path[..length]));
        }
        let is_known = |flag: &str| {
            let end =
                |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            flags.match_indices(flag).any(|(at, _)| end(&flags[at + flag.len()..]))
        };
        let typed = words.iter().filter(|it| it.starts_with("--") && it.len() > 2);
        let flag =
            |word: &String| word.split(['=', ',', '"', ']']).next().unwrap_or_default().to_owned();
        let unknown = typed.map(flag).find(|flag| !is_known(flag));
        unknown.map(|flag| format!("{} has no {flag}", path.join(" ")))
    }
}

#[test]
fn every_command_in_the_documents_is_one_and_has_its_flags() {
    let env = TestEnv::new();
    let mut help = Help { env: &env, known: BTreeMap::new() };
    let (mut faults, mut looked) = (Vec::new(), 0);
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut in_block = false;
        for (line, n) in text.lines().zip(1..) {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            for command in commands(line, in_block) {
                looked += 1;
                let fault = help.fault(&command);
                faults.extend(fault.map(|it| format!("{}:{n}: {command}: {it}", path.display())));
            }
        }
    }
    assert!(looked > 150, "only {looked} commands were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
