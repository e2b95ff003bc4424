//! Writing the configuration: one value into a file that keeps its comments, and a
//! file with every key to begin with.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, Value};

use super::Config;
use super::settings::{KEYS, Key, Raw, Settings};
use crate::atomic_file::replace_users_file;
use crate::error::{ConfigPlace, Error, Result};
use crate::host::Host;
use crate::location::CONFIG_FILE;
use crate::workspace_file::WorkspaceFile;

/// Gives a key a value in a file, and makes the file if there is none. All else in it
/// stays as it is. The answer is the value as it was understood.
///
/// # Errors
/// If the value is of another kind, or the file cannot be read, understood or written.
pub fn put(path: &Path, key: &Key, text: &str) -> Result<Value> {
    let mut settings = Settings::default();
    settings.put(key, Raw::Text(text)).map_err(|why| {
        let value = if key.is_secret() { "…" } else { text };
        Error::invalid(format!("{} = {value}: {why}", key.name))
    })?;
    let mut document = document(path)?.unwrap_or_default();
    let (section, name) = key.name.split_once('.').unwrap_or(("", key.name));
    let table = document.entry(section).or_insert_with(|| Item::Table(Table::new()));
    let table =
        table.as_table_like_mut().ok_or_else(|| broken(path, format!("{section} is no table")))?;
    match table.get_mut(name) {
        // The comment behind the old value stays with the line.
        Some(Item::Value(value)) => {
            let around = value.decor().clone();
            *value = settings.get(key);
            *value.decor_mut() = around;
        }
        _ => {
            table.insert(name, Item::Value(settings.get(key)));
        }
    }
    replace(path, &document.to_string())?;
    if key.is_secret() {
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(path, private).map_err(Error::file(path, "closing it to others"))?;
    }
    Ok(settings.shown(key))
}

/// Would a value count if a workspace's file had it? What is the user's alone would not, nor what
/// is less careful than their own settings.
///
/// # Errors
/// If the user's own file cannot be read or understood.
pub fn counts_in_workspace(host: &Host, key: &Key, text: &str) -> Result<bool> {
    let users = Config::of_user(host)?.settings;
    let mut asked = users.clone();
    if key.is_users() {
        return Ok(false);
    }
    // What is no value at all is refused as such.
    if asked.put(key, Raw::Text(text)).is_err() {
        return Ok(true);
    }
    let wanted = asked.get(key).to_string();
    asked.keep_careful(&users);
    Ok(asked.get(key).to_string() == wanted)
}

/// Takes a key out of a file, and the section that it leaves empty. Says whether it was there.
///
/// # Errors
/// If the file cannot be read, understood or written.
pub fn take_out(path: &Path, key: &Key) -> Result<bool> {
    let Some(mut document) = document(path)? else { return Ok(false) };
    let (section, name) = key.name.split_once('.').unwrap_or(("", key.name));
    let Some(table) = document.get_mut(section).and_then(Item::as_table_like_mut) else {
        return Ok(false);
    };
    if table.remove(name).is_none() {
        return Ok(false);
    }
    if table.is_empty() {
        document.remove(section);
    }
    replace(path, &document.to_string())?;
    Ok(true)
}

/// Replaces a file with settings. The user's own may be a link that they made; a workspace's may not.
fn replace(path: &Path, text: &str) -> Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    if path.file_name().is_some_and(|name| name == CONFIG_FILE) {
        return WorkspaceFile::below(folder, CONFIG_FILE)?.replace(text);
    }
    fs::create_dir_all(folder).map_err(Error::file(path, "making its folder"))?;
    replace_users_file(path, text).map_err(Error::file(path, "writing it"))
}

/// What a file says, if there is one.
fn document(path: &Path) -> Result<Option<DocumentMut>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file(path, "reading it")(error)),
    };
    let document = text
        .parse()
        .map_err(|error: toml_edit::TomlError| broken(path, error.message().to_owned()))?;
    Ok(Some(document))
}

/// A file that says something else than settings.
fn broken(path: &Path, why: String) -> Error {
    let at = ConfigPlace::File { path: path.to_owned(), line: None };
    Error::Config { at, why, remedies: Vec::new() }
}

/// A file with every key, its default and what it does, all commented out.
#[must_use]
pub fn commented() -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS.iter().filter(|key| !key.is_users()) {
        let (this, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if this != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}[{this}]\n"));
            section = this;
        }
        let value = Settings::default().get(key);
        text.push_str(&format!("#{}\n# {name} = {value}\n", key.says));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_put_and_everything_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config.toml");
        let key = Key::find("sessions.cleanup_after_days").unwrap();
        put(&path, key, "30").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[sessions]\ncleanup_after_days = 30\n");
        let text = "# mine\n[sessions] # here\ncleanup_after_days = 9 # days\nauto_save = true\n";
        fs::write(&path, text).unwrap();
        put(&path, key, "8").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text.replace('9', "8"));
        assert!(put(&path, key, "-8").is_err());
        fs::write(&path, "[sessions\n").unwrap();
        assert!(put(&path, key, "8").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "[sessions\n");
    }

    #[test]
    fn a_key_is_taken_out_and_everything_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stepwell.toml");
        let key = Key::find("sessions.cleanup_after_days").unwrap();
        assert!(!take_out(&path, key).unwrap());
        let text = "# mine\n[sessions]\nauto_save = true # yes\n";
        fs::write(&path, format!("{text}cleanup_after_days = 9\n")).unwrap();
        assert!(take_out(&path, key).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(!take_out(&path, key).unwrap());
        fs::write(&path, "[sessions]\ncleanup_after_days = 9\n").unwrap();
        assert!(take_out(&path, key).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn the_commented_file_holds_the_defaults() {
        let text = commented();
        assert!(text.parse::<DocumentMut>().is_ok());
        // Without the marks it is a file that says what holds anyway.
        let open: String = text
            .lines()
            .map(|line| match line.strip_prefix("# ").filter(|rest| rest.contains(" = ")) {
                Some(rest) => format!("{rest}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        let document: DocumentMut = open.parse().unwrap();
        for key in KEYS.iter().filter(|key| !key.is_users()) {
            let (section, name) = key.name.split_once('.').unwrap();
            let value = document[section][name].as_value().unwrap();
            let default = Settings::default().get(key);
            assert_eq!(value.to_string().trim(), default.to_string().trim());
        }
    }
}
