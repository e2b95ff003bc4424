//! The list of prices that a user took in place of the one that ships.

use std::io;
use std::path::{Path, PathBuf};

use stepwell_catalog::price::list::List;

use crate::atomic_file::replace_users_file;
use crate::host::Host;

/// A list is smaller than this; the one that ships is a fiftieth of it.
const LARGEST: u64 = 8 << 20;

/// Where a user's list is kept.
#[derive(Clone, Debug)]
pub struct PriceListFile(PathBuf);

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum NoPriceList {
    /// A file is none.
    #[error("{} is no list of prices: {why}", path.display())]
    NotOne {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
}

impl PriceListFile {
    /// The file in the state folder of a host, if it has one.
    #[must_use]
    pub fn of(host: &Host) -> Option<Self> {
        host.state.as_deref().map(Self::below)
    }

    /// Below the folder where things are remembered for the user.
    fn below(state: &Path) -> Self {
        Self(state.join("prices.json"))
    }

    /// The newer of the list that the user took, if they did, and the one that ships. The error says
    /// why the user's is not used.
    pub fn newest(&self) -> (List, Option<NoPriceList>) {
        let shipped = List::shipped();
        if !self.0.exists() {
            return (shipped, None);
        }
        match read(&self.0) {
            Ok((taken, _)) if taken.made() > shipped.made() => (taken, None),
            Ok(_) => (shipped, None),
            Err(why) => (shipped, Some(why)),
        }
    }

    /// Takes a list from a file.
    pub fn install(&self, file: &Path) -> Result<List, NoPriceList> {
        let (list, text) = read(file)?;
        let folder = self.0.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| replace_users_file(&self.0, &text))
            .map_err(|error| NoPriceList::File { path: self.0.clone(), error })?;
        Ok(list)
    }
}

/// Reads a list, with its text.
fn read(path: &Path) -> Result<(List, String), NoPriceList> {
    let failed = |error| NoPriceList::File { path: path.to_owned(), error };
    let not_one = |why| NoPriceList::NotOne { path: path.to_owned(), why };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > LARGEST {
        return Err(not_one(format!("it has {length} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok((List::parse(&text).map_err(not_one)?, text))
}
