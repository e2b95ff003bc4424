//! Where the store is: found from any folder of its workspace, as git finds its root.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stepwell::Stepwell;
use stepwell::store::STORE_FOLDER;
use stepwell::store::query::Filter;
use stepwell_postgres::Address;

use crate::error::{Error, Result};
use crate::workspace_file::WorkspaceFile;

/// What a new file's mode is, before the user's mask.
const USUAL_MODE: u32 = 0o666;

/// The configuration file at a workspace's root.
pub const CONFIG_FILE: &str = "stepwell.toml";

/// Where the store is, or would be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The workspace's root.
    pub root: PathBuf,
    /// The store's folder.
    pub store: PathBuf,
    /// How it was found.
    pub found: Found,
    /// Where the team's store is, if sessions are kept there. The folder then holds only
    /// what belongs to this machine.
    pub team: Option<Address>,
}

/// How a store was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The user named it: it is meant to be there.
    Named,
    /// By looking around.
    Around,
}

impl Location {
    /// The store of that folder itself; its database may be named in its location. Its
    /// workspace is the folder that it lies in, if it has the usual name, and else the one
    /// that the user is in.
    pub fn named(store: &Path, from: &Path) -> Self {
        let is_file = store.file_name().is_some_and(|name| name == "stepwell.db");
        let folder = if is_file { store.parent().unwrap_or(store) } else { store };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let store = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let usual = store.file_name().is_some_and(|name| name == STORE_FOLDER);
        let root = if usual { store.parent().unwrap_or(&store) } else { from }.to_owned();
        Self { root, store, found: Found::Named, team: None }
    }

    /// The store that a folder belongs to: the nearest one above it, or else the place
    /// for one at the root of the workspace: where `stepwell.toml` is, or the git work
    /// tree's root, or the folder itself.
    pub fn around(folder: &Path) -> Self {
        if let Some(store) = Stepwell::discover(folder) {
            let root = store.parent().unwrap_or(&store).to_owned();
            return Self { root, store, found: Found::Around, team: None };
        }
        let has = |name: &'static str| move |above: &&Path| above.join(name).exists();
        let configured = folder.ancestors().find(has(CONFIG_FILE));
        let root = configured.or_else(|| git_root(folder)).unwrap_or(folder).to_owned();
        Self { store: root.join(STORE_FOLDER), root, found: Found::Around, team: None }
    }

    /// The same workspace, with its sessions in a team's store.
    pub fn shared(self, address: Address) -> Self {
        let store = self.root.join(STORE_FOLDER);
        Self { store, found: Found::Named, team: Some(address), ..self }
    }

    /// What the store is called among the user's: its folder, or its address as it may be shown.
    #[must_use]
    pub fn shown_store(&self) -> PathBuf {
        self.team.as_ref().map_or_else(|| self.store.clone(), |team| team.shown().to_owned())
    }

    /// The store's file, without links in the way to it.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        let folder = self.store.canonicalize().unwrap_or_else(|_| self.store.clone());
        folder.join("stepwell.db")
    }

    /// Narrows a filter to sessions of this workspace. A store in its workspace has no others,
    /// and moves with it.
    #[must_use]
    pub fn narrow(&self, filter: Filter) -> Filter {
        let usual = self.store.file_name().is_some_and(|name| name == STORE_FOLDER);
        match self.team.is_some() || !usual {
            // As a session notes where it works.
            true => Filter { workspace: Some(self.root.display().to_string()), ..filter },
            false => filter,
        }
    }

    /// Is there a store?
    pub fn has_store(&self) -> bool {
        if self.team.is_some() {
            return true;
        }
        // One that cannot be looked at is there: whoever opens it says why it cannot.
        match fs::metadata(self.store.join("stepwell.db")) {
            Err(error) => error.kind() != io::ErrorKind::NotFound || self.is_odd(),
            Ok(_) => true,
        }
    }

    /// Is there something of the store's name that is no folder?
    fn is_odd(&self) -> bool {
        fs::symlink_metadata(&self.store).is_ok() && !self.store.is_dir()
    }

    fn gitignore(&self) -> io::Result<String> {
        match fs::read_to_string(self.root.join(".gitignore")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        }
    }

    /// Does git not see the store? It does not, outside of a work tree.
    pub fn is_ignored(&self) -> io::Result<bool> {
        let own = fs::read_to_string(self.store.join(".gitignore")).unwrap_or_default();
        Ok(own.lines().any(|line| line.trim_end() == "*") || self.is_listed()?)
    }

    /// Does the workspace's own `.gitignore` name the store, as far as there is need?
    fn is_listed(&self) -> io::Result<bool> {
        let inside = git_root(&self.root).is_some();
        if !inside || self.store.file_name().is_none_or(|name| name != STORE_FOLDER) {
            return Ok(true);
        }
        let entries = [".stepwell", ".stepwell/", "/.stepwell", "/.stepwell/"];
        Ok(self.gitignore()?.lines().any(|line| entries.contains(&line.trim_end())))
    }

    /// Names the store in the workspace's own `.gitignore`. Says whether anything had to be
    /// written.
    pub fn ignore(&self) -> Result<bool> {
        let file = WorkspaceFile::below(&self.root, ".gitignore")?;
        let fault = |source| Error::file(file.path(), "changing it")(source);
        if self.is_listed().map_err(fault)? {
            return Ok(false);
        }
        let text = self.gitignore().map_err(fault)?;
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let mut open = file.append(USUAL_MODE)?;
        open.write_all(format!("{gap}.stepwell/\n").as_bytes()).map_err(fault)?;
        Ok(true)
    }

    /// Refuses a store that is reached over a link, or that holds one: a cloned project may have
    /// brought it.
    pub fn refuse_links(&self) -> Result<()> {
        Ok(stepwell::store::refuse_links_in_store(&self.store)?)
    }
}

/// The root of the git work tree that a folder lies in. A linked work tree has a file
/// where others have a folder.
fn git_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(".git").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn a_store_is_found_from_below_and_made_at_the_root() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(Location::around(&deep).root, deep);
        fs::create_dir_all(top.path().join("a/.git")).unwrap();
        assert_eq!(Location::around(&deep).root, top.path().join("a"));
        touch(&top.path().join(CONFIG_FILE));
        assert_eq!(Location::around(&deep).root, top.path());
        touch(&top.path().join("a/.stepwell/stepwell.db"));
        assert_eq!(Location::around(&deep).store, top.path().join("a/.stepwell"));
    }

    #[test]
    fn the_database_names_its_store() {
        let here = Path::new("/here");
        let location = Location::named(Path::new("/x/.stepwell/stepwell.db"), here);
        assert_eq!(location, Location::named(Path::new("/x/.stepwell"), here));
        assert_eq!(location.root, Path::new("/x"));
        assert_eq!(Location::named(Path::new("/x/store"), here).root, here);
    }

    #[test]
    fn git_is_told_once_and_only_where_there_is_git() {
        let top = tempfile::tempdir().unwrap();
        let location = Location::around(top.path());
        assert!(!location.ignore().unwrap());
        fs::create_dir(top.path().join(".git")).unwrap();
        fs::write(top.path().join(".gitignore"), "target").unwrap();
        assert!(location.ignore().unwrap());
        assert!(!location.ignore().unwrap());
        let text = fs::read_to_string(top.path().join(".gitignore")).unwrap();
        assert_eq!(text, "target\n.stepwell/\n");
    }
}
