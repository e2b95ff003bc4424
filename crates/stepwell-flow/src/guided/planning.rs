//! The plan phase: a draft, the user's answer, and the tasks of an approved plan.

use stepwell::Event;
use stepwell::model::{MAX_DISCUSS_RETURNS, Phase, Task};

use super::agents::AgentPart;
use super::answers::PlanReply;
use super::discuss::Discussion;
use super::guide::{Guide, Question, part};
use super::prompts::Background;
use super::schedule::beside;
use super::work_plan::{PlanRules, WorkPlan};
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::YesPhase;

/// The most drafts before the work ends; a resume allows more.
const MAX_DRAFTS: u32 = 10;

/// An approved plan.
pub(super) struct Approved {
    pub(super) plan: WorkPlan,
    /// Did a person approve it, with its commands?
    pub(super) by_person: bool,
}

impl Guide<'_, '_> {
    /// Plans until the user approves. The work goes back to the discussion only as often as the
    /// phases allow; after that, a rejected plan is refined.
    pub(super) async fn make_plan(
        &self,
        discussion: &mut Discussion,
        background: &mut Background,
    ) -> Result<Approved, Halt> {
        let (mut feedback, mut returns) = (None::<String>, 0);
        for draft in 1.. {
            let plan = self.draft(draft, background, feedback.as_deref()).await?;
            let approval = self.approval(draft, &plan, returns < MAX_DISCUSS_RETURNS)?;
            match approval.reply {
                PlanReply::Approve => {
                    return Ok(Approved { plan, by_person: approval.by_person });
                }
                PlanReply::Stop => self.leave("stopped", draft, || {
                    format!("the user stopped at draft {draft} of the plan")
                })?,
                PlanReply::Reject(why) if returns < MAX_DISCUSS_RETURNS => {
                    returns += 1;
                    self.enter(Phase::Discuss)?;
                    discussion.hold(self, background, Some(&why)).await?;
                    self.enter(Phase::Plan)?;
                    let said = background.said().join("\n");
                    feedback = Some(format!("it was rejected: {why}\n{said}"));
                }
                PlanReply::Reject(text) | PlanReply::Refine(text) => feedback = Some(text),
            }
            if draft.is_multiple_of(MAX_DRAFTS) {
                self.leave("unapproved", draft, || {
                    format!("no plan was approved in {draft} drafts")
                })?;
            }
        }
        Err(Halt::NotStarted)
    }

    /// A draft of the plan.
    async fn draft(
        &self,
        n: u32,
        background: &Background,
        feedback: Option<&str>,
    ) -> Result<WorkPlan, Halt> {
        let tasks = self.tasks()?;
        let root = self.root()?;
        let has_file = |file: &str| root.join(file).symlink_metadata().is_ok();
        let rules = PlanRules { tasks: &tasks, has_file: &has_file };
        let key = part("plan", n);
        let output = self
            .ask_agent(&AgentPart {
                key: &key,
                agent: &self.config.plan,
                lane: lane("plan"),
                prompt: &|| Ok(background.plan(feedback)),
                read: &|text| Ok(WorkPlan::parse(text, &rules)?.output()),
            })
            .await?;
        let unreadable = || self.flow.failure(&key, "its recorded plan cannot be read");
        WorkPlan::of_output(&output).ok_or_else(|| Halt::Failed(unreadable()))
    }

    /// The user's answer to a draft. With an approval the plan's tasks become the session's.
    /// Rejecting is offered only while the work may go back to the discussion.
    fn approval(&self, draft: u32, plan: &WorkPlan, may_return: bool) -> Result<Approval, Halt> {
        let key = part("approve", draft);
        // The user may have added tasks since the plan was made.
        let others = self.tasks()?;
        let tasks = others.load(beside(plan.tasks.clone(), &others));
        if let Err(refused) = &tasks
            && self.flow.state().memo.result(&key).is_none()
        {
            return Err(self.flow.fail(&key, None, &refused.to_string(), None));
        }
        let tasks = tasks.unwrap_or_default();
        let closing = |text: &str| match PlanReply::read(text) {
            PlanReply::Approve => {
                tasks.iter().map(|task| self.plain_task(task.clone()).into()).collect()
            }
            _ => Vec::<Event>::new(),
        };
        let text = plan.text();
        let reject = if may_return { "reject: why, " } else { "" };
        let prompt = format!(
            "{text}\n\nIs this the plan? (approve, refine: what to change, {reject}or stop)"
        );
        let question = Question {
            prompt,
            default: None,
            opening: Vec::new(),
            closing: &closing,
            agreed: self.config.says_yes(YesPhase::Plan).then(|| "approve".to_owned()),
        };
        let answered = self.ask_person(&key, question)?;
        let by_person = answered.by_person;
        Ok(Approval { reply: PlanReply::read(&answered.text), by_person })
    }

    /// A task without secrets.
    pub(super) fn plain_task(&self, task: Task) -> Task {
        let redact = |text: &str| self.flow.agents.redactor().redact(text).into_owned();
        Task { description: redact(&task.description), ..task }
    }
}

/// The user's answer to a draft.
struct Approval {
    reply: PlanReply,
    by_person: bool,
}
