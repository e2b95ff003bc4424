//! Arrows between the files of a crate go one way, and so do those between its folders. A module and
//! the modules within it count as one: the test ignores the arrows between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's path within its crate.
type Module = Vec<String>;

/// Which modules need which, beside each other in one folder.
struct Arrows {
    known: BTreeSet<Module>,
    /// Where a name lies that a module imports: others can reach it through the module.
    imported: BTreeMap<Module, Module>,
    to: BTreeMap<Module, BTreeSet<Module>>,
}

impl Arrows {
    fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        collect(src, &mut Vec::new(), &mut files);
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        let files: Vec<_> = files.iter().map(|(module, path)| (module, read(path))).collect();
        let known = files.iter().map(|(module, _)| (*module).clone()).collect();
        let mut arrows = Self { known, imported: BTreeMap::new(), to: BTreeMap::new() };
        for (module, file) in &files {
            for path in named(file, module, Paths::Imported) {
                let name = path.last().cloned().unwrap_or_default();
                arrows.imported.entry([module.as_slice(), &[name]].concat()).or_insert(path);
            }
        }
        for (module, file) in &files {
            for path in named(file, module, Paths::All) {
                arrows.draw(module, &arrows.owner(&path));
            }
        }
        arrows
    }

    /// An arrow between the parts of two paths that lie beside each other.
    fn draw(&mut self, from: &[String], to: &[String]) {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(..=shared), to.get(..=shared)) {
            self.to.entry(a.to_vec()).or_default().insert(b.to_vec());
        }
    }

    /// The module in which a path's name lies, also if the path leads through imports.
    fn owner(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        for _ in 0..self.known.len() {
            match self.behind_import(&path) {
                Some(behind) if behind != path => path = behind,
                _ => break,
            }
        }
        path[..self.file_end(&path)].to_vec()
    }

    /// Where a path goes on behind an import. A module within a file counts as the file.
    fn behind_import(&self, path: &[String]) -> Option<Module> {
        let (module, rest) = path.split_at(self.file_end(path));
        rest.iter().enumerate().find_map(|(n, name)| {
            let lies = self.imported.get(&[module, std::slice::from_ref(name)].concat())?;
            Some([lies, &rest[n + 1..]].concat())
        })
    }

    /// How many parts of a path name a file.
    fn file_end(&self, path: &[String]) -> usize {
        (0..=path.len()).rev().find(|n| self.known.contains(&path[..*n])).unwrap_or(0)
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
        self.to.keys().filter(reaches_itself).map(|module| module.join("::")).collect()
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

/// Which paths of a file to look at.
#[derive(Clone, Copy, PartialEq)]
enum Paths {
    All,
    Imported,
}

/// The paths within its crate that a file names.
fn named(text: &str, module: &[String], paths: Paths) -> Vec<Module> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: Vec<_> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut words = words(&code).into_iter().peekable();
    let mut found = Vec::new();
    let mut before = "";
    while let Some(word) = words.next() {
        let imports = before == "use";
        let base = match word {
            "crate" => Some(Vec::new()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            "self" => Some(module.to_vec()),
            name if imports => Some([module, &[name.to_owned()]].concat()),
            _ => None,
        };
        before = word;
        if let Some(base) = base.filter(|_| imports || paths == Paths::All) {
            follow(&mut words, base, &mut found);
        }
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
fn no_files_and_no_folders_of_a_crate_need_each_other() {
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
    assert_eq!(Arrows::read(folder.path()).circles(), ["a", "b", "c"]);
}

#[test]
fn a_circle_of_folders_is_found_through_names_that_others_pass_on() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for part in ["a", "b"] {
        std::fs::create_dir(folder.path().join(part)).unwrap();
    }
    write("lib.rs", "mod a;\nmod b;\nmod front;\npub use front::kinds;\npub use kinds::One;\n");
    write("front.rs", "pub mod kinds {\n    pub use crate::a::One;\n}\n");
    write("a/mod.rs", "mod one;\nmod two;\npub use one::One;\n");
    write("a/one.rs", "pub struct One;\n");
    write("a/two.rs", "use crate::b::{Four, Three};\n");
    write("b/mod.rs", "mod three;\nmod four;\npub(crate) use four::Four;\npub use three::Three;\n");
    write("b/three.rs", "pub struct Three;\n");
    write("b/four.rs", "pub struct Four;\n");
    assert_eq!(Arrows::read(folder.path()).circles(), Vec::<String>::new());
    // No two files need each other, but the folders do.
    write("b/three.rs", "use crate::One;\npub struct Three;\n");
    assert_eq!(Arrows::read(folder.path()).circles(), ["a", "b"]);
}

#[test]
fn a_circle_of_files_is_found_through_what_their_folder_imports() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    write("lib.rs", "mod a;\n");
    write("a/mod.rs", "mod one;\nmod two;\nuse one::One;\n");
    write("a/one.rs", "pub struct One;\n");
    write("a/two.rs", "use super::One;\npub struct Two;\n");
    assert_eq!(Arrows::read(folder.path()).circles(), Vec::<String>::new());
    write("a/one.rs", "use super::two::Two;\npub struct One;\n");
    assert_eq!(Arrows::read(folder.path()).circles(), ["a::one", "a::two"]);
}
