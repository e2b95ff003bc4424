//! Arrows between the files of a crate go one way. A module and those within it are one thing here:
//! what is between them is not looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's path within its crate.
type Module = Vec<String>;

/// Which modules the files of a crate name.
#[derive(Default)]
struct Arrows {
    known: BTreeSet<Module>,
    to: BTreeMap<Module, BTreeSet<Module>>,
}

impl Arrows {
    fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        collect(src, &mut Vec::new(), &mut files);
        let known = files.iter().map(|(module, _)| module.clone()).collect();
        let mut arrows = Self { known, to: BTreeMap::new() };
        for (module, file) in &files {
            let text = std::fs::read_to_string(file).unwrap();
            let named = named(&text, module);
            let named = named.iter().filter_map(|path| arrows.owner(path)).filter(|other| {
                !other.is_empty() && !module.starts_with(other) && !other.starts_with(module)
            });
            let named = named.collect();
            arrows.to.insert(module.clone(), named);
        }
        arrows
    }

    /// The module that a path leads to: the longest part of it that is one.
    fn owner(&self, path: &[String]) -> Option<Module> {
        let mut parts = (0..=path.len()).rev().map(|n| path[..n].to_vec());
        parts.find(|part| self.known.contains(part))
    }

    /// Modules that can be reached from themselves.
    fn circles(&self) -> Vec<String> {
        let reaches_itself = |module: &&Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*module]);
            while let Some(from) = open.pop() {
                for to in self.to.get(from).into_iter().flatten() {
                    if to == *module {
                        return true;
                    }
                    if seen.insert(to) {
                        open.push(to);
                    }
                }
            }
            false
        };
        self.known.iter().filter(reaches_itself).map(|module| module.join("::")).collect()
    }
}

/// The files of a crate with their modules, but for tests and further programs.
fn collect(folder: &Path, within: &mut Module, files: &mut Vec<(Module, PathBuf)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "tests" || name == "bin" {
            continue;
        }
        within.push(name.clone());
        if path.is_dir() {
            collect(&path, within, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let is_root = ["mod", "lib", "main"].contains(&name.as_str());
            files.push((within[..within.len() - usize::from(is_root)].to_vec(), path));
        }
        within.pop();
    }
}

/// The paths within its crate that a file names.
fn named(text: &str, module: &[String]) -> Vec<Module> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut words = words(&code).into_iter().peekable();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let base = match word {
            "crate" => Vec::new(),
            "super" => module[..module.len().saturating_sub(1)].to_vec(),
            _ => continue,
        };
        follow(&mut words, base, &mut found);
    }
    found
}

/// Follows a path, and every branch of a tree of paths.
fn follow<'a>(
    words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    mut path: Module,
    found: &mut Vec<Module>,
) {
    while words.next_if_eq(&"::").is_some() {
        if words.next_if_eq(&"{").is_some() {
            while let Some(word) = words.next_if(|word| *word != "}") {
                if word != "," {
                    let mut branch = path.clone();
                    branch.push(word.to_owned());
                    follow(words, branch, found);
                }
            }
            words.next();
            return;
        }
        match words.next_if(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
            Some("super") => drop(path.pop()),
            Some(word) => path.push(word.to_owned()),
            None => break,
        }
    }
    found.push(path);
}

/// Names, and the signs that paths are made of.
fn words(code: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut words, mut rest) = (Vec::new(), code);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            ':' if rest.starts_with("::") => 2,
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        if !word.trim().is_empty() {
            words.push(word);
        }
        rest = after;
    }
    words
}

#[test]
fn no_files_of_a_crate_need_each_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut arrows = 0;
    for entry in std::fs::read_dir(crates).unwrap() {
        let src = entry.unwrap().path().join("src");
        if src.is_dir() {
            let read = Arrows::read(&src);
            arrows += read.to.values().map(BTreeSet::len).sum::<usize>();
            assert_eq!(read.circles(), Vec::<String>::new(), "in {}", src.display());
        }
    }
    assert!(arrows > 1_000, "the test sees what it looks for: {arrows}");
}

#[test]
fn a_circle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("b")).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\n");
    write("a.rs", "use crate::{c::{C, D}, b::B};\n");
    write("b/mod.rs", "mod deep;\npub struct B;\n");
    write("b/deep.rs", "// use crate::a::A;\nfn f() -> super::super::c::C { todo!() }\n");
    write("c.rs", "pub struct C;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    assert_eq!(Arrows::read(folder.path()).circles(), Vec::<String>::new());
    write("c.rs", "use super::a::A;\npub struct C;\n");
    assert_eq!(Arrows::read(folder.path()).circles(), ["a", "c"]);
}
