//! `tasks`: the agent's own plan. It only changes the session's record, so the plan outlives
//! compactions, crashes and resumes.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell::model::{Effect, Task, TaskStatus};
use stepwell::work::{TaskEdit, Tasks};

use super::{Done, Plan, Tool, ToolEnv, parse, spec, word};
use crate::provider::ToolSpec;

#[derive(Debug)]
pub(super) struct Planning {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    #[serde(default)]
    tasks: Vec<Item>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Add,
    Update,
    Depend,
}

/// A planned task in the model's call.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Item {
    id: Option<String>,
    kind: Option<String>,
    description: Option<String>,
    status: Option<TaskStatus>,
    files: Option<Vec<String>>,
    after: Vec<String>,
    not_after: Vec<String>,
}

pub(super) fn tasks() -> Planning {
    let statuses = TaskStatus::ALL.map(TaskStatus::as_str);
    let names =
        |says: &str| json!({ "type": "array", "items": { "type": "string" }, "description": says });
    let item = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "id": { "type": "string", "description": "Its id. For add, the default is the next free number." },
            "description": { "type": "string", "description": "What to do." },
            "kind": { "type": "string", "description": "For example create, modify or test." },
            "status": { "type": "string", "enum": statuses },
            "files": names("The files that it concerns."),
            "after": names("Ids of tasks that must come first, in addition to earlier ones."),
            "not_after": names("For depend: ids of tasks that no longer have to come first."),
        },
    });
    let spec = spec(
        "tasks",
        "Your plan: tasks that are kept with the session, whatever happens to this conversation. \
         list shows them; add adds tasks; update changes the status, description, kind or files \
         of tasks; depend sets which come first. A task can begin only when those before it are \
         done or skipped. A call is applied completely or not at all.",
        &json!({
            "action": {
                "type": "string",
                "enum": ["list", "add", "update", "depend"],
                "description": "The operation on the plan.",
            },
            "tasks": { "type": "array", "items": item, "description": "For all actions but list." },
        }),
        &["action"],
    );
    Planning { spec }
}

impl Planning {
    /// The outcome of a call, and its changes to the plan.
    fn answer(arguments: &Value, place: &ToolEnv, plan: &Tasks) -> Result<Done, String> {
        let Arguments { action, tasks } = parse("tasks", arguments)?;
        match (action, tasks.is_empty()) {
            (Action::List, true) => return Ok(Done::ok(listed(plan.iter(), plan, place))),
            (Action::List, false) => return Err("list takes no tasks".to_owned()),
            (_, true) => return Err("name at least one task in tasks".to_owned()),
            (_, false) => {}
        }
        // Each change is checked against the plan after the earlier ones.
        let mut planned = plan.clone();
        let mut changed: Vec<Task> = Vec::new();
        for (n, item) in tasks.into_iter().enumerate() {
            let task = change(action, item, &planned).map_err(|why| {
                format!("task {} of this call: {why}; nothing was changed", n + 1)
            })?;
            if planned.get(&task.id) != Some(&task) {
                planned.put(task.clone());
                changed.retain(|other| other.id != task.id);
                changed.push(task);
            }
        }
        let text = match changed.is_empty() {
            true => format!("nothing changed\n{}", counted(&planned)),
            false => listed(changed.iter(), &planned, place),
        };
        Ok(Done { tasks: changed, ..Done::ok(text) })
    }
}

fn change(action: Action, item: Item, plan: &Tasks) -> Result<Task, String> {
    let Item { id, kind, description, status, files, after, not_after } = item;
    let refuse = |what: &str| Err(format!("{what} belongs to another action"));
    match action {
        Action::Add if !not_after.is_empty() => return refuse("not_after"),
        Action::Update if !after.is_empty() || !not_after.is_empty() => {
            return refuse("what comes first");
        }
        Action::Depend if kind.is_some() || description.is_some() || files.is_some() => {
            return refuse("a new text");
        }
        Action::Depend if status.is_some() => return refuse("status"),
        Action::Depend if after.is_empty() && not_after.is_empty() => {
            return Err("say after or not_after".to_owned());
        }
        _ => {}
    }
    let changed = if action == Action::Add {
        plan.add(Task {
            id: id.unwrap_or_default(),
            action: kind.unwrap_or_default(),
            description: description.unwrap_or_default(),
            deps: after,
            status: status.unwrap_or_default(),
            files: files.unwrap_or_default(),
        })
    } else {
        let id = id.ok_or("its id is missing")?;
        plan.edit(&id, TaskEdit { status, action: kind, description, files, after, not_after })
    };
    changed.map_err(|refused| refused.to_string())
}

/// The tasks, one a line, and their number.
fn listed<'a>(tasks: impl Iterator<Item = &'a Task>, plan: &Tasks, place: &ToolEnv) -> String {
    let (mut text, mut missing) = (String::new(), 0_usize);
    for task in tasks {
        let line = line(task);
        if missing == 0 && text.len() + line.len() < place.output_limit {
            text.push_str(&line);
        } else {
            missing += 1;
        }
    }
    if missing > 0 {
        text.push_str(&format!("[{missing} more tasks]\n"));
    }
    text + &counted(plan)
}

fn line(task: &Task) -> String {
    let Task { id, action, description, deps, status, files } = task;
    let action = if action.is_empty() { String::new() } else { format!("{action}: ") };
    let named = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!(" ({what} {})", names.join(", ")),
    };
    let description = description.replace('\n', "\n  ");
    let (after, files) = (named("after", deps), named("files", files));
    format!("{id} [{status}] {action}{description}{after}{files}\n")
}

fn counted(plan: &Tasks) -> String {
    let counts = TaskStatus::ALL.map(|status| (plan.count(status), status)).into_iter();
    let counts: Vec<_> =
        counts.filter(|(n, _)| *n > 0).map(|(n, status)| format!("{n} {status}")).collect();
    match plan.len() {
        0 => "no tasks are planned".to_owned(),
        n => format!("{n} in all: {}", counts.join(", ")),
    }
}

impl Tool for Planning {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// It only changes the record, together with its result.
    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn preview(&self, arguments: &Value) -> String {
        let about = arguments["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |task: &Value| match (&task["id"], &task["status"]) {
            (Value::String(_), Value::String(_)) => {
                format!("{} {}", word(task, "id"), word(task, "status"))
            }
            (Value::String(_), _) => word(task, "id"),
            _ => word(task, "description"),
        };
        let names: Vec<_> = about.iter().map(name).collect();
        match arguments["action"].as_str() {
            Some("list") => "look at the plan".to_owned(),
            _ => format!("plan: {} {}", word(arguments, "action"), names.join(", ")),
        }
    }

    fn plan(&self, _: &Value, _: &ToolEnv) -> Result<Plan, String> {
        Ok(Plan::default())
    }

    fn decide(&self, arguments: &Value, place: &ToolEnv, tasks: &Tasks) -> Option<Done> {
        Some(Self::answer(arguments, place, tasks).unwrap_or_else(Done::failed))
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        // Without a session nothing is planned.
        let done = Self::answer(arguments, place, &Tasks::default());
        Box::pin(std::future::ready(done.unwrap_or_else(Done::failed)))
    }
}

#[cfg(test)]
mod tests {
    use stepwell::model::Outcome;

    use super::*;

    fn place() -> ToolEnv {
        ToolEnv { output_limit: 400, ..ToolEnv::new("/".into()) }
    }

    fn call(plan: &mut Tasks, arguments: &Value) -> (Outcome, String) {
        let done = tasks().decide(arguments, &place(), plan).unwrap();
        done.tasks.into_iter().for_each(|task| plan.put(task));
        (done.outcome, done.text)
    }

    #[test]
    fn a_plan_is_made_worked_off_and_read_back() {
        let mut plan = Tasks::default();
        assert_eq!(call(&mut plan, &json!({"action": "list"})).1, "no tasks are planned");
        let added = json!({"action": "add", "tasks": [
            {"description": "look"},
            {"id": "fix", "kind": "modify", "description": "fix it\nwell", "after": ["1"], "files": ["a.rs"]},
        ]});
        assert_eq!(
            call(&mut plan, &added).1,
            "1 [pending] look\nfix [pending] modify: fix it\n  well (after 1) (files a.rs)\n\
             2 in all: 2 pending"
        );
        let both = json!({"action": "update", "tasks": [
            {"id": "1", "status": "done"}, {"id": "fix", "status": "running"}]});
        assert_eq!(call(&mut plan, &both).0, Outcome::Done);
        assert_eq!(call(&mut plan, &both).1, "nothing changed\n2 in all: 1 running, 1 done");
        let told = call(&mut plan, &json!({"action": "list"})).1;
        assert!(told.starts_with("1 [done] look\nfix [running]"), "{told}");
    }

    #[test]
    fn a_call_changes_all_or_nothing_and_says_what_is_wrong() {
        let mut plan = Tasks::default();
        call(&mut plan, &json!({"action": "add", "tasks": [{"id": "a", "description": "x"}]}));
        let before = plan.clone();
        for (arguments, says) in [
            (
                json!({"action": "add", "tasks": [{"description": "b"}, {"id": "a", "description": "c"}]}),
                "task 2 of this call",
            ),
            (
                json!({"action": "update", "tasks": [{"id": "nope", "status": "done"}]}),
                "expected one of: a",
            ),
            (json!({"action": "update", "tasks": [{"status": "done"}]}), "id is missing"),
            (
                json!({"action": "update", "tasks": [{"id": "a", "status": "finished"}]}),
                "unknown variant",
            ),
            (json!({"action": "update", "tasks": [{"id": "a", "after": ["a"]}]}), "another action"),
            (
                json!({"action": "depend", "tasks": [{"id": "a", "after": ["a"]}]}),
                "wait for each other",
            ),
            (json!({"action": "depend", "tasks": [{"id": "a"}]}), "say after"),
            (
                json!({"action": "depend", "tasks": [{"id": "a", "status": "done", "after": []}]}),
                "status belongs",
            ),
            (json!({"action": "add"}), "at least one"),
            (json!({"action": "list", "tasks": [{}]}), "list takes no tasks"),
            (json!({"action": "dance"}), "unknown variant"),
            (json!({"tasks": []}), "action"),
        ] {
            let (outcome, text) = call(&mut plan, &arguments);
            assert_eq!(outcome, Outcome::Failed, "{arguments}");
            assert!(text.contains(says), "{arguments}: {text}");
            assert_eq!(plan, before);
        }
    }

    #[test]
    fn a_long_plan_is_cut_and_says_so() {
        let mut plan: Tasks = (0..20)
            .map(|n| Task { id: n.to_string(), description: "x".repeat(40), ..Task::default() })
            .collect();
        let told = call(&mut plan, &json!({"action": "list"})).1;
        assert!(told.len() < 500 && told.contains("more tasks]\n20 in all"), "{told}");
    }
}
