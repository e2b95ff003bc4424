//! The git settings that are turned off, and the programs that settings name. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Settings that start a program or use the network regardless of a file's attributes, and their
/// replacements.
const FIXED: [(&str, &str); 31] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("diff.external", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("merge.verifySignatures", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    // Housekeeping may start a program of the repository.
    ("gc.auto", "0"),
    ("gc.recentObjectsHook", ""),
    ("maintenance.auto", "false"),
    // Git would start another git in a submodule, which applies the submodule's settings.
    ("submodule.recurse", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    // A folder that only looks like a repository does not count.
    ("safe.bareRepository", "explicit"),
    ("core.quotePath", "false"),
    (CANARY, "1"),
];

/// A setting of ours that git must list. A git that ignores settings from variables would ignore
/// the other replacements, too.
const CANARY: &str = "stepwell.safe";

/// The relevant settings.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Settings that name a program for some files, with their full keys.
    programs: BTreeSet<String>,
    /// Does a setting move the repository's files?
    pub(super) places_work_tree: bool,
}

/// The names of configured drivers, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drivers {
    /// Drivers that change the content of files on their way in and out.
    pub filters: BTreeSet<String>,
    /// Drivers that merge files.
    pub merges: BTreeSet<String>,
}

impl Settings {
    /// Parses the output of `git config --list -z --show-scope`.
    pub(super) fn add(&mut self, listed: &[u8]) -> Result<(), String> {
        let mut fields = listed.split(|byte| *byte == 0);
        let mut heeded = false;
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let ends = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let (key, value) = entry.split_at(ends);
            let (scope, key) = (String::from_utf8_lossy(scope), String::from_utf8_lossy(key));
            let value = String::from_utf8_lossy(value.get(1..).unwrap_or_default());
            heeded |= key == CANARY;
            self.places_work_tree |= key == "core.worktree";
            // A conditional include depends on the branch and folder, which the next command may
            // change.
            if key.starts_with("includeif.") && matches!(&*scope, "local" | "worktree") {
                return Err(format!(
                    "the repository's git configuration includes {value:?} under a condition, so \
                     that nobody can say which programs it names; remove that to use git here"
                ));
            }
            if replacement(&key).is_none() {
                continue;
            }
            // A replacement under an altered name would have no effect.
            let Cow::Borrowed(key) = key else {
                return Err(format!(
                    "git's configuration names a program as {key:?}, which is not UTF-8, so that \
                     it cannot be turned off; rename that to use git here"
                ));
            };
            self.programs.insert(key.to_owned());
        }
        match heeded {
            true => Ok(()),
            false => Err("git is too old to be run safely; version 2.31 or newer is".to_owned()),
        }
    }

    pub(super) fn drivers(&self) -> Drivers {
        let named = |section: &str, variables: &[&str]| {
            let parts = self.programs.iter().filter_map(|key| parts(key));
            let ours = parts.filter(|it| it.0 == section && variables.contains(&it.2));
            ours.map(|(_, name, _)| name.to_owned()).collect()
        };
        Drivers {
            filters: named("filter", &["clean", "smudge", "process"]),
            merges: named("merge", &["driver"]),
        }
    }
}

/// A key's section, name and variable. The name may contain dots.
fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let (section, rest) = key.split_once('.')?;
    let (name, variable) = rest.rsplit_once('.')?;
    Some((section, name, variable))
}

/// The replacement of a setting that names a program; `None` for other settings.
fn replacement(key: &str) -> Option<&'static str> {
    let (section, _, variable) = parts(key)?;
    match (section, variable) {
        ("filter", "clean" | "smudge" | "process")
        | ("diff", "command" | "textconv")
        | ("hook", "command" | "event") => Some(""),
        // An empty driver would count as a successful merge; `false` fails, which is a conflict.
        ("filter", "required") | ("hook", "enabled") | ("merge", "driver") => Some("false"),
        _ => None,
    }
}

/// The settings for a git command.
pub(super) fn overrides(settings: &Settings) -> Vec<(String, String)> {
    let fixed = FIXED.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let found = settings
        .programs
        .iter()
        .filter_map(|key| replacement(key).map(|value| (key.clone(), value.to_owned())));
    fixed.chain(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(entries: &[(&str, &str)]) -> Result<Settings, String> {
        let all = [("command", "stepwell.safe\n1")].iter().chain(entries);
        let listed: String = all.map(|(scope, entry)| format!("{scope}\0{entry}\0")).collect();
        let mut settings = Settings::default();
        settings.add(listed.as_bytes()).map(|()| settings)
    }

    #[test]
    fn every_program_that_a_file_may_need_is_turned_off() {
        let settings = settings(&[
            ("local", "filter.a=b.c.clean\ncat"),
            ("global", "filter.lfs.required\ntrue"),
            ("global", "filter.lfs.process\ngit-lfs filter-process"),
            ("worktree", "merge.ours.driver\ntrue"),
            ("local", "diff.pdf.textconv\npdftotext"),
            ("local", "core.bare"),
        ])
        .unwrap();
        let overrides = overrides(&settings);
        let set = |key: &str| overrides.iter().find(|it| it.0 == key).map(|it| it.1.as_str());
        assert_eq!(set("filter.a=b.c.clean"), Some(""));
        assert_eq!(set("filter.lfs.required"), Some("false"));
        assert_eq!(set("merge.ours.driver"), Some("false"));
        assert_eq!(set("diff.pdf.textconv"), Some(""));
        assert_eq!(set("core.bare"), None);
        let drivers = settings.drivers();
        assert!(drivers.filters.contains("a=b.c") && drivers.filters.contains("lfs"));
        assert!(drivers.merges.contains("ours"));
    }

    #[test]
    fn a_repository_whose_settings_depend_on_something_is_refused() {
        let why = settings(&[("local", "includeif.onbranch:x.path\nmore")]).unwrap_err();
        assert!(why.contains("more"), "{why}");
        // The user's own file may include conditionally.
        assert!(settings(&[("global", "includeif.gitdir:~/w/.path\nmore")]).is_ok());
    }

    #[test]
    fn a_program_under_a_name_that_is_not_utf_8_is_refused() {
        for key in [&b"filter.\xff.clean"[..], b"merge.\xfe.driver", b"diff.\xff\xff.textconv"] {
            let listed = [b"command\0stepwell.safe\n1\0local\0", key, b"\ncat\0"].concat();
            let why = Settings::default().add(&listed).unwrap_err();
            assert!(why.contains("not UTF-8"), "{why}");
        }
        let harmless = b"command\0stepwell.safe\n1\0local\0user.name\n\xff\0";
        assert!(Settings::default().add(harmless).is_ok());
    }

    #[test]
    fn a_git_that_does_not_heed_our_settings_is_refused() {
        let why = Settings::default().add(b"local\0core.bare\nfalse\0").unwrap_err();
        assert!(why.contains("too old"), "{why}");
    }
}
