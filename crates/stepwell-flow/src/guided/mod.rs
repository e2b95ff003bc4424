//! Guided work: from a goal to a commit, through the phases of the workflow set.
//!
//! It is a pattern like the others: a function that walks the phases and skips recorded nodes.
//! Entering a phase, asking an agent or a person, running a check and committing are nodes; the
//! session's tasks and questions are recorded in the same append as the node that decides about
//! them. So an interrupted run continues in the same phase and task, and nothing is asked or run
//! twice.
//!
//! ```text
//! discuss -> plan -> execute -> verify -> runtime -> ship
//!    ^        |         ^         |          |
//!    +--------+         +---------+----------+
//!   rejected: at most    what fails becomes tasks:
//!   three times          at most so many rounds
//! ```

mod agents;
mod answers;
mod calls;
mod commit_diff;
mod discuss;
mod guide;
mod outline;
mod planning;
mod prompts;
mod repository;
mod schedule;
mod ship;
mod subagents;
mod survey;
mod tasks;
mod verify;
mod work_plan;

use std::path::PathBuf;

use serde_json::{Value, json};
use stepwell::model::Phase;

use crate::flow::Flow;
use crate::halt::Halt;
use crate::pattern::step::Completed;
use crate::spec::Guided;
use discuss::Discussion;
use guide::{Guide, part};
use prompts::Background;

pub use answers::{
    CommitReply, FailureReply, Issue, PlanReply, QuestionReply, Review, TaskReport, Unclear,
};
pub use outline::{GOAL, Outline, WorkAgent};
pub use schedule::{Finding, dependents, is_over, ready, repairs};
pub use survey::Survey;
pub use verify::ROUNDS;
pub use work_plan::{MAX_CHECKS, PlanRules, WorkPlan};

/// Walks the phases.
pub(crate) async fn walk(flow: &Flow<'_>, config: &Guided) -> Result<Completed, Halt> {
    let goal = config.goal.render(&flow.variables);
    let unreadable = |error| flow.fail(&part("goal", 1), None, &format!("goal: {error}"), None);
    let guide = Guide::new(flow, config, goal.map_err(unreadable)?);
    guide.enter(Phase::Initialize)?;
    let mut background = guide.look_around()?;
    let mut discussion = Discussion::default();
    guide.enter(Phase::Discuss)?;
    discussion.hold(&guide, &mut background, None).await?;
    guide.enter(Phase::Plan)?;
    let approved = guide.make_plan(&mut discussion, &mut background).await?;
    guide.enter(Phase::Execute)?;
    guide.execute(&background).await?;
    let verified = guide.verify(&background, &approved).await?;
    guide.enter(Phase::Ship)?;
    let commit = guide.ship(&background, &approved, &verified).await?;
    guide.finish()?;
    let summary = prompts::summary(&guide.tasks()?, &verified, &commit);
    let mut scope = flow.variables.clone();
    scope.set("last_response", &summary);
    Ok(Completed { scope, last: summary.into() })
}

impl Guide<'_, '_> {
    /// Examines the project and the lessons of earlier sessions, once.
    fn look_around(&self) -> Result<Background, Halt> {
        let root = self.root()?;
        let output = self.part(&part("survey", 1), || {
            let survey = serde_json::to_value(Survey::of(&root)).unwrap_or_default();
            let lessons = self.flow.session.well().lessons(self.flow.session.id());
            let redact = |text: &str| self.flow.agents.redactor().redact(text).into_owned();
            let survey: Value =
                serde_json::from_str(&redact(&survey.to_string())).unwrap_or(survey);
            Ok((json!({ "survey": survey, "lessons": redact(&lessons) }), Vec::new()))
        })?;
        let survey = output.get("survey").cloned().unwrap_or_default();
        let lessons = output.get("lessons").and_then(Value::as_str).unwrap_or_default();
        Ok(Background {
            goal: self.goal.clone(),
            survey: serde_json::from_value(survey).unwrap_or_default(),
            questions: Vec::new(),
            lessons: lessons.to_owned(),
        })
    }

    /// The folder in which the work is done.
    fn root(&self) -> Result<PathBuf, Halt> {
        if self.flow.dry_run.is_some() {
            return Ok(self.flow.session.info()?.head.workspace.into());
        }
        let setup = self.flow.agents.setup(self.config.execute.as_str(), None);
        let fail = |why: String| self.flow.fail(&part("workspace", 1), None, &why, None);
        Ok(setup.map_err(fail)?.place.root.clone())
    }
}
