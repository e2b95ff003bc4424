//! Guided work: a goal becomes a flow through the phases of the workflow set.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use stepwell_files::git::SafeGit;
use stepwell_flow::guided::{GOAL, Outline};
use stepwell_flow::spec::{Problem, SpecError};

use crate::error::{Error, Result};
use crate::handle::RunHandle;
use crate::request::{FlowOptions, FlowRequest, Interrupt, RunOptions};
use crate::runtime::Runtime;

/// Asks for guided work.
#[derive(Clone, Debug, Default)]
pub struct WorkRequest {
    /// What is to be reached.
    pub goal: String,
    /// What the work is to be like. Its model may as well be given in the options.
    pub outline: Outline,
    /// How its agents work.
    pub options: RunOptions,
    /// Stops it, also before it has begun.
    pub interrupt: Interrupt,
}

impl WorkRequest {
    /// The flow that does the work.
    ///
    /// # Errors
    /// If the outline makes no sense.
    pub fn flow(self) -> Result<FlowRequest> {
        let Self { goal, mut outline, mut options, interrupt } = self;
        // What was typed for all agents gives way to what was typed for one.
        outline.model = options.model.take().or(outline.model).map(absolute);
        outline.models = outline.models.into_iter().map(|(of, it)| (of, absolute(it))).collect();
        let reading = Arc::new(outline.read().map_err(refused)?);
        let variables = BTreeMap::from([(GOAL.to_owned(), goal.into())]);
        let (text, flow) = (outline.text(), FlowOptions::default());
        Ok(FlowRequest { path: PathBuf::new(), text, reading, variables, options, flow, interrupt })
    }
}

impl Runtime {
    /// Starts guided work, in a session of its own. Returns when the session is there.
    ///
    /// # Errors
    /// As [`start_flow`](Self::start_flow); and if tasks are to be done in worktrees, which the
    /// workspace cannot have.
    pub fn start_work(&self, request: WorkRequest) -> Result<RunHandle> {
        if request.outline.parallel.is_some() {
            self.check_worktrees()?;
        }
        self.start_flow(request.flow()?)
    }

    /// A worktree begins at the last commit, so that has to be there. What the user changed since
    /// would be shown and committed as the work's.
    fn check_worktrees(&self) -> Result<()> {
        let git = SafeGit::new(&self.workspace().place.root);
        let no = |why: &str| {
            Err(Error::config(format!("tasks cannot be done in worktrees here: {why}")))
        };
        if !git.holds(&["rev-parse", "--verify", "-q", "HEAD"]) {
            return no("this is no git work tree with a commit");
        }
        match git.text(&["status", "--porcelain", "--untracked-files=no"]) {
            Ok(changes) if changes.is_empty() => Ok(()),
            Ok(_) => no("there are changes that are not committed"),
            Err(why) => no(&why),
        }
    }
}

/// Why an outline makes no sense, without the spec that it becomes: nobody wrote that.
fn refused(error: SpecError) -> Error {
    let SpecError::Invalid { problems, .. } = error else {
        return stepwell_flow::Error::from(error).into();
    };
    let line = |problem: &Problem| {
        let path = problem.path.to_string();
        let path = path.strip_prefix("pattern.config.").unwrap_or(&path);
        format!("{path}: {}", problem.what)
    };
    let lines: Vec<String> = problems.iter().map(line).collect();
    Error::usage(lines.join("; "))
}

/// A script's file is found from any folder.
fn absolute(model: String) -> String {
    match model.strip_prefix("script:") {
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
            format!("script:{}", path.display())
        }
        None => model,
    }
}
