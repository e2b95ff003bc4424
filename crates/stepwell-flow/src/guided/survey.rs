//! Examines a project before any question: its kind, its tests, how to run it. It reads a few small
//! files at the root, and starts nothing.

use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell::model::Project;

/// The largest file that is read.
const MAX_BYTES: u64 = 256 << 10;

/// The most bytes of the project's instructions for agents.
const MAX_INSTRUCTIONS: usize = 16 << 10;

/// How many names at the root are listed.
const MAX_NAMES: usize = 60;

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Survey {
    /// For example `rust` or `node`; empty if unknown.
    pub project_type: String,
    /// For example `axum` or `react`; empty if unknown.
    pub framework: String,
    /// The command that runs its tests, if known.
    pub tests: Option<String>,
    /// The command that starts it, if known.
    pub run: Option<String>,
    /// The names at its root.
    pub files: Vec<String>,
    /// The text of its AGENTS.md.
    pub instructions: String,
}

/// Files at the root, with the kind of project and its test command; the first existing file
/// counts.
const MARKS: &[(&str, &str, Option<&str>)] = &[
    ("Cargo.toml", "rust", Some("cargo test")),
    ("go.mod", "go", Some("go test ./...")),
    ("pyproject.toml", "python", Some("python -m pytest")),
    ("setup.py", "python", Some("python -m pytest")),
    ("requirements.txt", "python", Some("python -m pytest")),
    ("package.json", "node", None),
    ("deno.json", "deno", Some("deno test")),
    ("pom.xml", "java", Some("mvn -q test")),
    ("build.gradle", "java", Some("gradle test")),
    ("build.gradle.kts", "java", Some("gradle test")),
    ("Gemfile", "ruby", None),
    ("composer.json", "php", None),
    ("mix.exs", "elixir", Some("mix test")),
    ("Package.swift", "swift", Some("swift test")),
    ("CMakeLists.txt", "c", None),
    ("Makefile", "make", None),
];

/// Frameworks by kind of project, with their names in its files. The first match counts.
const FRAMEWORKS: &[(&str, &[&str])] = &[
    ("rust", &["axum", "actix-web", "rocket", "tauri", "bevy", "clap"]),
    ("go", &["gin-gonic/gin", "labstack/echo", "gofiber/fiber", "spf13/cobra"]),
    ("python", &["django", "fastapi", "flask"]),
    ("node", &["next", "nuxt", "@angular/core", "svelte", "vue", "react", "express", "fastify"]),
    ("java", &["spring-boot", "quarkus"]),
    ("ruby", &["rails", "sinatra"]),
    ("php", &["laravel", "symfony"]),
    ("elixir", &["phoenix"]),
];

impl Survey {
    /// Examines the project in a folder.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let mut survey = Self { files: names(root), ..Self::default() };
        if let Some((file, kind, tests)) = MARKS.iter().find(|(file, ..)| root.join(file).is_file())
        {
            let text = read(&root.join(file)).unwrap_or_default();
            survey.project_type = (*kind).to_owned();
            survey.framework = framework(kind, &text);
            survey.tests = tests.map(str::to_owned);
            survey.look_into(kind, &text, root);
        }
        if let Some(text) = read(&root.join("AGENTS.md")) {
            let text = text.trim();
            survey.instructions = text[..text.floor_char_boundary(MAX_INSTRUCTIONS)].to_owned();
        }
        survey
    }

    fn look_into(&mut self, kind: &str, text: &str, root: &Path) {
        match kind {
            "rust" if root.join("src/main.rs").is_file() => self.run = Some("cargo run".to_owned()),
            "go" if root.join("main.go").is_file() => self.run = Some("go run .".to_owned()),
            "node" => {
                let scripts: Value = serde_json::from_str(text).unwrap_or_default();
                let has = |name: &str| scripts["scripts"][name].is_string();
                self.tests = has("test").then(|| "npm test".to_owned());
                self.run = has("start").then(|| "npm start".to_owned());
            }
            "python" => {
                let start = ["manage.py", "main.py", "app.py"];
                let found = start.iter().find(|file| root.join(file).is_file());
                self.run = found.map(|file| match *file {
                    "manage.py" => "python manage.py runserver".to_owned(),
                    file => format!("python {file}"),
                });
            }
            "make" => {
                let has = |name: &str| text.lines().any(|line| line.starts_with(name));
                self.tests = ["test:", "check:"]
                    .iter()
                    .find(|name| has(name))
                    .map(|name| format!("make {}", name.trim_end_matches(':')));
                self.run = has("run:").then(|| "make run".to_owned());
            }
            _ => {}
        }
    }

    /// The project for the session, if its type is known.
    #[must_use]
    pub fn project(&self) -> Option<Project> {
        let commands = [("tests", &self.tests), ("run", &self.run)].into_iter();
        let answers = commands.filter_map(|(key, it)| Some((key.to_owned(), it.clone()?.into())));
        (!self.project_type.is_empty()).then(|| Project {
            project_type: self.project_type.clone(),
            framework: self.framework.clone(),
            answers: answers.collect(),
        })
    }

    /// The description of the project for agents.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let known =
            |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        lines.push(format!("type: {}", known(&self.project_type)));
        lines.push(format!("framework: {}", known(&self.framework)));
        lines.push(format!("tests: {}", known(self.tests.as_deref().unwrap_or_default())));
        lines.push(format!("run: {}", known(self.run.as_deref().unwrap_or_default())));
        lines.push(format!("at its root: {}", self.files.join(", ")));
        if !self.instructions.is_empty() {
            lines.push(format!("\nIts AGENTS.md says:\n{}", self.instructions));
        }
        lines.join("\n")
    }
}

fn framework(kind: &str, text: &str) -> String {
    let known = FRAMEWORKS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, known)| known);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '@');
    let named = |name: &&&str| text.split(|c: char| !is_word(c)).any(|word| ends_in(word, name));
    known.iter().find(named).map_or_else(String::new, |name| (*name).to_owned())
}

/// In Go a framework's name is preceded by its host.
fn ends_in(word: &str, name: &str) -> bool {
    word == name || word.strip_suffix(name).is_some_and(|host| host.ends_with('/'))
}

/// A small text file. Links are not followed, since they may lead outside.
fn read(path: &Path) -> Option<String> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Names at the root, sorted; folders end with a slash.
fn names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_folder = entry.file_type().ok()?.is_dir();
        let hidden = name.starts_with('.') || name.chars().any(char::is_control);
        (!hidden).then(|| if is_folder { format!("{name}/") } else { name })
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    if names.len() > MAX_NAMES {
        let more = names.len() - MAX_NAMES;
        names.truncate(MAX_NAMES);
        names.push(format!("and {more} more"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> Survey {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Survey::of(root.path())
    }

    #[test]
    fn a_project_shows_its_type_framework_tests_and_how_it_runs() {
        let rust = project(&[
            ("Cargo.toml", "[dependencies]\naxum = \"0.8\"\n"),
            ("src/main.rs", ""),
            ("AGENTS.md", "Be brief.\n"),
        ]);
        assert_eq!((&*rust.project_type, &*rust.framework), ("rust", "axum"));
        assert_eq!(rust.tests.as_deref(), Some("cargo test"));
        assert_eq!(rust.run.as_deref(), Some("cargo run"));
        assert_eq!(rust.files, ["AGENTS.md", "Cargo.toml", "src/"]);
        assert!(rust.text().ends_with("Its AGENTS.md says:\nBe brief."), "{}", rust.text());
        let node = project(&[(
            "package.json",
            r#"{"scripts": {"test": "vitest"}, "dependencies": {"react": "19"}}"#,
        )]);
        assert_eq!((node.framework.as_str(), node.tests.as_deref()), ("react", Some("npm test")));
        assert_eq!(node.run, None);
        let go =
            project(&[("go.mod", "require github.com/gin-gonic/gin v1.10.0"), ("main.go", "")]);
        assert_eq!((&*go.framework, go.run.as_deref()), ("gin-gonic/gin", Some("go run .")));
        let make = project(&[("Makefile", "all: x\ncheck: all\n\t./t\n")]);
        assert_eq!(make.tests.as_deref(), Some("make check"));
    }

    #[test]
    fn an_empty_folder_is_a_project_of_no_known_type() {
        assert_eq!(project(&[]), Survey::default());
        assert!(project(&[]).text().contains("type: unknown"));
    }

    #[test]
    fn a_word_within_a_word_is_no_framework() {
        let survey = project(&[("Cargo.toml", "name = \"my-axum-thing\"")]);
        assert_eq!(survey.framework, "");
    }

    #[test]
    fn links_and_large_files_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("secret"), "word").unwrap();
        std::os::unix::fs::symlink("secret", root.path().join("AGENTS.md")).unwrap();
        std::fs::write(root.path().join("Cargo.toml"), "x".repeat(300 << 10)).unwrap();
        let survey = Survey::of(root.path());
        assert_eq!((&*survey.project_type, &*survey.instructions), ("rust", ""));
    }
}
