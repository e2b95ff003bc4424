//! Ship: what changed, a proposed message, and, if the user wants it, a commit. Nothing is pushed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stepwell::{Event, Kind};
use stepwell_files::git::SafeGit;

use super::agents::AgentPart;
use super::answers::CommitReply;
use super::commit_diff::{CommitDiff, fingerprint};
use super::guide::{Guide, Question, done, part};
use super::planning::Approved;
use super::prompts::{Background, DIFF_BYTES, not_run};
use super::text::{last_part, plain};
use super::verify::Verified;
use crate::answer::text_output;
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::{Commit, YesPhase};

/// The most characters of a commit message.
const MAX_MESSAGE: usize = 4_000;

/// What a user whom git does not know has to do. A commit needs a name and an address.
const NO_IDENTITY: &str = "git does not know who commits. Tell it, then resume: \
    git config --global user.name \"YOUR NAME\" && \
    git config --global user.email YOU@EXAMPLE.COM";

/// What is there to commit.
struct Changes {
    /// The commit that is checked out; empty, if there is none.
    base: String,
    /// The session's files that git sees a change in.
    files: Vec<String>,
    /// Why nothing can be committed.
    why_not: Option<String>,
}

/// A commit that a person is asked about.
struct Asked<'a> {
    /// Which time it is.
    n: u32,
    message: &'a str,
    changes: &'a Changes,
    verified: &'a Verified,
}

impl Guide<'_, '_> {
    /// Ships what was done. Returns what became of it, in words. What is committed is what was
    /// shown: if it changed since, it is shown again.
    pub(super) async fn ship(
        &self,
        background: &Background,
        approved: &Approved,
        verified: &Verified,
    ) -> Result<String, Halt> {
        let mut message = None::<String>;
        for n in 1.. {
            let changes = self.changes(n)?;
            if let Some(why) = changes.why_not {
                return Ok(why);
            }
            self.check_identity()?;
            let proposed = match message.take() {
                Some(message) => message,
                None => self.propose(background, approved, &changes).await?,
            };
            let asked = Asked { n, message: &proposed, changes: &changes, verified };
            let agreed = match self.agree_on(&asked)? {
                CommitReply::Commit => proposed,
                CommitReply::Reworded(message) => message,
                CommitReply::Leave => return Ok("nothing was committed".to_owned()),
            };
            if self.has_changed(n, &changes)? {
                message = Some(agreed);
                continue;
            }
            let committed = self.part(&part("commit", 1), || {
                let commit = self.commit(&agreed, &changes)?;
                Ok((json!({ "response": commit, "message": agreed }), Vec::new()))
            })?;
            let commit = committed.get("response").and_then(Value::as_str).unwrap_or_default();
            return Ok(format!("committed as {}", commit.get(..10).unwrap_or(commit)));
        }
        Err(Halt::NotStarted)
    }

    /// Whether a file changed since the user was shown what is committed.
    fn has_changed(&self, n: u32, changes: &Changes) -> Result<bool, Halt> {
        let (next, commit) = (part("changes", n + 1), part("commit", 1));
        let shown = {
            let state = self.flow.state();
            if state.memo.result(&next).is_some() {
                return Ok(true);
            }
            if state.memo.result(&commit).is_some() {
                return Ok(false);
            }
            state.memo.result(&part("shown", n)).cloned()
        };
        let root = self.root()?;
        if self.flow.dry_run.is_some() || self.committed(&SafeGit::new(&root), changes).is_some() {
            return Ok(false);
        }
        let now = json!({ "digest": fingerprint(&root, &changes.files) });
        Ok(shown.is_some_and(|shown| shown != now))
    }

    /// The files that the session changed, in order, each once.
    pub(super) fn changed_files(&self) -> Result<Vec<String>, Halt> {
        let facts = self.flow.session.keyed_events(&[Kind::File])?;
        let files: BTreeSet<String> = facts
            .into_iter()
            .filter_map(|fact| match fact.event {
                Event::File(file) if file.path != "." => Some(file.path),
                _ => None,
            })
            .collect();
        Ok(files.into_iter().collect())
    }

    /// What is there to commit, looked at once each time that the user is shown it.
    fn changes(&self, n: u32) -> Result<Changes, Halt> {
        let session = self.changed_files()?;
        let git = SafeGit::new(&self.root()?);
        let output = self.part(&part("changes", n), || {
            let base = git.text(&["rev-parse", "--verify", "-q", "HEAD"]).unwrap_or_default();
            let is_git = git.holds(&["rev-parse", "--is-inside-work-tree"]);
            let files = if is_git { seen_by_git(&git, &session, &base)? } else { Vec::new() };
            let why_not = match (self.config.commit, is_git, files.is_empty()) {
                (Commit::Never, ..) => Some("nothing was committed"),
                (_, false, _) => Some("nothing was committed: this is no git work tree"),
                (_, true, true) => Some("nothing is left to commit"),
                (_, true, false) => None,
            };
            Ok((json!({ "base": base, "files": files, "why_not": why_not }), Vec::new()))
        })?;
        let text = |key: &str| output.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Changes {
            base: text("base").unwrap_or_default(),
            files: super::text::list_of_texts(output.get("files")),
            why_not: text("why_not"),
        })
    }

    /// Looks whether git knows who commits, before anybody is asked about a commit. It is looked
    /// at each time, until the commit is made: the user can change it and resume.
    fn check_identity(&self) -> Result<(), Halt> {
        let key = part("commit", 1);
        let is_made = self.flow.state().memo.result(&key).is_some();
        if is_made || self.flow.dry_run.is_some() || self.flow.is_halted() {
            return Ok(());
        }
        let git = SafeGit::new(&self.root()?);
        let knows = |who: &str| git.holds(&["var", who]);
        match knows("GIT_AUTHOR_IDENT") && knows("GIT_COMMITTER_IDENT") {
            true => Ok(()),
            false => Err(self.flow.fail(&key, None, NO_IDENTITY, None)),
        }
    }

    /// The commit message that an agent proposes.
    async fn propose(
        &self,
        background: &Background,
        approved: &Approved,
        changes: &Changes,
    ) -> Result<String, Halt> {
        let root = self.root()?;
        let prompt = || {
            let diff = CommitDiff::read(&root, &changes.base, &changes.files);
            let patch = &diff.patch[..diff.patch.floor_char_boundary(DIFF_BYTES)];
            Ok(background.message(&approved.plan, &format!("{}\n\n{patch}", diff.listed())))
        };
        let read = |text: &str| match plain(text, MAX_MESSAGE) {
            message if message.is_empty() => Err("it is empty".to_owned()),
            message => Ok(text_output(message.trim_matches('`').trim())),
        };
        let key = part("message", 1);
        let (agent, lane) = (&self.config.ship, lane("ship"));
        let asked = AgentPart { key: &key, agent, lane, prompt: &prompt, read: &read };
        let output = self.ask_agent(&asked).await?;
        let text = output.get("response").and_then(Value::as_str).unwrap_or_default();
        Ok(text.to_owned())
    }

    /// What the user says to the proposed commit.
    fn agree_on(&self, asked: &Asked<'_>) -> Result<CommitReply, Halt> {
        let Asked { n, message, changes, verified } = *asked;
        let key = part("ship", n);
        let memo = |id: &str| {
            let state = self.flow.state();
            state.memo.result(&key).is_some() || state.memo.gate(id).is_some()
        };
        // Once it was asked, its prompt is on record.
        let (diff, opening) = match memo(&key.to_string()) {
            true => (CommitDiff::default(), Vec::new()),
            false => {
                let root = self.root()?;
                let digest = fingerprint(&root, &changes.files);
                let shown = done(&part("shown", n), json!({ "digest": digest }));
                (CommitDiff::read(&root, &changes.base, &changes.files), vec![shown.into()])
            }
        };
        let again = "The files were changed after you were asked. This is there now:";
        let parts = [
            (n > 1).then(|| again.to_owned()),
            Some(diff.listed()),
            Some(diff.excerpt()),
            not_run(&verified.denied),
            Some(last_part(message, MAX_MESSAGE).to_owned()),
            Some("Commit this? (commit, no, or another message)".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let question = Question {
            prompt: parts.join("\n\n"),
            default: Some("commit".to_owned()),
            opening,
            closing: &|_| Vec::new(),
            agreed: self.config.says_yes(YesPhase::Ship).then(|| "commit".to_owned()),
        };
        Ok(CommitReply::read(&self.ask_person(&key, question)?.text))
    }

    /// The commit that was made already, if the process died right after it: its trailer tells.
    fn committed(&self, git: &SafeGit, changes: &Changes) -> Option<String> {
        let trailer = self.trailer();
        let last = git.text(&["log", "-1", "--format=%B"]).unwrap_or_default();
        let head = git.text(&["rev-parse", "--verify", "-q", "HEAD"]).unwrap_or_default();
        (head != changes.base && last.lines().any(|line| line == trailer)).then_some(head)
    }

    fn trailer(&self) -> String {
        format!("Stepwell-Session: {}", self.flow.session.id())
    }

    /// Commits the session's files and nothing else, once: a commit that was made before the
    /// process died is found by its trailer.
    fn commit(&self, message: &str, changes: &Changes) -> Result<String, String> {
        let root = self.root().map_err(|_| "the workspace is gone".to_owned())?;
        let git = SafeGit::new(&root);
        if let Some(made) = self.committed(&git, changes) {
            return Ok(made);
        }
        let paths = changes.files.join("\0");
        let from_input = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let add = ["--literal-pathspecs", "add", "--all"];
        git.text_with_input(&[&add[..], &from_input[..]].concat(), &paths)?;
        let message = format!("{}\n\n{}", message.trim(), self.trailer());
        let commit = ["--literal-pathspecs", "commit", "--quiet", "--only", "-m", &message];
        git.text_with_input(&[&commit[..], &from_input[..]].concat(), &paths)?;
        git.text(&["rev-parse", "HEAD"])
    }
}

/// Those of some files that git sees a change in, and does not ignore.
fn seen_by_git(git: &SafeGit, files: &[String], base: &str) -> Result<Vec<String>, String> {
    let names = |text: String| -> BTreeSet<String> {
        text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let mut seen =
        names(git.text(&["ls-files", "--others", "--cached", "--exclude-standard", "-z"])?);
    if !base.is_empty() {
        let changed = ["diff", "--name-only", "--no-renames", "--relative", "-z", "HEAD"];
        seen = names(git.text(&["ls-files", "--others", "--exclude-standard", "-z"])?);
        seen.extend(names(git.text(&changed)?));
    }
    Ok(files.iter().filter(|file| seen.contains(*file)).cloned().collect())
}
