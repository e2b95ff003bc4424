//! The user's known stores, so that all of their projects can be listed and searched.
//!
//! One small file for each store, named after its path: to register is to make a file,
//! and no two processes ever write the same one differently.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stepwell::model::Digest;

use crate::atomic_file::replace_private_file;
use crate::host::Host;

/// The user's known stores.
#[derive(Clone, Debug)]
pub struct Registry {
    folder: PathBuf,
}

impl Registry {
    /// The registry in the state folder of a host, if it has one.
    #[must_use]
    pub fn of(host: &Host) -> Option<Self> {
        host.state.as_deref().map(Self::below)
    }

    /// The registry in the user's state folder.
    fn below(state: &Path) -> Self {
        Self { folder: state.join("stores") }
    }

    fn entry(&self, store: &Path) -> PathBuf {
        let digest = Digest::of(store.as_os_str().as_encoded_bytes()).to_string();
        self.folder.join(&digest[..16])
    }

    /// Remembers a store, by its folder.
    ///
    /// # Errors
    /// If there is no such folder, or the registry cannot be written.
    pub fn add(&self, store: &Path) -> io::Result<()> {
        let store = fs::canonicalize(store)?;
        let entry = self.entry(&store);
        if entry.exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        replace_private_file(&entry, store.as_os_str().as_encoded_bytes())
    }

    /// Forgets a store.
    ///
    /// # Errors
    /// If it is not remembered, or the registry cannot be written.
    pub fn remove(&self, store: &Path) -> io::Result<()> {
        fs::remove_file(self.entry(store))
    }

    /// Every store that was remembered, whether it is still there or not, by path.
    ///
    /// # Errors
    /// If the registry is there and cannot be read.
    pub fn all(&self) -> io::Result<Vec<PathBuf>> {
        use std::os::unix::ffi::OsStringExt;
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut stores = Vec::new();
        for entry in entries {
            let path = entry?.path();
            // A draft that another process is about to rename, or left behind.
            if path.extension().is_some() {
                continue;
            }
            // One entry that cannot be read hides no other.
            if let Ok(store) = fs::read(path) {
                stores.push(PathBuf::from(std::ffi::OsString::from_vec(store)));
            }
        }
        stores.sort();
        Ok(stores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_remembered_once_until_it_is_forgotten() {
        let top = tempfile::tempdir().unwrap();
        let registry = Registry::below(&top.path().join("state"));
        assert!(registry.all().unwrap().is_empty());
        let store = fs::canonicalize(top.path()).unwrap();
        registry.add(top.path()).unwrap();
        registry.add(top.path()).unwrap();
        assert_eq!(registry.all().unwrap(), std::slice::from_ref(&store));
        registry.remove(&store).unwrap();
        assert!(registry.all().unwrap().is_empty());
        assert!(registry.add(&top.path().join("absent")).is_err());
    }
}
