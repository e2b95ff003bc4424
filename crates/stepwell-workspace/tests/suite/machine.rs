//! A machine that tests make up: a user's home, projects, variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use stepwell::SessionId;
use stepwell_workspace::config::Override;
use stepwell_workspace::{Host, Notice, Notices, Result, Wanted, Workspace};

/// A machine that tests make up.
pub(crate) struct Machine {
    top: tempfile::TempDir,
    pub(crate) variables: BTreeMap<String, String>,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let notices = Arc::default();
        Self { top: tempfile::tempdir().unwrap(), variables: BTreeMap::new(), notices }
    }

    /// A folder on it, which is made.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = std::fs::canonicalize(self.top.path()).unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a file, below folders that are made.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.top.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn host(&self) -> Host {
        Host {
            home: Some(self.folder("home")),
            config: Some(self.folder("home/.config/stepwell")),
            state: Some(self.folder("home/.local/state/stepwell")),
            environment: Arc::new(self.variables.clone()),
            ..Host::bare()
        }
    }

    pub(crate) fn wanted(&self, folder: &str) -> Wanted {
        Wanted { folder: Some(self.folder(folder)), ..Wanted::default() }
    }

    /// The workspace that a folder belongs to.
    pub(crate) fn at(&self, folder: &str) -> Result<Workspace> {
        self.find(self.wanted(folder))
    }

    pub(crate) fn find(&self, wanted: Wanted) -> Result<Workspace> {
        let notices = Arc::clone(&self.notices);
        let told = Notices::to(move |notice: &Notice| notices.lock().unwrap().push(notice.clone()));
        Workspace::locate(self.host(), wanted, told)
    }

    /// The workspace that a folder belongs to, with settings for this one time.
    pub(crate) fn set(&self, folder: &str, settings: &[(&str, &str)]) -> Result<Workspace> {
        let over = |(key, value): &(&str, &str)| Override {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let overrides = settings.iter().map(over).collect();
        self.find(Wanted { overrides, ..self.wanted(folder) })
    }

    /// What was told since the last time.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap())
    }
}

/// Makes a session in a workspace.
pub(crate) fn session(workspace: &Workspace, task: &str) -> SessionId {
    let well = workspace.open_or_create().unwrap();
    well.create(well.draft(task)).unwrap().id().clone()
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
