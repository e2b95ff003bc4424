//! Changes to a session's plan and goal, and questions about its work. Each change is recorded
//! completely or not at all.

use crate::error::{Error, Result, TaskRefused};
use crate::model::{Change, Edited, Event, Question, Recorded, Seq, SessionId, Task, WorkChange};
use crate::sessions::{Session, Stepwell};
use crate::store::{LOOK_BACK, Span};
use crate::work::tasks::{Tasks, Work};

/// A plan after a change.
#[derive(Clone, Debug)]
pub struct ChangedTasks {
    /// The whole plan.
    pub tasks: Tasks,
    /// The tasks concerned, changed or not.
    pub changed: Vec<Task>,
}

impl Session {
    /// The state of its work: plan and questions.
    pub fn work(&self) -> Result<Work> {
        self.well().work(self.id())
    }
}

impl Stepwell {
    /// The state of a session's work: plan and questions.
    pub fn work(&self, id: &SessionId) -> Result<Work> {
        let at = self.store().info(id)?.head.seq;
        Ok(Work::at(at, self.store().keyed_events(id, &Work::KINDS)?))
    }

    /// Like [`work`](Self::work), with the last step that counts, if it is among the last
    /// [`LOOK_BACK`] events.
    pub fn work_with_last_step(&self, id: &SessionId) -> Result<Work> {
        let store = self.store();
        let at = store.info(id)?.head.seq;
        let mut facts = store.keyed_events(id, &Work::KINDS)?;
        let mut last = store.events(id, Span::last(LOOK_BACK))?.events;
        last.retain(|it| matches!(it.event, Event::Step(_)));
        last.sort_by_key(|it| it.seq);
        facts.extend(last);
        Ok(Work::at(at, facts))
    }

    /// Changes a session's plan, all or nothing. `change` returns the tasks to record.
    ///
    /// # Errors
    /// [`Error::Task`] if the plan does not allow it.
    pub fn change_tasks(
        &self,
        id: &SessionId,
        change: impl FnOnce(&Tasks) -> Result<Vec<Task>, TaskRefused>,
    ) -> Result<ChangedTasks> {
        let session = self.hold_whole(id)?;
        let mut tasks = session.work()?.tasks;
        let refused = |why| Error::Task { session: id.clone(), why };
        let changed = change(&tasks).map_err(refused)?;
        let new: Vec<Task> =
            changed.iter().filter(|task| tasks.get(&task.id) != Some(task)).cloned().collect();
        if !new.is_empty() {
            let events = new.iter().cloned().map(Into::into).collect();
            session.append_all(self.signed(events))?;
        }
        new.into_iter().for_each(|task| tasks.put(task));
        Ok(ChangedTasks { tasks, changed })
    }

    /// Sets the goal of the work, also while it runs; an empty text clears it.
    pub fn set_goal(&self, id: &SessionId, goal: &str) -> Result<Seq> {
        let goal = match goal.trim() {
            "" => Change::Clear,
            goal => Change::Set(goal.to_owned()),
        };
        self.store().info(id)?.refuse_half_rewound()?;
        self.edit(id, Edited { goal, ..Edited::default() })
    }

    /// Records a question about the work, under the next free number, also while it runs.
    pub fn ask(&self, id: &SessionId, text: &str) -> Result<Question> {
        let text = said(id, text)?;
        question(self.change_work(id, WorkChange::Ask { text })?)
    }

    /// Answers a question about the work, also while it runs.
    ///
    /// # Errors
    /// [`Error::NoQuestion`] if the session has no such question.
    pub fn answer_question(&self, id: &SessionId, question: &str, text: &str) -> Result<Question> {
        let (text, question) = (said(id, text)?, question.to_owned());
        self::question(self.change_work(id, WorkChange::Answer { question, text })?)
    }
}

/// The question that was recorded.
fn question(recorded: Option<Recorded>) -> Result<Question> {
    match recorded.map(|it| it.event) {
        Some(Event::Question(question)) => Ok(question),
        _ => Ok(Question::default()),
    }
}

/// The trimmed text, or an error if it is empty.
fn said(id: &SessionId, text: &str) -> Result<String> {
    match text.trim() {
        "" => Err(Error::Illegal {
            session: id.clone(),
            kind: "question".to_owned(),
            why: "the text is empty".to_owned(),
        }),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(well: &Stepwell) -> SessionId {
        well.create(well.draft("work")).unwrap().id().clone()
    }

    #[test]
    fn a_plan_changes_completely_or_not_at_all_and_equal_tasks_are_not_recorded() {
        let well = Stepwell::in_memory();
        let id = session(&well);
        let task = |name: &str| Task {
            id: name.to_owned(),
            description: name.to_owned(),
            ..Task::default()
        };
        let made = well.change_tasks(&id, |tasks| Ok(vec![tasks.add(task("one"))?])).unwrap();
        assert_eq!((made.tasks.len(), made.changed.len()), (1, 1));
        let before = well.info(&id).unwrap().head.seq;
        let twice = |tasks: &Tasks| Ok(vec![tasks.add(task("two"))?, tasks.add(task("one"))?]);
        assert!(matches!(well.change_tasks(&id, twice), Err(Error::Task { .. })));
        let same = |tasks: &Tasks| Ok(tasks.iter().cloned().collect());
        assert_eq!(well.change_tasks(&id, same).unwrap().changed.len(), 1);
        assert_eq!(well.info(&id).unwrap().head.seq, before);
    }

    #[test]
    fn questions_are_numbered_and_answered_by_their_number() {
        let well = Stepwell::in_memory();
        let id = session(&well);
        assert!(well.ask(&id, "  ").is_err());
        assert_eq!(well.ask(&id, " why? ").unwrap().id, "1");
        assert_eq!(well.ask(&id, "how?").unwrap().id, "2");
        let answered = well.answer_question(&id, "1", "because").unwrap();
        assert_eq!((&*answered.text, answered.answer.as_deref()), ("why?", Some("because")));
        let Err(Error::NoQuestion { asked, .. }) = well.answer_question(&id, "7", "x") else {
            panic!("answered an unknown question")
        };
        assert_eq!(asked, ["1", "2"]);
        well.set_goal(&id, " ship it ").unwrap();
        assert_eq!(well.info(&id).unwrap().head.goal.as_deref(), Some("ship it"));
        well.set_goal(&id, "").unwrap();
        assert_eq!(well.info(&id).unwrap().head.goal, None);
    }
}
