//! The models that a user used last, and those that they like: one small file for all of
//! their workspaces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use stepwell::Remedy;

use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::locked_file::{lock, read};

/// What is remembered, in the form of M31A's `recent_models.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentModels {
    /// Used last, the newest first, each once.
    pub recent: Vec<String>,
    /// Liked, by name.
    favorites: BTreeMap<String, bool>,
}

impl RecentModels {
    /// Notes that a model is used.
    pub fn used(&mut self, name: &str, most: usize) {
        self.recent.retain(|other| other != name);
        self.recent.insert(0, name.to_owned());
        self.recent.truncate(most);
    }

    /// The same with names as `--model` takes them, and those for which there is none, each with
    /// why.
    #[must_use]
    pub fn named<W>(self, name: impl Fn(&str) -> Result<String, W>) -> (Self, BTreeMap<String, W>) {
        let (mut named, mut unknown) = (Self::default(), BTreeMap::new());
        for theirs in self.recent {
            match name(&theirs) {
                Ok(ours) if named.recent.contains(&ours) => {}
                Ok(ours) => named.recent.push(ours),
                Err(why) => drop(unknown.insert(theirs, why)),
            }
        }
        for (theirs, liked) in self.favorites {
            match name(&theirs) {
                Ok(ours) => drop(named.favorites.insert(ours, liked)),
                Err(why) => drop(unknown.insert(theirs, why)),
            }
        }
        (named, unknown)
    }

    /// Takes over what another list remembers: its models as used before ours, its favourites
    /// as ours. Says how many of each are new.
    pub fn adopt(&mut self, other: &Self, most: usize) -> Adopted {
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
        Adopted { recent: self.recent.len() - before, favourites: new }
    }

    /// Makes a model a favourite, or not; says whether that changed anything.
    pub fn like(&mut self, name: &str, liked: Liked) -> bool {
        match liked {
            Liked::Yes => self.favorites.insert(name.to_owned(), true) != Some(true),
            Liked::No => self.favorites.remove(name) == Some(true),
        }
    }

    /// Is it a favourite?
    #[must_use]
    pub fn likes(&self, name: &str) -> bool {
        self.favorites.get(name) == Some(&true)
    }

    /// The favourites, by name.
    #[must_use]
    pub fn favourites(&self) -> Vec<&str> {
        let liked = self.favorites.iter().filter(|(_, liked)| **liked);
        liked.map(|(name, _)| name.as_str()).collect()
    }
}

/// The longest name that is taken over.
const MAX_NAME: usize = 256;

/// How much of another list was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// Models that are remembered as recent now.
    pub recent: usize,
    /// Models that are favourites now.
    pub favourites: usize,
}

/// Whether a model is a favourite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liked {
    /// It is one.
    Yes,
    /// It is none.
    No,
}

/// Where they are remembered.
#[derive(Clone, Debug)]
pub struct RecentModelsFile {
    path: PathBuf,
}

impl RecentModelsFile {
    /// The file in the state folder of a host, if it has one.
    #[must_use]
    pub fn of(host: &Host) -> Option<Self> {
        host.state.as_deref().map(Self::below)
    }

    /// The file in the user's state folder.
    fn below(state: &Path) -> Self {
        Self { path: state.join("models.json") }
    }

    /// What is remembered. A file that cannot be understood is an error, and is left as it is.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn read(&self) -> Result<RecentModels> {
        let text = read(&self.path).map_err(Error::file(&self.path, "reading it"))?;
        let Some(text) = text else { return Ok(RecentModels::default()) };
        serde_json::from_str(&text).map_err(|source| {
            let why = format!("{}: {source}", self.path.display());
            let remedy = "it or remove it; it holds recent models and favourites".to_owned();
            Error::refused(ErrorKind::Damaged, why).helped_by(Remedy::Correct(remedy))
        })
    }

    /// Changes what is remembered, also while others do.
    ///
    /// # Errors
    /// As [`Self::read`], or if it cannot be written.
    pub fn change<T>(&self, change: impl FnOnce(&mut RecentModels) -> T) -> Result<T> {
        let fault = || Error::file(&self.path, "writing it");
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(fault())?;
        }
        let held = lock(&self.path.with_extension("lock")).map_err(fault())?;
        let mut models = self.read()?;
        let done = change(&mut models);
        let text = serde_json::to_string_pretty(&models).unwrap_or_default();
        held.write(&self.path, &format!("{text}\n")).map_err(fault())?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_remembered_newest_first_each_once_and_not_too_many() {
        let mut models = RecentModels::default();
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
        let file = RecentModelsFile::below(folder.path());
        let text =
            r#"{"recent": ["openai/a", "gpt-4o"], "favorites": {"gpt-4o": true, "x": false}}"#;
        std::fs::write(folder.path().join("models.json"), text).unwrap();
        let models = file.read().unwrap();
        assert_eq!((models.recent.len(), models.favourites()), (2, vec!["gpt-4o"]));
    }

    #[test]
    fn what_another_list_remembers_comes_behind_ours_once() {
        let mut ours = RecentModels { recent: vec!["a/1".to_owned()], ..RecentModels::default() };
        let text = r#"{"recent": ["b/2", "a/1", "bad\n", "c/3", "d/4"], "favorites": {"b/2": true, "x": false}}"#;
        let theirs: RecentModels = serde_json::from_str(text).unwrap();
        assert_eq!(ours.adopt(&theirs, 3), Adopted { recent: 2, favourites: 1 });
        assert_eq!((ours.recent.len(), ours.favourites()), (3, vec!["b/2"]));
        assert_eq!(ours.recent, ["a/1", "b/2", "c/3"]);
        assert_eq!(ours.adopt(&theirs, 3), Adopted { recent: 0, favourites: 0 });
    }

    #[test]
    fn a_file_that_is_broken_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecentModelsFile::below(folder.path());
        std::fs::write(folder.path().join("models.json"), "{\"recent\": [").unwrap();
        assert!(file.read().is_err());
        assert!(file.change(|models| models.used("a/1", 10)).is_err());
        let left = std::fs::read_to_string(folder.path().join("models.json")).unwrap();
        assert_eq!(left, "{\"recent\": [");
    }
}
