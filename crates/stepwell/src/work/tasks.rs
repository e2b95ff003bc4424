//! Planned tasks: their order, and which changes of the plan are valid. Pure: the caller records
//! the result, one event per task.

use std::collections::{BTreeSet, HashMap};

use crate::error::TaskRefused;
use crate::log::Timeline;
use crate::model::{Event, Kind, MAX_TASKS, Question, Recorded, Seq, Task, TaskStatus};

/// The most bytes of a task's description, since a model reads the plan as a whole.
pub const MAX_TASK_BYTES: usize = 2_000;

/// The most files of one task.
const MAX_TASK_FILES: usize = 100;

/// The most bytes of a task's id and of its action.
const MAX_WORD_BYTES: usize = 64;

/// The planned tasks of a session, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    all: Vec<Task>,
    /// Each task's index, by id.
    places: HashMap<String, usize>,
}

/// A change to a task; an absent part stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEdit {
    /// The status.
    pub status: Option<TaskStatus>,
    /// The kind of change, such as `create` or `modify`.
    pub action: Option<String>,
    /// The work to be done.
    pub description: Option<String>,
    /// The files concerned.
    pub files: Option<Vec<String>>,
    /// Ids of tasks that must be done before, added to the present ones.
    pub after: Vec<String>,
    /// Ids of tasks that need not be done before any more.
    pub not_after: Vec<String>,
}

impl Tasks {
    /// Applies a recorded task: replaces the one with its id, or appends it. It is not checked.
    pub fn put(&mut self, task: Task) {
        match self.places.get(&task.id) {
            Some(place) => self.all[*place] = task,
            None => {
                self.places.insert(task.id.clone(), self.all.len());
                self.all.push(task);
            }
        }
    }

    /// All tasks, in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Task> {
        self.all.iter()
    }

    /// The number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Is the plan empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number of tasks with this status.
    #[must_use]
    pub fn count(&self, status: TaskStatus) -> usize {
        self.all.iter().filter(|task| task.status == status).count()
    }

    /// The task with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.places.get(id).map(|place| &self.all[*place])
    }

    /// The tasks that a task still waits for: those before it that are neither done nor skipped.
    #[must_use]
    pub fn waits_for(&self, task: &Task) -> Vec<String> {
        let over = |id: &str| {
            self.get(id)
                .is_some_and(|it| matches!(it.status, TaskStatus::Done | TaskStatus::Skipped))
        };
        task.deps.iter().filter(|dep| !over(dep)).cloned().collect()
    }

    /// A new task as it would be recorded. Without an id it gets the next free number.
    pub fn add(&self, mut task: Task) -> Result<Task, TaskRefused> {
        if self.all.len() >= MAX_TASKS {
            return Err(TaskRefused::TooMany);
        }
        if task.id.is_empty() {
            let free = |n: &usize| !self.places.contains_key(&n.to_string());
            let n = (self.all.len() + 1..).find(free).unwrap_or_default();
            task.id = n.to_string();
        }
        if self.places.contains_key(&task.id) {
            return Err(TaskRefused::Taken(task.id));
        }
        if !is_name(&task.id) {
            return Err(TaskRefused::BadName(task.id));
        }
        self.checked(task, None)
    }

    /// A task as it would be recorded after an edit. If it is equal to the present one, nothing
    /// changes.
    pub fn edit(&self, id: &str, edit: TaskEdit) -> Result<Task, TaskRefused> {
        let found = self.get(id).ok_or_else(|| self.absent(id))?;
        let mut task = found.clone();
        task.status = edit.status.unwrap_or(task.status);
        task.action = edit.action.unwrap_or(task.action);
        task.description = edit.description.unwrap_or(task.description);
        task.files = edit.files.unwrap_or(task.files);
        if let Some(other) = edit.not_after.iter().find(|other| !task.deps.contains(other)) {
            let what = format!("it does not wait for {other:?}");
            return Err(TaskRefused::Unfit { id: task.id, what });
        }
        task.deps.retain(|dep| !edit.not_after.contains(dep));
        task.deps.extend(edit.after);
        self.checked(task, Some(found))
    }

    /// Tasks of another plan as they would be recorded here, each replacing the one with its id.
    /// All of them, if the resulting plan is valid, or else an error.
    pub fn load(&self, tasks: impl IntoIterator<Item = Task>) -> Result<Vec<Task>, TaskRefused> {
        let mut loaded: Vec<Task> = tasks.into_iter().collect();
        let mut plan = self.clone();
        loaded.iter_mut().for_each(tidy);
        loaded.iter().cloned().for_each(|task| plan.put(task));
        if plan.len() > MAX_TASKS {
            return Err(TaskRefused::TooMany);
        }
        for task in &loaded {
            if !is_name(&task.id) {
                return Err(TaskRefused::BadName(task.id.clone()));
            }
            if task.description.is_empty() {
                return Err(TaskRefused::Empty(task.id.clone()));
            }
            if let Some(what) = unfit(task) {
                return Err(TaskRefused::Unfit { id: task.id.clone(), what });
            }
            if let Some(unknown) = task.deps.iter().find(|dep| plan.get(dep).is_none()) {
                return Err(plan.absent(unknown));
            }
            if let Some(cycle) = plan.cycle(task) {
                return Err(TaskRefused::Cycle(cycle));
            }
        }
        Ok(loaded)
    }

    /// The task, if its changes keep the plan valid.
    fn checked(&self, mut task: Task, before: Option<&Task>) -> Result<Task, TaskRefused> {
        tidy(&mut task);
        if before == Some(&task) {
            return Ok(task);
        }
        let says =
            |task: &Task| (task.action.clone(), task.description.clone(), task.files.clone());
        if before.map(says) != Some(says(&task)) {
            if task.description.is_empty() {
                return Err(TaskRefused::Empty(task.id));
            }
            if let Some(what) = unfit(&task) {
                return Err(TaskRefused::Unfit { id: task.id, what });
            }
        }
        let old = before.map_or(&[][..], |before| &before.deps);
        let new: Vec<&String> = task.deps.iter().filter(|dep| !old.contains(dep)).collect();
        if let Some(unknown) = new.iter().find(|dep| **dep != &task.id && self.get(dep).is_none()) {
            return Err(self.absent(unknown));
        }
        if let Some(cycle) = self.cycle(&task).filter(|_| !new.is_empty()) {
            return Err(TaskRefused::Cycle(cycle));
        }
        if before.is_none_or(|before| before.status != task.status) {
            self.check_status(&task, before)?;
        }
        Ok(task)
    }

    /// May the task have its new status now?
    fn check_status(&self, task: &Task, before: Option<&Task>) -> Result<(), TaskRefused> {
        if before.is_some_and(|before| before.status == TaskStatus::Unrecoverable) {
            return Err(TaskRefused::Final(task.id.clone()));
        }
        let after = self.waits_for(task);
        let begins = matches!(task.status, TaskStatus::Running | TaskStatus::Done);
        if begins && !after.is_empty() {
            let (id, status) = (task.id.clone(), task.status);
            return Err(TaskRefused::Waits { id, status, after });
        }
        Ok(())
    }

    /// The cycle of dependencies that `task` would close: from it, along its dependencies, back to
    /// it.
    fn cycle(&self, task: &Task) -> Option<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut ways: Vec<Vec<&str>> =
            task.deps.iter().map(|dep| vec![task.id.as_str(), dep.as_str()]).collect();
        while let Some(way) = ways.pop() {
            let Some(last) = way.last().copied() else { continue };
            if last == task.id {
                return Some(way.into_iter().map(ToOwned::to_owned).collect());
            }
            if seen.insert(last)
                && let Some(next) = self.get(last)
            {
                ways.extend(next.deps.iter().map(|dep| [&way[..], &[dep.as_str()]].concat()));
            }
        }
        None
    }

    fn absent(&self, id: &str) -> TaskRefused {
        let known = self.all.iter().map(|task| task.id.clone()).collect();
        TaskRefused::NoTask { id: id.to_owned(), known }
    }
}

impl<'a> IntoIterator for &'a Tasks {
    type Item = &'a Task;
    type IntoIter = std::slice::Iter<'a, Task>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Task> for Tasks {
    fn from_iter<I: IntoIterator<Item = Task>>(tasks: I) -> Self {
        let mut all = Self::default();
        tasks.into_iter().for_each(|task| all.put(task));
        all
    }
}

/// Trims texts and removes duplicates.
fn tidy(task: &mut Task) {
    task.action = task.action.trim().to_owned();
    task.description = task.description.trim().to_owned();
    for list in [&mut task.deps, &mut task.files] {
        let mut seen = BTreeSet::new();
        list.iter_mut().for_each(|text| *text = text.trim().to_owned());
        list.retain(|text| !text.is_empty() && seen.insert(text.clone()));
    }
}

/// Why a task is too large, or cannot be shown in a table.
fn unfit(task: &Task) -> Option<String> {
    let control = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
    if task.description.len() > MAX_TASK_BYTES {
        Some(format!("its description has more than {MAX_TASK_BYTES} bytes"))
    } else if task.action.len() > MAX_WORD_BYTES {
        Some(format!("its action has more than {MAX_WORD_BYTES} bytes"))
    } else if task.files.len() > MAX_TASK_FILES {
        Some(format!("it names more than {MAX_TASK_FILES} files"))
    } else if control(&task.description) || task.action.chars().any(char::is_control) {
        Some("its text has control characters".to_owned())
    } else if task.files.iter().any(|file| file.chars().any(char::is_control)) {
        Some("a file's name has control characters".to_owned())
    } else {
        None
    }
}

fn is_name(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=MAX_WORD_BYTES).contains(&id.len()) && id.chars().all(fits)
}

/// The state of a session's work beyond its head: its plan, its questions, and their last change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// The plan.
    pub tasks: Tasks,
    /// How many times a task was given up, including tasks that were reopened since.
    pub given_up: u32,
    /// The questions asked in the discuss phase, in order.
    pub questions: Vec<Question>,
    /// The last change of tasks, questions, phase or goal that counts.
    pub last: Option<Recorded>,
    /// The last step that counts, if the folded events include one.
    pub last_step: Option<Recorded>,
}

impl Work {
    /// The kinds of events that it is folded from.
    pub const KINDS: [Kind; 6] =
        [Kind::Task, Kind::Question, Kind::Phase, Kind::Edited, Kind::Rewound, Kind::Undone];

    /// The work at `at`, given the session's keyed events of [these kinds](Self::KINDS) in order.
    /// Events that a rewind removed do not count.
    #[must_use]
    pub fn at(at: Seq, facts: Vec<Recorded>) -> Self {
        let timeline = Timeline::at(at, facts.iter());
        let mut work = Self::default();
        for fact in facts.into_iter().filter(|fact| timeline.contains(fact.seq)) {
            match &fact.event {
                Event::Task(task) => {
                    let is_given_up = |task: &Task| task.status == TaskStatus::Unrecoverable;
                    let was_given_up = work.tasks.get(&task.id).is_some_and(is_given_up);
                    work.given_up += u32::from(is_given_up(task) && !was_given_up);
                    work.tasks.put(task.clone());
                }
                Event::Question(question) => {
                    match work.questions.iter_mut().find(|it| it.id == question.id) {
                        Some(found) => *found = question.clone(),
                        None => work.questions.push(question.clone()),
                    }
                }
                Event::Step(_) => {
                    work.last_step = Some(fact);
                    continue;
                }
                Event::Phase(_) => {}
                // Other edits, such as a label or pins, do not concern the work.
                Event::Edited(edited) if !edited.goal.is_keep() => {}
                _ => continue,
            }
            work.last = Some(fact);
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PhaseChanged, Restored, Rewound, Scope, Time, Undone};

    fn task(id: &str, deps: &[&str]) -> Task {
        let deps = deps.iter().map(|&dep| dep.to_owned()).collect();
        Task { id: id.into(), description: format!("do {id}"), deps, ..Task::default() }
    }

    fn plan(tasks: &[Task]) -> Tasks {
        let mut plan = Tasks::default();
        for task in tasks {
            plan.put(plan.add(task.clone()).unwrap());
        }
        plan
    }

    fn after(plan: &Tasks, id: &str, deps: &[&str]) -> Result<Task, TaskRefused> {
        let after = deps.iter().map(|&dep| dep.to_owned()).collect();
        plan.edit(id, TaskEdit { after, ..TaskEdit::default() })
    }

    fn move_to(plan: &mut Tasks, id: &str, status: TaskStatus) -> Result<(), TaskRefused> {
        let edit = TaskEdit { status: Some(status), ..TaskEdit::default() };
        plan.edit(id, edit).map(|task| plan.put(task))
    }

    #[test]
    fn a_task_without_a_name_gets_the_next_free_number() {
        let plan = plan(&[task("", &[]), task("3", &[]), task("", &[]), task("fix", &["3"])]);
        let ids: Vec<_> = plan.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["1", "3", "4", "fix"]);
        assert_eq!(plan.add(task("3", &[])), Err(TaskRefused::Taken("3".into())));
        for name in ["a b", "a,b", "a|b", "-\n", &"x".repeat(65)] {
            assert_eq!(plan.add(task(name, &[])), Err(TaskRefused::BadName(name.into())));
        }
    }

    #[test]
    fn tasks_that_would_wait_for_each_other_are_refused() {
        let plan = plan(&[task("a", &[]), task("b", &["a"]), task("c", &["b"])]);
        let cycle = TaskRefused::Cycle(["a", "c", "b", "a"].map(ToOwned::to_owned).into());
        assert_eq!(after(&plan, "a", &["c"]), Err(cycle.clone()));
        assert_eq!(
            cycle.to_string(),
            "these tasks would wait for each other: a after c after b after a"
        );
        let itself = TaskRefused::Cycle(vec!["a".into(), "a".into()]);
        assert_eq!(after(&plan, "a", &["a"]), Err(itself));
        let itself = TaskRefused::Cycle(vec!["d".into(), "d".into()]);
        assert_eq!(plan.add(task("d", &["d"])), Err(itself));
        assert_eq!(after(&plan, "c", &["a", "b", "a"]).unwrap().deps, ["b", "a"]);
        let unknown = after(&plan, "c", &["x"]).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown task \"x\"; expected one of: a, b, c");
    }

    #[test]
    fn a_dependency_can_be_removed_and_then_reversed() {
        let mut plan = plan(&[task("a", &[]), task("b", &["a"])]);
        let not_after = vec!["a".to_owned()];
        let edit = TaskEdit { not_after, ..TaskEdit::default() };
        plan.put(plan.edit("b", edit.clone()).unwrap());
        plan.put(after(&plan, "a", &["b"]).unwrap());
        assert!(plan.edit("b", edit).unwrap_err().to_string().contains("does not wait for"));
    }

    #[test]
    fn a_task_starts_when_its_dependencies_are_over() {
        use TaskStatus::{Done, Failed, Pending, Running, Skipped, Unrecoverable};
        let mut plan = plan(&[task("a", &[]), task("b", &["a"])]);
        for status in [Running, Done] {
            let refused = move_to(&mut plan, "b", status).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!("task \"b\" cannot be {status}: it waits for a")
            );
        }
        move_to(&mut plan, "a", Failed).unwrap();
        assert!(move_to(&mut plan, "b", Running).is_err());
        move_to(&mut plan, "a", Skipped).unwrap();
        move_to(&mut plan, "b", Running).unwrap();
        // A started task can be given up, and a finished one reopened.
        for status in [Pending, Running, Done, Pending, Skipped, Running, Unrecoverable] {
            move_to(&mut plan, "b", status).unwrap();
        }
        for status in TaskStatus::ALL.into_iter().filter(|status| *status != Unrecoverable) {
            assert_eq!(move_to(&mut plan, "b", status), Err(TaskRefused::Final("b".into())));
        }
        move_to(&mut plan, "b", Unrecoverable).unwrap();
    }

    #[test]
    fn invalid_tasks_are_refused() {
        let plan = plan(&[task("a", &[])]);
        let described = |text: &str| {
            let edit = TaskEdit { description: Some(text.into()), ..TaskEdit::default() };
            plan.edit("a", edit)
        };
        assert_eq!(described(" \n"), Err(TaskRefused::Empty("a".into())));
        assert!(matches!(described("\u{1b}[2J"), Err(TaskRefused::Unfit { .. })));
        let long = "x".repeat(MAX_TASK_BYTES + 1);
        assert!(matches!(described(&long), Err(TaskRefused::Unfit { .. })));
        assert_eq!(described(" two\nlines ").unwrap().description, "two\nlines");
        let full: Tasks = (0..MAX_TASKS).map(|n| task(&n.to_string(), &[])).collect();
        assert_eq!(full.add(task("one-more", &[])), Err(TaskRefused::TooMany));
    }

    #[test]
    fn imported_plans_can_be_changed_even_if_they_are_invalid() {
        // Another system's plan: a cycle, an unknown id, and an id that Stepwell would refuse.
        let plan: Tasks = [task("a b", &["c"]), task("c", &["a b", "gone"])].into_iter().collect();
        let edit = TaskEdit { description: Some("better".into()), ..TaskEdit::default() };
        assert_eq!(plan.edit("a b", edit).unwrap().description, "better");
        let mut silent = Tasks::default();
        silent.put(Task { id: "1".into(), ..Task::default() });
        move_to(&mut silent, "1", TaskStatus::Done).unwrap();
        let not_after = vec!["gone".to_owned()];
        let edit = TaskEdit { not_after, ..TaskEdit::default() };
        assert_eq!(plan.edit("c", edit).unwrap().deps, ["a b"]);
    }

    #[test]
    fn a_plan_is_loaded_completely_or_not_at_all() {
        let here = plan(&[task("a", &[]), task("b", &["a"])]);
        let other = [task("c", &["d"]), task("d", &[]), task("b", &["c"])];
        assert_eq!(here.load(other.clone()).unwrap(), other);
        let refused = |task: Task| here.load([other[1].clone(), task]).unwrap_err();
        assert!(matches!(refused(task("a", &["b"])), TaskRefused::Cycle(_)));
        assert!(matches!(refused(task("a", &["x"])), TaskRefused::NoTask { .. }));
        assert!(matches!(refused(task("a b", &[])), TaskRefused::BadName(_)));
    }

    #[test]
    fn a_rewind_removes_tasks_and_undoing_it_returns_them() {
        let at = |seq: u64, event: Event| Recorded {
            seq: Seq::new(seq),
            at: Time::from_micros(seq as i64),
            id: None,
            event,
        };
        let done = Task { status: TaskStatus::Done, ..task("a", &[]) };
        let asked = |answer: Option<&str>| Question {
            id: "1".into(),
            text: "which?".into(),
            answer: answer.map(ToOwned::to_owned),
            skipped: false,
        };
        let (of, scope) = (Seq::new(6), Scope::Chat);
        let restored = Restored::default;
        let log = [
            at(2, task("a", &[]).into()),
            at(3, asked(None).into()),
            at(4, done.clone().into()),
            at(5, asked(Some("this")).into()),
            at(6, Rewound { to: Seq::new(3), scope, restored: restored() }.into()),
            at(7, task("b", &[]).into()),
            at(8, Undone::Rewind { of, scope, restored: restored() }.into()),
            at(
                9,
                PhaseChanged { from: crate::model::Phase::Idle, to: crate::model::Phase::Plan }
                    .into(),
            ),
        ];
        let seen = |n: u64| {
            let work =
                Work::at(Seq::new(n), log.iter().filter(|it| it.seq.get() <= n).cloned().collect());
            let tasks: Vec<_> = work.tasks.iter().map(|it| (it.id.clone(), it.status)).collect();
            let answered = work.questions.iter().filter(|it| it.answer.is_some()).count();
            (tasks, answered, work.last.map(|last| last.seq.get()))
        };
        let a = |status| ("a".to_owned(), status);
        assert_eq!(seen(5), (vec![a(TaskStatus::Done)], 1, Some(5)));
        assert_eq!(seen(6), (vec![a(TaskStatus::Pending)], 0, Some(3)));
        let b = ("b".to_owned(), TaskStatus::Pending);
        assert_eq!(seen(7), (vec![a(TaskStatus::Pending), b], 0, Some(7)));
        assert_eq!(seen(8), (vec![a(TaskStatus::Done)], 1, Some(5)));
        assert_eq!(seen(9), (vec![a(TaskStatus::Done)], 1, Some(9)));
    }
}
