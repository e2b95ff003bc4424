//! Runs git safely. No other code starts git.
//!
//! A repository's own configuration can name programs: filters, hooks, file system monitors, diff
//! and merge drivers, pagers, credential helpers, transports. A user who unpacks an archive gets
//! such a configuration unread. So every git that is started here has those settings turned off,
//! may not use the network, and receives a short list of variables instead of this process's
//! environment, which contains the providers' keys.

pub(crate) mod config;
pub(crate) mod environment;
mod settings;

use std::collections::BTreeSet;
use std::io::{BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};

pub use self::settings::Drivers;
use self::settings::{Settings, overrides};

/// Git in a folder.
#[derive(Clone, Debug)]
pub struct SafeGit {
    folder: PathBuf,
    /// Another worktree of the same repository that git will read.
    other: Option<PathBuf>,
    /// An index in place of the repository's.
    index: Option<PathBuf>,
}

impl SafeGit {
    /// Git in a folder, inside a repository or not.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), other: None, index: None }
    }

    /// Declares another worktree that git will read, which may have its own settings.
    #[must_use]
    pub fn looking_into(self, other: &Path) -> Self {
        Self { other: Some(other.to_owned()), ..self }
    }

    /// Git with an index in place of the repository's.
    #[must_use]
    pub fn with_index(self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self }
    }

    /// Runs git and returns its output without the final line break. The error is its stderr.
    pub fn text(&self, args: &[&str]) -> Result<String, String> {
        self.text_with_input(args, "")
    }

    /// Like [`Self::text`], with text on its stdin.
    pub fn text_with_input(&self, args: &[&str], input: &str) -> Result<String, String> {
        let mut said = Vec::new();
        let output = self.start(args, input, |stdout| {
            std::io::Read::read_to_end(stdout, &mut said)?;
            Ok(())
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if output.status.success() {
            return Ok(text(&said));
        }
        Err([text(&output.stderr), text(&said)].join("\n").trim().to_owned())
    }

    /// Runs git with text on its stdin, and passes its output to a reader while git writes it.
    pub fn read(
        &self,
        args: &[&str],
        input: &str,
        read: impl FnOnce(&mut BufReader<ChildStdout>),
    ) -> Result<(), String> {
        let output = self.start(args, input, |stdout| {
            read(stdout);
            Ok(())
        })?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Does git exit with success?
    #[must_use]
    pub fn holds(&self, args: &[&str]) -> bool {
        self.text(args).is_ok()
    }

    /// Fails, with the reason, if git cannot be used here.
    pub fn usable(&self) -> Result<(), String> {
        self.settings().map(drop)
    }

    /// The programs that the configuration names for files with certain attributes. None of them is
    /// ever started; work that needs one is refused.
    pub fn drivers(&self) -> Result<Drivers, String> {
        Ok(self.settings()?.drivers())
    }

    /// Fails if a filter applies to one of these files: git would commit a different content.
    pub fn without_filters(&self, files: &[String]) -> Result<(), String> {
        let filters = self.drivers()?.filters;
        if filters.is_empty() || files.is_empty() {
            return Ok(());
        }
        let asked = ["check-attr", "-z", "--stdin", "filter"];
        let answer = self.text_with_input(&asked, &(files.join("\0") + "\0"))?;
        refuse(&answer, &filters, "filter")
    }

    fn start(
        &self,
        args: &[&str],
        input: &str,
        read: impl FnOnce(&mut BufReader<ChildStdout>) -> std::io::Result<()>,
    ) -> Result<Output, String> {
        let mut command = prepared(&self.folder, args, &overrides(&self.settings()?));
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        run(command, input, read).map_err(|error| format!("git cannot be run: {error}"))
    }

    /// The settings of every scope.
    fn settings(&self) -> Result<Settings, String> {
        let mut all = Settings::default();
        for folder in [Some(&self.folder), self.other.as_ref()].into_iter().flatten() {
            // A worktree that does not exist yet has no settings.
            if folder.is_dir() {
                all.add(&listed(folder)?)?;
                if all.places_work_tree {
                    stays_in_place(folder)?;
                }
            }
        }
        Ok(all)
    }
}

/// Parses the output of `check-attr -z` (file, attribute, value, and so on). Fails for a file that
/// needs one of these drivers.
pub(crate) fn refuse(answer: &str, drivers: &BTreeSet<String>, what: &str) -> Result<(), String> {
    let fields: Vec<&str> = answer.split('\0').filter(|field| !field.is_empty()).collect();
    match fields.chunks_exact(3).find(|triple| drivers.contains(triple[2])) {
        None => Ok(()),
        Some(triple) => Err(format!(
            "{} needs the {what} {} of git's configuration, which Stepwell does not start",
            triple[0], triple[2]
        )),
    }
}

/// Fails if `core.worktree` is not the repository's own folder, as in a submodule: git would check
/// out and merge in that other folder.
fn stays_in_place(folder: &Path) -> Result<(), String> {
    let asked = asked(folder, &["rev-parse", "--show-toplevel", "--absolute-git-dir"]);
    let text = asked.map(|said| String::from_utf8_lossy(&said).into_owned()).unwrap_or_default();
    let mut lines = text.lines().map(|line| Path::new(line).canonicalize());
    let (top, repository) = (lines.next(), lines.next());
    let in_place = match (top, repository, folder.canonicalize()) {
        (Some(Ok(top)), Some(Ok(repository)), Ok(folder)) => {
            folder.starts_with(&top) && config::repository_of(&top) == Some(repository)
        }
        _ => false,
    };
    match in_place {
        true => Ok(()),
        false => Err("the repository's git configuration places its files in another folder \
                      (core.worktree), where git would change them; remove that to use git here"
            .to_owned()),
    }
}

/// Every setting that git would apply in a folder.
fn listed(folder: &Path) -> Result<Vec<u8>, String> {
    asked(folder, &["config", "--list", "-z", "--show-scope", "--includes"])
}

/// Runs a git command that starts no program, before the settings are known.
fn asked(folder: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let command = prepared(folder, args, &overrides(&Settings::default()));
    let mut said = Vec::new();
    let output = run(command, "", |stdout| {
        std::io::Read::read_to_end(stdout, &mut said)?;
        Ok(())
    })
    .map_err(|error| format!("git cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(said),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Prepares git with these settings, in its own process group, so that a Ctrl+C meant for the run
/// does not interrupt git.
fn prepared(folder: &Path, args: &[&str], settings: &[(String, String)]) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager").arg("-C").arg(folder);
    // Options before the subcommand, such as --literal-pathspecs, stay there.
    let options = args.iter().take_while(|arg| arg.starts_with("--")).count();
    let (options, rest) = args.split_at(options);
    command.args(options);
    if let Some((subcommand, rest)) = rest.split_first() {
        command.arg(subcommand).args(safe_options(subcommand)).args(rest);
    }
    environment::scrub(&mut command);
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (n, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{n}"), key);
        command.env(format!("GIT_CONFIG_VALUE_{n}"), value);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

/// Options that settings cannot express. Git would inspect a submodule through another git, which
/// applies the submodule's settings.
fn safe_options(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "status" => &["--ignore-submodules=dirty"],
        "diff" => &["--ignore-submodules=dirty", "--no-ext-diff", "--no-textconv"],
        _ => &[],
    }
}

/// Runs a command to its end with input, and returns its output and stderr.
fn run(
    mut command: Command,
    input: &str,
    read: impl FnOnce(&mut BufReader<ChildStdout>) -> std::io::Result<()>,
) -> std::io::Result<Output> {
    let piped = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = command.stdin(piped).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut said = Vec::new();
    // Pipes have small buffers, so input and output need separate threads.
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let said = &mut said;
        scope.spawn(move || stderr.map(|mut it| std::io::Read::read_to_end(&mut it, said)));
        stdout.map_or(Ok(()), |stdout| read(&mut BufReader::new(stdout)))
    })?;
    Ok(Output { status: child.wait()?, stdout: Vec::new(), stderr: said })
}
