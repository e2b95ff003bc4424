//! Writing a session's folder, as M31A's own loader reads it.

use std::io::Write;

use stepwell::model::{Origin, Phase, PhaseSet, Question, Role, Time};
use stepwell::work::{Tasks, Work};
use stepwell::{Event, Lane, Message, Recorded, SessionId, Status, Stepwell};

use super::kept::{ASIDE, Files, strings};
use super::phase_walk::phase;
use super::session::{checkpoints, questions, stands};
use super::{SESSION, SYSTEM, message, tasks};
use crate::json::fields::{Fields, quoted, text_of};
use crate::original::{self, own_name};
use crate::page::work::said;
use crate::read::steps::Steps;
use crate::snapshot::{
    Aside, Escapes, Holds, Layout, Live, Object, Said, Style, TimeForm, completed, list, moment,
    name, still, styled,
};
use crate::write::facts::{Says, count_facts};
use crate::write::writer::{Exported, Losses, Outlet, SUBAGENTS};
use crate::{Error, Result};

const STYLE: Style = Style { layout: Layout::Tight, escapes: Escapes::Html };

/// So many checkpoints are kept there.
const CHECKPOINTS: usize = 2;

/// The fields of a session, in their order.
const FIELDS: [&str; 17] = [
    "id",
    "parent_id",
    "children_ids",
    "label",
    "tags",
    "model",
    "provider",
    "started_at",
    "message_count",
    "workflow_phase",
    "schema_version",
    "messages",
    "tasks",
    "project",
    "resumed_at",
    "workflow_goal",
    "discuss_questions",
];

/// Writes a session.
pub(super) fn write(well: &Stepwell, id: &SessionId, to: &mut Outlet<'_>) -> Result<Exported> {
    let head = well.info(id)?.head;
    if let Some(same) = original::write_folder(well, &head, (SYSTEM, own_name(&head)), to)? {
        return Ok(same);
    }
    let mut live = Live::read(well, id, SYSTEM, &[Lane::main(), message::skipped()])?;
    let mut exported = std::mem::take(&mut live.exported);
    let losses = &mut exported.losses;
    let kept = live.kept.clone().unwrap_or_else(|| "{}".to_owned());
    let mut files = Files::kept(&kept);
    let work =
        Work::at(live.head.seq, live.others.iter().chain(&live.last_step).cloned().collect());
    let held = plan(&work.tasks, &mut files, losses);
    state(&work, &live, &mut files);
    stops(&live, &mut files);
    let name = name_of(&live);
    if let Some(aside) = Aside::write(&live, &name, &holds(&live, held), losses) {
        put(to, ASIDE, &format!("{aside}\n"))?;
    }
    tell_facts(&live, losses);
    let messages = list(messages(&live.said, losses));
    let kin = Kin::of(well, &live, losses)?;
    let (resumed_at, questions) = (well.resumed_at(&live.head)?, work.questions);
    let page = Page { live: &live, id: &name, messages: &messages, kin, questions, resumed_at };
    put(to, SESSION, &styled(&page.session(), STYLE))?;
    put(to, "messages.json", &styled(&messages, STYLE))?;
    files.iter().try_for_each(|(name, text)| put(to, name, text))?;
    Ok(exported)
}

/// Names what M31A does not say of the session. Status, cost and agent are named where they are
/// put aside; its task is its goal, or what was asked first.
fn tell_facts(live: &Live, losses: &mut Losses) {
    let head = &live.head;
    let asked = spoken(live).find(|message| message.role == Role::User).map(Message::text);
    let ours = head.source.as_ref().is_some_and(|source| source.system == SYSTEM);
    let asked = asked.unwrap_or_default();
    let mut steps = Steps::default();
    let main = spoken(live).filter(|message| message.lane == Lane::main());
    let done = main.filter_map(|message| steps.said(message)).count() as u64;
    let says = Says {
        status: Some((head.status, head.stop_reason)),
        error: true,
        task: if ours { &head.task } else { head.goal.as_deref().unwrap_or(&asked) },
        agent: &head.agent,
        model: &head.model,
        provider: head.model_provider(),
        // It has no place for them: whoever reads it counts them.
        steps: if ours { head.steps } else { done.min(head.steps) },
        cost: true,
        updated: true,
        began: None,
    };
    count_facts(losses, head, &says);
    if !ours {
        head.metadata
            .keys()
            .for_each(|key| losses.name("attributes of the session", format!("metadata.{key}")));
    }
    let named = live.others.iter().filter_map(|it| match &it.event {
        Event::Checkpoint(it) if !it.name.starts_with("phase-") => Some(it.name.as_str()),
        _ => None,
    });
    named.for_each(|name| losses.name("names of checkpoints", name));
}

/// The messages that are written.
fn spoken(live: &Live) -> impl Iterator<Item = &Message> {
    live.said.iter().filter_map(|said| match said {
        Said::Message { message, .. } => Some(message),
        _ => None,
    })
}

fn put(to: &mut Outlet<'_>, name: &str, text: &str) -> Result<()> {
    match to.file(name)? {
        Some(mut file) => {
            file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(Error::Write)
        }
        None => Err(Error::Shape { wants: "a folder" }),
    }
}

fn name_of(live: &Live) -> String {
    let source = live.head.source.as_ref().filter(|source| source.system == SYSTEM);
    source.map_or_else(|| live.head.id.to_string(), |source| source.id.clone())
}

/// The sessions that a session grew out of and started, by their names there.
#[derive(Debug, Default)]
struct Kin {
    parent: Option<String>,
    children: Vec<String>,
}

impl Kin {
    fn of(well: &Stepwell, live: &Live, losses: &mut Losses) -> Result<Self> {
        let there = |head: &stepwell::log::Head| match &head.source {
            Some(source) if source.system == SYSTEM => source.id.clone(),
            _ => head.id.to_string(),
        };
        let parent = match &live.head.origin {
            Origin::Subagent { parent } => {
                let known = well.info(parent).ok();
                Some(known.map_or_else(|| parent.to_string(), |it| there(&it.head)))
            }
            Origin::Root | Origin::Fork { .. } => None,
        };
        let children: Vec<String> =
            well.subagents(&live.head.id)?.iter().map(|it| there(&it.head)).collect();
        // Each has a folder of its own there.
        children.iter().for_each(|_| losses.count(SUBAGENTS));
        Ok(Self { parent, children })
    }
}

/// What the session's own file is made of.
struct Page<'a> {
    live: &'a Live,
    id: &'a str,
    messages: &'a str,
    kin: Kin,
    questions: Vec<Question>,
    resumed_at: Option<Time>,
}

impl Page<'_> {
    fn session(&self) -> String {
        let Self { live, id, kin, .. } = self;
        let head = &live.head;
        let raw = live.kept.as_deref().unwrap_or("{}");
        let kept = Fields::parse(raw).ok().and_then(|it| it.object("session")).unwrap_or_default();
        let mut object = Object::new();
        object.put_text("id", id);
        match (kept.raw("parent_id"), &kin.parent) {
            (Some(raw), _) => object.put("parent_id", raw),
            (None, Some(parent)) => object.put_text("parent_id", parent),
            (None, None) => {}
        }
        match kept.raw("children_ids") {
            Some(raw) => object.put("children_ids", raw),
            None if kin.children.is_empty() => {}
            None => object.put("children_ids", &strings(&kin.children)),
        }
        let label = head.label.as_ref().map(|label| quoted(label));
        put_if(&mut object, &kept, "label", label, |raw| {
            text_of(raw).is_some_and(|it| head.label.as_ref().is_none_or(|label| it == **label))
        });
        let tags = (!head.tags.is_empty()).then(|| strings(&head.tags));
        put_if(&mut object, &kept, "tags", tags, |raw| {
            let all: std::collections::BTreeSet<_> =
                crate::snapshot::texts(Some(raw)).into_iter().collect();
            head.tags.is_subset(&all)
        });
        for (field, now) in [("model", head.model.as_str()), ("provider", head.model_provider())] {
            let same = |_: &str| name(&kept, field) == *now;
            object.put(field, still(kept.raw(field), same, &quoted(now)));
        }
        let began = quoted(&TimeForm::Zulu.text(head.created_at));
        let same = |raw: &str| moment(raw) == Some(head.created_at);
        object.put("started_at", still(kept.raw("started_at"), same, &began));
        object.put("message_count", &live.said.len().to_string());
        let now = phase_of(live);
        let same = |raw: &str| text_of(raw).and_then(|it| phase(&it)) == Some(now);
        object
            .put("workflow_phase", still(kept.raw("workflow_phase"), same, &quoted(now.as_str())));
        self.rest(&mut object, &kept);
        object.put_others(&kept, &FIELDS);
        object.end()
    }

    /// The later fields of a session.
    fn rest(&self, object: &mut Object, kept: &Fields<'_>) {
        let Self { live, messages, .. } = self;
        let head = &live.head;
        let known = kept.raw("id").is_some();
        if let Some(version) = kept.raw("schema_version").or((!known).then_some("1")) {
            object.put("schema_version", version);
        }
        // In its short form a session has neither messages nor tasks.
        if !known || kept.raw("messages").is_some() {
            object.put("messages", messages);
        }
        if let Some(tasks) = kept.raw("tasks").or((!known).then_some("[]")) {
            object.put("tasks", tasks);
        }
        let project = project(live);
        if let Some(project) = kept.raw("project").or((!known).then_some(&project)) {
            object.put("project", project);
        }
        let resumed = self.resumed_at.map(|at| quoted(&TimeForm::Zulu.text(at)));
        put_if(object, kept, "resumed_at", resumed, |raw| {
            self.resumed_at.is_none_or(|at| moment(raw) == Some(at))
        });
        let goal = head.goal.clone().unwrap_or_default();
        let of_project = kept.object("project").and_then(|it| Some(it.text("goal")?.into_owned()));
        let own = of_project.as_deref() != Some(goal.as_str()) && !goal.is_empty();
        put_if(object, kept, "workflow_goal", own.then(|| quoted(&goal)), |raw| {
            text_of(raw).is_some_and(|it| it == goal || it.is_empty())
        });
        let texts: Vec<String> = self.questions.iter().map(|it| it.text.clone()).collect();
        let now = (!texts.is_empty()).then(|| strings(&texts));
        put_if(object, kept, "discuss_questions", now, |_| {
            questions(kept).iter().map(|it| &it.text).eq(texts.iter())
        });
    }
}

/// A field that is there only when it says something: what was kept while it says the same.
fn put_if(
    object: &mut Object,
    kept: &Fields<'_>,
    field: &str,
    now: Option<String>,
    same: impl FnOnce(&str) -> bool,
) {
    match (kept.raw(field).filter(|raw| same(raw)), now) {
        (Some(raw), _) => object.put(field, raw),
        (None, Some(now)) => object.put(field, &now),
        (None, None) => {}
    }
}

fn project(live: &Live) -> String {
    let Some(project) = &live.created.project else { return "null".to_owned() };
    let mut object = Object::new();
    object.put_text("goal", live.head.goal.as_deref().unwrap_or(&live.created.task));
    object.put_text("project_type", &project.project_type);
    object.put_text("framework", &project.framework);
    let answers = serde_json::to_string(&project.answers).unwrap_or_else(|_| "{}".to_owned());
    object.put("answers", &answers);
    object.put_text("created_at", &TimeForm::Zulu.text(live.head.created_at));
    object.end()
}

/// Where the work is. A session without such phases is where its status says.
fn phase_of(live: &Live) -> Phase {
    match (live.head.phase, live.head.status) {
        (Some(phase), _) if PhaseSet::Workflow.has(phase) => phase,
        (_, Status::Success) => Phase::Ship,
        (Some(Phase::Investigating), _) => Phase::Discuss,
        (Some(Phase::Planning | Phase::Approval), _) => Phase::Plan,
        (Some(Phase::Validating), _) => Phase::Verify,
        (Some(Phase::Executing), _) => Phase::Execute,
        _ => Phase::Idle,
    }
}

fn messages(said: &[Said], losses: &mut Losses) -> Vec<String> {
    let object = |said: &Said| match said {
        Said::Raw(raw) => raw.clone(),
        Said::Message { at, message, kept, .. } => {
            let usual = message::write(message, *at, losses);
            match kept {
                None => usual,
                Some(kept) => completed(&Fields::parse(&usual).unwrap_or_default(), kept),
            }
        }
    };
    said.iter().map(object).collect()
}

/// Whether `TASKS.md` says all that there is to say of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Told,
    Nearly,
}

fn plan(planned: &Tasks, files: &mut Files, losses: &mut Losses) -> Plan {
    let as_kept = files.get("TASKS.md").is_some_and(|text| {
        let (read, _) = tasks::read(text);
        read.iter().eq(planned.iter())
    });
    if as_kept || planned.is_empty() {
        return Plan::Told;
    }
    match tasks::write(planned) {
        Some(text) => {
            files.put("TASKS.md", text);
            Plan::Told
        }
        None => {
            losses.count("names, pipes or line breaks of tasks");
            files.put("TASKS.md", tasks::nearest(planned));
            Plan::Nearly
        }
    }
}

fn state(work: &Work, live: &Live, files: &mut Files) {
    let now = phase_of(live);
    let kept = files.get("STATE.md").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("**Phase:**"));
        line.and_then(|word| phase(word.trim()))
    });
    if kept != Some(now) {
        let said = said(&live.head, work);
        let (progress, action) = (said.progress, said.last_action.replace('\n', " "));
        let text = format!(
            "# State\n\n**Phase:** {now}\n**Progress:** {progress}\n**Last Action:** {action}\n\
             **Timestamp:** {}\n",
            TimeForm::Zulu.text(live.head.updated_at)
        );
        files.put("STATE.md", text);
    }
}

/// The last checkpoints.
fn stops(live: &Live, files: &mut Files) {
    let taken: Vec<&Recorded> =
        live.others.iter().filter(|it| matches!(it.event, Event::Checkpoint(_))).collect();
    let kept = files.get("checkpoint.json").map(|raw| checkpoints(raw).0).unwrap_or_default();
    let same = taken.len() == kept.len()
        && taken
            .iter()
            .zip(&kept)
            .all(|(one, (_, _, other))| matches!(&one.event, Event::Checkpoint(it) if it == other));
    if same {
        return;
    }
    let last = &taken[taken.len().saturating_sub(CHECKPOINTS)..];
    let object = |recorded: &&Recorded| {
        let Event::Checkpoint(checkpoint) = &recorded.event else { return String::new() };
        let named = checkpoint.name.strip_prefix("phase-").and_then(phase);
        let before =
            |said: &&Said| matches!(said, Said::Message { seq, .. } if *seq < recorded.seq);
        let planned = live
            .others
            .iter()
            .filter(|it| matches!(it.event, Event::Task(_)) && it.seq < recorded.seq);
        let mut object = Object::new();
        object.put_text("phase", named.unwrap_or_else(|| phase_of(live)).as_str());
        object.put_text("timestamp", &TimeForm::Zulu.text(recorded.at));
        object.put("message_count", &live.said.iter().filter(before).count().to_string());
        object.put("task_count", &planned.count().to_string());
        if let Some(goal) = &live.head.goal {
            object.put_text("goal", goal);
        }
        object.end()
    };
    files.put("checkpoint.json", styled(&list(last.iter().map(object)), STYLE));
}

fn holds(live: &Live, plan: Plan) -> Vec<Holds> {
    let head = &live.head;
    let mut holds = vec![Holds::Label, Holds::Goal];
    if plan == Plan::Told {
        holds.push(Holds::Tasks);
    }
    let phases = live.others.iter().filter(|it| matches!(it.event, Event::Checkpoint(_)));
    if phases.count() <= CHECKPOINTS {
        holds.push(Holds::Checkpoints);
    }
    if head.phases == Some(PhaseSet::Workflow) {
        holds.push(Holds::Phases);
    }
    let mut steps = Steps::default();
    for message in spoken(live).filter(|message| message.lane == Lane::main()) {
        steps.said(message);
    }
    let told = stands(phase_of(live), steps.status());
    if (told.status, told.reason) == (head.status, head.stop_reason) {
        holds.push(Holds::Status);
    }
    holds
}
