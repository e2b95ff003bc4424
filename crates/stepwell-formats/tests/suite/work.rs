//! `STATE.md` and `TASKS.md`: written, and read back.

use proptest::prelude::*;
use stepwell::model::{
    Change, Edited, Phase, PhaseChanged, PhaseSet, Question, Restored, Rewound, Scope, Step, Task,
    TaskStatus,
};
use stepwell::work::Tasks;
use stepwell::{Lane, Message, Stepwell};
use stepwell_formats::{Error, read_tasks, said, state_markdown, tasks_markdown};

/// As M31A writes it: nothing is escaped.
const THEIRS: &str = "\
# Tasks

| ID | Action | Description | Deps | Status | Files |
|----|--------|-------------|------|--------|-------|
| 1 | Create | Draw the counter | - | done | src/counter.ts |
| 2 | Modify | Paint C:\\shelf | 1 | running | a.ts, b.ts |
";

fn task(id: &str, description: &str) -> Task {
    Task { id: id.into(), description: description.into(), ..Task::default() }
}

#[test]
fn tasks_of_m31a_are_read() {
    let tasks = read_tasks(THEIRS).unwrap();
    assert_eq!(tasks.len(), 2);
    assert_eq!((tasks[0].status, tasks[0].deps.len()), (TaskStatus::Done, 0));
    assert_eq!(tasks[1].description, "Paint C:\\shelf");
    assert_eq!(
        (&tasks[1].deps, &tasks[1].files),
        (&vec!["1".into()], &vec!["a.ts".into(), "b.ts".into()])
    );
}

#[test]
fn a_row_that_does_not_parse_is_reported_with_its_line() {
    for (row, says) in [
        ("| 3 | Test | Warn of nuts|seeds | 1, 2 | pending | - |", "7 cells"),
        ("| 3 | Test | x | - | finished | - |", "unknown task status"),
        ("| - | Test | x | - | done | - |", "no name"),
        ("| 1 | Test | x | - | done | - |", "twice"),
        ("| 3 | Test |", "2 cells"),
    ] {
        let text = format!("{THEIRS}{row}\n");
        match read_tasks(&text).unwrap_err() {
            Error::NotTasks { line, why } => {
                assert_eq!(line, 7);
                assert!(why.contains(says), "{why}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(matches!(read_tasks("# Tasks\n"), Err(Error::NotTasks { line: 1, .. })));
    // What follows the table is not of it.
    assert_eq!(read_tasks(&format!("{THEIRS}\nand | so | on\n")).unwrap().len(), 2);
    let other = "| Metric | Value |\n|---|---|\n| done | 1 |\n| open | 2 |\n";
    assert_eq!(read_tasks(&format!("{THEIRS}\n{other}\nso long\n")).unwrap().len(), 2);
}

#[test]
fn a_row_outside_of_the_table_is_reported_and_not_passed_over() {
    let bare = "3 | Test | x | - | done | -";
    let row = format!("| {bare} |");
    let again = format!("{}\n|---|---|---|---|---|---|\n{row}", THEIRS.lines().nth(2).unwrap());
    let other = "| Metric | Value |\n|---|---|\n| done | 1 |\n";
    for (after, expected) in [
        (bare.to_owned(), 7),
        (format!("\n{row}"), 8),
        (format!("\n{bare}"), 8),
        (format!("\nnotes\n\n{row}"), 10),
        ("\n| 3 | Test |\n".to_owned(), 8),
        (format!("\n{other}\n{row}"), 12),
        (format!("\n{again}"), 8),
    ] {
        match read_tasks(&format!("{THEIRS}{after}\n")) {
            Err(Error::NotTasks { line, why }) => {
                assert_eq!(line, expected, "{after}: {why}");
                assert!(why.contains("outside of the table"), "{why}");
            }
            other => panic!("{after}: {other:?}"),
        }
    }
}

#[test]
fn a_pipe_in_a_cell_stays_in_its_cell() {
    let tasks: Tasks = [
        task("1", "Warn of nuts|seeds \\| <b> as well\nand more"),
        Task { files: vec!["a,b|c.txt".into(), "-".into()], ..task("2", "-") },
    ]
    .into_iter()
    .collect();
    let text = tasks_markdown(&tasks);
    assert_eq!(
        text,
        "# Tasks\n\n\
         | ID | Action | Description | Deps | Status | Files |\n\
         |---|---|---|---|---|---|\n\
         | 1 | - | Warn of nuts\\|seeds \\\\\\| \\<b> as well<br>and more | - | pending | - |\n\
         | 2 | - | \\- | - | pending | a\\,b\\|c.txt, - |\n"
    );
    assert_eq!(read_tasks(&text).unwrap(), tasks.iter().cloned().collect::<Vec<_>>());
    // What moves a terminal's cursor does not reach it.
    let hostile: Tasks = [task("1", "a\u{1b}[2Jb")].into_iter().collect();
    assert!(!tasks_markdown(&hostile).contains('\u{1b}'));
}

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ -~\n\u{e9}\u{6570}|<>\\\\,-]{0,30}")
        .unwrap()
        .prop_map(|text| text.trim().to_owned())
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = text().prop_filter("nothing is no item", |text| !text.is_empty());
    proptest::collection::vec(text, 0..4)
}

fn any_task() -> impl Strategy<Value = Task> {
    let status = proptest::sample::select(TaskStatus::ALL.to_vec());
    (text(), text(), texts(), status, texts()).prop_map(
        |(action, description, deps, status, files)| Task {
            id: String::new(),
            action,
            description,
            deps,
            status,
            files,
        },
    )
}

proptest! {
    #[test]
    fn whatever_tasks_say_reads_back(tasks in proptest::collection::vec(any_task(), 0..6)) {
        let number = |(task, n): (Task, usize)| Task { id: n.to_string(), ..task };
        let tasks: Tasks = tasks.into_iter().zip(1..).map(number).collect();
        let back = read_tasks(&tasks_markdown(&tasks)).unwrap();
        prop_assert_eq!(back, tasks.iter().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[|\\\\<br>, -~\n]{0,200}") {
        let _ = read_tasks(&text);
        let _ = read_tasks(&format!("| ID | Action | Description | Deps | Status | Files |\n{text}"));
    }
}

#[test]
fn the_state_says_where_the_work_is() {
    let well = Stepwell::in_memory();
    let created = well.draft("t").with_phases(PhaseSet::Workflow);
    let session = well.create(created).unwrap();
    let state = |session: &stepwell::Session| {
        let head = session.info().unwrap().head;
        let text = state_markdown(&head, &session.work().unwrap());
        let stamp = session.work().unwrap().last.map_or(head.created_at, |last| last.at);
        text.replace(&stamp.to_string(), "[TIME]").replace(head.id.as_str(), "[ID]")
    };
    assert_eq!(
        state(&session),
        "# State\n\n**Phase:** idle\n**Progress:** no tasks\n**Last Action:** \n\
         **Timestamp:** [TIME]\n**Session:** [ID]\n**Goal:** t\n"
    );
    session.append(PhaseChanged { from: Phase::Idle, to: Phase::Initialize }).unwrap();
    let goal = Change::Set("ship <it>\nsoon".to_owned());
    session.append(Edited { goal, ..Edited::default() }).unwrap();
    let asked = Question::new("1", "Auth?");
    session.append(asked.with_answer("no")).unwrap();
    session.append(Question::new("2", "Auth?")).unwrap();
    session.append(Question::new("3", "Port?").skip()).unwrap();
    session.append(Task { status: TaskStatus::Done, ..task("1", "x") }).unwrap();
    session.append(Task { status: TaskStatus::Failed, ..task("2", "y") }).unwrap();
    assert_eq!(
        state(&session),
        "# State\n\n**Phase:** initialize\n**Progress:** 1 of 2 tasks done, 1 failed\n\
         **Last Action:** task 2 is failed\n**Timestamp:** [TIME]\n**Session:** [ID]\n\
         **Goal:** ship \\<it><br>soon\n\n## Questions\n\n\
         - 1: Auth? **Answer:** no\n- 2: Auth? **Answer:** -\n\
         - 3: Port? **Answer:** - (skipped)\n"
    );
}

#[test]
fn the_last_action_is_the_last_step_if_that_is_later() {
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("t").with_phases(PhaseSet::Workflow)).unwrap();
    let last = || {
        let work = well.work_with_last_step(session.id()).unwrap();
        said(&session.info().unwrap().head, &work)
    };
    session.append(Task { status: TaskStatus::Done, ..task("1", "x") }).unwrap();
    session.append(Step { lane: Lane::main(), n: 1 }).unwrap();
    assert_eq!(last().last_action, "step 1 was done");
    let done = well.work_with_last_step(session.id()).unwrap().last_step.unwrap();
    session.append(Message::user("more")).unwrap();
    assert_eq!(last().at, done.at, "what was said since is no action");
    session.append(Task { status: TaskStatus::Failed, ..task("2", "y") }).unwrap();
    assert_eq!(last().last_action, "task 2 is failed");
    // A step that was taken back does not count.
    session.append(Step { lane: Lane::main(), n: 2 }).unwrap();
    let to = done.seq;
    session.append(Rewound { to, scope: Scope::Chat, restored: Restored::default() }).unwrap();
    assert_eq!((last().last_action.as_str(), last().at), ("step 1 was done", done.at));
}
