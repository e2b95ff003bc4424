//! The ship phase: the changes, a proposed message, and, if the user wants it, a commit. Nothing is
//! pushed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stepwell::Seq;

use super::agents::AgentPart;
use super::answers::CommitReply;
use super::commit_diff::CommitDiff;
use super::guide::{Guide, Question, done, part};
use super::planning::Approved;
use super::prompts::{Background, DIFF_BYTES, not_run};
use super::repository::{Repository, not_here};
use super::schedule::Verified;
use crate::answer::text_output;
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::{Commit, YesPhase};
use crate::text::{first_line, last_part, plain};

/// The most characters of a commit message.
const MAX_MESSAGE: usize = 4_000;

/// The message if git is set to sign, and the commit is not signed.
const UNSIGNED: &str = "It is not signed: git commit --amend -S signs it.";

/// The message if no branch is checked out.
const DETACHED: &str = "No branch is checked out: git branch NAME keeps the commit.";

/// How much of a message is shown in a short mention.
const SHOWN_MESSAGE: usize = 80;

const NOTHING_LEFT: &str = "nothing is left to commit";

const NOT_COMMITTED: &str = "nothing was committed";

/// The possible answers to the question about a commit. Any other text commits nothing.
const HOW: &str = "Commit this? (commit, no: why, or message: another message)";

/// The changes to commit.
struct Changes {
    /// The checked-out commit; empty, if there is none.
    base: String,
    /// The session's files that git considers changed.
    files: Vec<String>,
    /// The files that changed in another repository.
    apart: Vec<String>,
    /// Why nothing can be committed.
    why_not: Option<String>,
}

/// A question about a commit.
struct Asked<'a> {
    /// The number of the question.
    n: u32,
    message: &'a str,
    changes: &'a Changes,
    verified: &'a Verified,
}

impl Guide<'_, '_> {
    /// Ships the work, and returns a description of the result. Only changes that the user has seen
    /// are committed: if they changed since, they are shown again.
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
            if !self.was_asked(n) && self.is_nothing_left(&changes)? {
                return Ok(NOTHING_LEFT.to_owned());
            }
            self.check_repository(&changes)?;
            let proposed = match message.take() {
                Some(message) => message,
                None => self.propose(background, approved, &changes).await?,
            };
            let asked = Asked { n, message: &proposed, changes: &changes, verified };
            let agreed = match self.agree_on(&asked)? {
                CommitReply::Commit => proposed,
                CommitReply::Reworded(message) => message,
                CommitReply::Leave(why) if why.is_empty() => return Ok(NOT_COMMITTED.to_owned()),
                CommitReply::Leave(why) => {
                    let why = first_line(&why, SHOWN_MESSAGE);
                    return Ok(format!("{NOT_COMMITTED}: you said {why:?}"));
                }
            };
            if self.has_changed(n, &changes)? {
                message = Some(agreed);
                continue;
            }
            return self.commit(&agreed, &changes);
        }
        Err(Halt::NotStarted)
    }

    /// Did the changes change since the user saw them, in the files or in git?
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
        let repository = Repository::at(&self.root()?);
        if self.committed(&repository, changes).is_some() {
            return Ok(false);
        }
        Ok(shown.is_some_and(|shown| shown != repository.state_of(&changes.files)))
    }

    /// The files that the work changed, in order, each once. Changes during checks and trials of
    /// the program are left out, because the user may have made them.
    pub(super) fn changed_files(&self) -> Result<Vec<String>, Halt> {
        let mut recorded = self.recorded_files()?;
        for lane in self.lanes_of_trials() {
            for seq in self.files_before_ends(&lane, Seq::ZERO, &recorded) {
                recorded.remove(&seq);
            }
        }
        let files: BTreeSet<String> = recorded.into_values().collect();
        Ok(files.into_iter().collect())
    }

    /// The changes to commit, determined once for each question.
    fn changes(&self, n: u32) -> Result<Changes, Halt> {
        let session = self.changed_files()?;
        let repository = Repository::at(&self.root()?);
        let output = self.part(&part("changes", n), || {
            let (base, is_git) = (repository.head(), repository.exists());
            let files = if is_git { repository.changed(&session)? } else { Vec::new() };
            let apart = repository.changed_apart(&session);
            let why_not = match (self.config.commit, is_git, files.is_empty()) {
                (Commit::Never, ..) => Some(NOT_COMMITTED.to_owned()),
                (_, false, _) => Some("nothing was committed: this is no git work tree".to_owned()),
                (_, true, true) => Some(match not_here(&apart) {
                    Some(elsewhere) => format!("nothing was committed: {elsewhere}"),
                    None => NOTHING_LEFT.to_owned(),
                }),
                (_, true, false) => None,
            };
            let found = json!({ "base": base, "files": files, "apart": apart, "why_not": why_not });
            Ok((found, Vec::new()))
        })?;
        let text = |key: &str| output.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Changes {
            base: text("base").unwrap_or_default(),
            files: crate::text::list_of_texts(output.get("files")),
            apart: crate::text::list_of_texts(output.get("apart")),
            why_not: text("why_not"),
        })
    }

    /// Checks that a commit is possible before a person is asked. The check is repeated until the
    /// commit is made, because the user can fix the obstacle and resume.
    fn check_repository(&self, changes: &Changes) -> Result<(), Halt> {
        let key = part("commit", 1);
        let is_made = self.flow.state().memo.result(&key).is_some();
        if is_made || self.flow.dry_run.is_some() || self.flow.is_halted() {
            return Ok(());
        }
        if self.is_nothing_left(changes)? {
            return Ok(());
        }
        let repository = Repository::at(&self.root()?);
        let left = repository.left(&changes.files, &changes.base);
        match left.map_or_else(Some, |left| repository.obstacle(&left)) {
            None => Ok(()),
            Some(why) => Err(self.flow.fail(&key, None, &why, None)),
        }
    }

    /// An agent's proposed commit message.
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

    /// The user's answer to the proposed commit.
    fn agree_on(&self, asked: &Asked<'_>) -> Result<CommitReply, Halt> {
        let Asked { n, message, changes, verified } = *asked;
        let key = part("ship", n);
        // After it was asked, its prompt is recorded.
        let root = self.root()?;
        let repository = Repository::at(&root);
        let (diff, opening) = match self.was_asked(n) {
            true => (CommitDiff::default(), Vec::new()),
            false => {
                let shown = done(&part("shown", n), repository.state_of(&changes.files));
                (CommitDiff::read(&root, &changes.base, &changes.files), vec![shown.into()])
            }
        };
        let again = "The files were changed after you were asked. This is there now:";
        let parts = [
            (n > 1).then(|| again.to_owned()),
            Some(diff.listed()),
            Some(diff.excerpt()),
            not_run(&verified.denied),
            not_here(&changes.apart),
            repository.wants_signature().then(|| UNSIGNED.to_owned()),
            repository.is_detached().then(|| DETACHED.to_owned()),
            Some(last_part(message, MAX_MESSAGE).to_owned()),
            Some(HOW.to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let question = Question {
            prompt: parts.join("\n\n"),
            // An empty line commits nothing.
            default: None,
            opening,
            closing: &|_| Vec::new(),
            agreed: self.config.says_yes(YesPhase::Ship).then(|| "commit".to_owned()),
        };
        Ok(CommitReply::read(&self.ask_person(&key, question)?.text))
    }

    /// Commits the changes that were shown. Returns a description of the result.
    fn commit(&self, message: &str, changes: &Changes) -> Result<String, Halt> {
        let key = part("commit", 1);
        let repository = Repository::at(&self.root()?);
        if self.is_nothing_left(changes)? {
            return Ok(NOTHING_LEFT.to_owned());
        }
        let is_recorded = self.flow.state().memo.result(&key).is_some();
        if !is_recorded {
            let says = || Some(format!("git commit: {}", first_line(message, SHOWN_MESSAGE)));
            self.note_upcoming(&key, Some(self.config.ship.as_str()), says)?;
        }
        let committed = self.part(&key, || {
            let commit = match self.committed(&repository, changes) {
                Some(made) => made,
                None => {
                    let message = format!("{}\n\n{}", message.trim(), self.trailer());
                    let left = repository.left(&changes.files, &changes.base)?;
                    let head = repository.commit(&left, &message)?;
                    // Another process may have committed at the same moment.
                    self.committed(&repository, changes).unwrap_or(head)
                }
            };
            Ok((json!({ "response": commit, "message": message }), Vec::new()))
        })?;
        let commit = committed.get("response").and_then(Value::as_str).unwrap_or_default();
        let mut words = format!("committed as {}", commit.get(..10).unwrap_or(commit));
        if repository.wants_signature() {
            words.push_str(", not signed");
        }
        if repository.is_detached() {
            words.push_str(", on no branch: git branch NAME keeps it");
        }
        let elsewhere = not_here(&changes.apart).map(|it| format!("; {it}"));
        Ok(words + &elsewhere.unwrap_or_default())
    }

    /// Did the user commit everything since the changes were determined?
    fn is_nothing_left(&self, changes: &Changes) -> Result<bool, Halt> {
        if self.flow.state().memo.result(&part("commit", 1)).is_some() {
            return Ok(false);
        }
        let repository = Repository::at(&self.root()?);
        let is_ours = self.committed(&repository, changes).is_some();
        let left = repository.left(&changes.files, &changes.base);
        Ok(!is_ours && left.is_ok_and(|left| left.is_empty()))
    }

    /// Was the question about the commit asked, or agreed to in advance?
    fn was_asked(&self, n: u32) -> bool {
        let (key, state) = (part("ship", n), self.flow.state());
        state.memo.result(&key).is_some() || state.memo.gate(&key.to_string()).is_some()
    }

    /// The commit that was already made, if the process died right after it. Its trailer identifies
    /// it.
    fn committed(&self, repository: &Repository, changes: &Changes) -> Option<String> {
        repository.commit_with(&self.trailer(), &changes.base)
    }

    fn trailer(&self) -> String {
        format!("Stepwell-Session: {}", self.flow.session.id())
    }
}
