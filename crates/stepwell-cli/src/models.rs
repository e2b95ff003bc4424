//! The models that a user used last, and those that they like: one small file for all of
//! their workspaces.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure, Result};
use crate::kept::{keep, read};

/// What is remembered, in the form of M31A's `recent_models.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Models {
    /// Used last, the newest first, each once.
    pub(crate) recent: Vec<String>,
    /// Liked, by name.
    favorites: BTreeMap<String, bool>,
}

impl Models {
    /// Notes that a model is used.
    pub(crate) fn used(&mut self, name: &str, most: usize) {
        self.recent.retain(|other| other != name);
        self.recent.insert(0, name.to_owned());
        self.recent.truncate(most);
    }

    /// Takes over what another list remembers: its models as used before ours, its favourites
    /// as ours. Says how many of each are new.
    pub(crate) fn adopt(&mut self, other: &Self, most: usize) -> (usize, usize) {
        let sound = |name: &&String| {
            (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
        };
        let before = self.recent.len();
        for name in other.recent.iter().filter(sound) {
            if self.recent.len() < most && !self.recent.contains(name) {
                self.recent.push(name.clone());
            }
        }
        let liked = other.favorites.iter().filter(|(name, liked)| **liked && sound(name));
        let new = liked.take(most.max(100)).filter(|(name, _)| self.like(name, Liked::Yes)).count();
        (self.recent.len() - before, new)
    }

    /// Makes a model a favourite, or not; says whether that changed anything.
    pub(crate) fn like(&mut self, name: &str, liked: Liked) -> bool {
        match liked {
            Liked::Yes => self.favorites.insert(name.to_owned(), true) != Some(true),
            Liked::No => self.favorites.remove(name) == Some(true),
        }
    }

    /// Is it a favourite?
    pub(crate) fn likes(&self, name: &str) -> bool {
        self.favorites.get(name) == Some(&true)
    }

    /// The favourites, by name.
    pub(crate) fn favourites(&self) -> Vec<&str> {
        let liked = self.favorites.iter().filter(|(_, liked)| **liked);
        liked.map(|(name, _)| name.as_str()).collect()
    }
}

/// The longest name that is taken over.
const MAX_NAME: usize = 256;

/// Whether a model is a favourite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liked {
    Yes,
    No,
}

/// Where they are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    path: PathBuf,
}

impl Shelf {
    /// The file below the folder in which we remember things for the user.
    pub(crate) fn below(state: &Path) -> Self {
        Self { path: state.join("models.json") }
    }

    /// What is remembered. A file that cannot be understood is said to be so, and left.
    pub(crate) fn read(&self) -> Result<Models> {
        let text = read(&self.path).map_err(|error| self.fault("reading it", &error))?;
        let Some(text) = text else { return Ok(Models::default()) };
        serde_json::from_str(&text).map_err(|error| {
            let message = format!("{}: {error}", self.path.display());
            Failure::new(Exit::Damaged, message)
                .hint("mend it or remove it; it holds recent models and favourites")
        })
    }

    /// Changes what is remembered, also while others do.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Models) -> T) -> Result<T> {
        let fault = |error| self.fault("writing it", &error);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(fault)?;
        }
        let keeping = keep(&self.path.with_extension("lock")).map_err(fault)?;
        let mut models = self.read()?;
        let done = change(&mut models);
        let text = serde_json::to_string_pretty(&models).unwrap_or_default();
        keeping.put(&self.path, &format!("{text}\n")).map_err(fault)?;
        Ok(done)
    }

    fn fault(&self, doing: &str, error: &io::Error) -> Failure {
        Failure::file(&self.path, doing, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_remembered_newest_first_each_once_and_not_too_many() {
        let mut models = Models::default();
        for name in ["a/1", "b/2", "a/1", "c/3", "c/3"] {
            models.used(name, 2);
        }
        assert_eq!(models.recent, ["c/3", "a/1"]);
        models.used("d/4", 0);
        assert!(models.recent.is_empty());
        assert!(models.like("a/1", Liked::Yes) && !models.like("a/1", Liked::Yes));
        assert_eq!(models.favourites(), ["a/1"]);
        assert!(models.like("a/1", Liked::No) && !models.like("a/1", Liked::No));
    }

    #[test]
    fn m31as_file_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(folder.path());
        let text =
            r#"{"recent": ["openai/a", "gpt-4o"], "favorites": {"gpt-4o": true, "x": false}}"#;
        std::fs::write(folder.path().join("models.json"), text).unwrap();
        let models = shelf.read().unwrap();
        assert_eq!((models.recent.len(), models.favourites()), (2, vec!["gpt-4o"]));
    }

    #[test]
    fn what_another_list_remembers_comes_behind_ours_once() {
        let mut ours = Models { recent: vec!["a/1".to_owned()], ..Models::default() };
        let text = r#"{"recent": ["b/2", "a/1", "bad\n", "c/3", "d/4"], "favorites": {"b/2": true, "x": false}}"#;
        let theirs: Models = serde_json::from_str(text).unwrap();
        assert_eq!(ours.adopt(&theirs, 3), (2, 1));
        assert_eq!((ours.recent.len(), ours.favourites()), (3, vec!["b/2"]));
        assert_eq!(ours.recent, ["a/1", "b/2", "c/3"]);
        assert_eq!(ours.adopt(&theirs, 3), (0, 0));
    }

    #[test]
    fn a_file_that_is_broken_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::below(folder.path());
        std::fs::write(folder.path().join("models.json"), "{\"recent\": [").unwrap();
        assert!(shelf.read().is_err());
        assert!(shelf.change(|models| models.used("a/1", 10)).is_err());
        let left = std::fs::read_to_string(folder.path().join("models.json")).unwrap();
        assert_eq!(left, "{\"recent\": [");
    }
}
