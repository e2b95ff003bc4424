//! Claude Code's settings in a workspace: our hooks are added to them, and taken out again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::settings::Settings;
use crate::error::{Error, Result};
use crate::workspace_file::WorkspaceFile;

/// Where the settings lie in a workspace.
const SETTINGS: &str = ".claude/settings.json";

/// The file with Claude Code's settings.
#[derive(Clone, Debug)]
pub struct SettingsFile(PathBuf);

impl SettingsFile {
    /// The one of a workspace.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self(root.join(SETTINGS))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Adds our hooks. Says whether that changed the file.
    ///
    /// # Errors
    /// If it cannot be read, understood or written. It is then as it was.
    pub fn install(&self) -> Result<bool> {
        let mut settings = self.read()?;
        let changed = settings.install().map_err(|error| self.unreadable(&error))?;
        self.write(&settings, changed.is_ok())
    }

    /// Takes our hooks out. Says whether that changed the file.
    ///
    /// # Errors
    /// If it cannot be read, understood or written. It is then as it was.
    pub fn uninstall(&self) -> Result<bool> {
        let mut settings = self.read()?;
        let changed = settings.uninstall().map_err(|error| self.unreadable(&error))?;
        self.write(&settings, changed.is_ok())
    }

    /// How many of our two hooks are in it.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn installed(&self) -> Result<usize> {
        Ok(self.read()?.installed().map_err(|error| self.unreadable(&error))?.len())
    }

    fn read(&self) -> Result<Settings> {
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::file(&self.0, "reading it")(error)),
        };
        let text = text.trim_start_matches('\u{feff}');
        Settings::read(text).map_err(|error| self.unreadable(&error))
    }

    fn write(&self, settings: &Settings, changed: bool) -> Result<bool> {
        if changed {
            // The workspace is the folder above the one that the settings lie in.
            let root = self.0.ancestors().nth(2).unwrap_or(&self.0);
            WorkspaceFile::below(root, SETTINGS)?.replace(&settings.text())?;
        }
        Ok(changed)
    }

    fn unreadable(&self, source: &serde_json::Error) -> Error {
        Error::invalid(format!("{}: {source}; it was left as it is", self.0.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_come_and_go_and_what_else_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = SettingsFile::below(folder.path());
        assert_eq!(file.installed().unwrap(), 0);
        assert!(file.install().unwrap());
        assert!(!file.install().unwrap());
        assert_eq!(file.installed().unwrap(), 2);
        assert!(file.uninstall().unwrap());
        assert!(!file.uninstall().unwrap());
    }

    #[test]
    fn a_file_that_is_no_settings_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = SettingsFile::below(folder.path());
        fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        fs::write(file.path(), "not JSON").unwrap();
        assert!(matches!(file.install(), Err(Error::Refused { .. })));
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "not JSON");
    }
}
