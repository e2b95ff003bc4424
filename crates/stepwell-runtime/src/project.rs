//! What kind of project a workspace holds, by the files that its tools look for.

use std::path::Path;

use stepwell::model::Project;

/// Files at a workspace's root, and the kind of project that each means; the first one there
/// counts.
const MARKS: &[(&str, &str)] = &[
    ("Cargo.toml", "rust"),
    ("go.mod", "go"),
    ("pyproject.toml", "python"),
    ("setup.py", "python"),
    ("requirements.txt", "python"),
    ("package.json", "node"),
    ("deno.json", "deno"),
    ("pom.xml", "java"),
    ("build.gradle", "java"),
    ("build.gradle.kts", "java"),
    ("Gemfile", "ruby"),
    ("composer.json", "php"),
    ("mix.exs", "elixir"),
    ("Package.swift", "swift"),
    ("CMakeLists.txt", "c"),
    ("Makefile", "make"),
];

/// The project at a workspace's root, if its kind shows.
pub(super) fn at(root: &Path) -> Option<Project> {
    let found = MARKS.iter().find(|(file, _)| root.join(file).is_file());
    found.map(|(_, kind)| Project { project_type: (*kind).to_owned(), ..Project::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mark_counts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(at(root.path()), None);
        for (file, kind) in [("Makefile", "make"), ("go.mod", "go"), ("Cargo.toml", "rust")] {
            std::fs::write(root.path().join(file), "").unwrap();
            assert_eq!(at(root.path()).unwrap().project_type, kind);
        }
    }
}
