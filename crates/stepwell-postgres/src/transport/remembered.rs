//! What this machine remembers of the servers of an address, between commands.
//!
//! A host that does not answer costs each command its time. And an old primary that comes back, after
//! a standby took its place, does not know that it is old. A client that saw a later timeline of the
//! database does.

use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use stepwell::model::Digest;

/// What a server says of itself when it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Which database cluster it serves: a primary and its standbys are the same.
    pub(crate) cluster: String,
    /// How often a standby has taken over in the life of the cluster, as this server knows it.
    pub(crate) timeline: i32,
}

/// What is remembered, in a file of the user's if there is one.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// The host that was good last.
    host: Option<String>,
    /// The latest timeline that a server of a cluster named.
    latest: Option<Facts>,
}

impl Remembered {
    /// What a folder remembers of an address.
    pub(crate) fn of(folder: Option<&Path>, address: &Path) -> Self {
        let name = Digest::of(address.as_os_str().as_encoded_bytes()).to_string();
        let file = folder.map(|folder| folder.join(&name[..16]));
        let text = file.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
        Self { known: Mutex::new(text.as_deref().map(Known::read).unwrap_or_default()), file }
    }

    /// The host to try first.
    pub(crate) fn host(&self) -> Option<String> {
        self.known().host.clone()
    }

    /// A host did not answer: the others come first from now on.
    pub(crate) fn forget_host(&self, host: &str) {
        self.known().host.take_if(|known| known == host);
    }

    /// The latest timeline that a server of this cluster named, if that is later.
    pub(crate) fn later(&self, facts: &Facts) -> Option<i32> {
        let known = self.known();
        let latest = known.latest.as_ref().filter(|it| it.cluster == facts.cluster)?;
        (latest.timeline > facts.timeline).then_some(latest.timeline)
    }

    /// A host is good. Not being able to write that down is no error: the next command looks again.
    pub(crate) fn note(&self, host: &str, facts: &Facts) {
        let mut known = self.known();
        let now = Known { host: Some(host.to_owned()), latest: Some(facts.clone()) };
        if *known != now {
            *known = now;
            if let Some(file) = &self.file {
                let _ = write(file, &known.text());
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Known {
    /// Reads what [`text`](Self::text) made; what cannot be read is not known.
    fn read(text: &str) -> Self {
        let mut known = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("host", host)) => known.host = Some(host.to_owned()),
                Some(("timeline", rest)) => {
                    known.latest = rest.split_once(' ').and_then(|(cluster, timeline)| {
                        let timeline = timeline.parse().ok()?;
                        Some(Facts { cluster: cluster.to_owned(), timeline })
                    });
                }
                _ => {}
            }
        }
        known
    }

    fn text(&self) -> String {
        let host = self.host.iter().map(|host| format!("host {host}\n"));
        let latest = self.latest.iter();
        let latest = latest.map(|it| format!("timeline {} {}\n", it.cluster, it.timeline));
        host.chain(latest).collect()
    }
}

/// Replaces a file as a whole: another process may read it meanwhile.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(std::process::id().to_string());
    std::fs::write(&draft, text)?;
    std::fs::rename(draft, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(cluster: &str, timeline: i32) -> Facts {
        Facts { cluster: cluster.to_owned(), timeline }
    }

    #[test]
    fn the_next_command_knows_the_good_host_and_the_latest_timeline() {
        let folder = tempfile::tempdir().unwrap();
        let open = |address: &str| Remembered::of(Some(folder.path()), Path::new(address));
        open("a").note("h:1", &facts("7", 2));
        let again = open("a");
        assert_eq!(again.host().as_deref(), Some("h:1"));
        assert_eq!(again.later(&facts("7", 1)), Some(2));
        assert_eq!((again.later(&facts("7", 2)), again.later(&facts("8", 1))), (None, None));
        again.forget_host("h:2");
        assert_eq!(again.host().as_deref(), Some("h:1"));
        again.forget_host("h:1");
        assert_eq!((again.host(), open("b").host()), (None, None));
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        for text in ["", "host", "timeline 7", "timeline 7 x", "\u{0}"] {
            assert_eq!(Known::read(text), Known::default(), "{text}");
        }
    }
}
