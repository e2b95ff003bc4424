use std::io::Read;
use std::path::{Path, PathBuf};

use stepwell::SessionId;
use stepwell::model::{Task, TaskStatus};
use stepwell::sqlite::Access;
use stepwell::work::{ChangedTasks, TaskEdit, Tasks};
use stepwell_formats::{read_tasks, tasks_markdown};
use stepwell_terminal::text::{count, visible};
use stepwell_terminal::{note, tasks};
use stepwell_wire::TaskInfo;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Shows and changes what a session plans to do.
///
/// A task is pending, running, done, failed, skipped or unrecoverable. It begins only when
/// the tasks that come first are done or skipped; an unrecoverable one stays so. An agent has
/// the same plan through its tasks tool.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    #[command(subcommand)]
    action: Option<Action>,
    /// Answers with the whole plan as Markdown, as in TASKS.md.
    #[arg(long, global = true, conflicts_with = "json")]
    markdown: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists tasks, in the order in which they were planned.
    List {
        /// Only those that stand so (several may be given).
        #[arg(long, value_name = "STATUS", value_delimiter = ',')]
        status: Vec<TaskStatus>,
    },
    /// Plans a task.
    Add {
        /// What is to be done.
        description: String,
        /// Its name; else the next free number.
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
        /// Such as create, modify or test.
        #[arg(long, value_name = "WORD")]
        action: Option<String>,
        /// Tasks that come first.
        #[arg(long, value_name = "TASK", value_delimiter = ',')]
        after: Vec<String>,
        /// Files that it is about.
        #[arg(long = "file", value_name = "PATH")]
        files: Vec<String>,
        /// How it stands already.
        #[arg(long, default_value = "pending")]
        status: TaskStatus,
    },
    /// Changes a task.
    Update {
        /// The task.
        task: String,
        /// How it stands now.
        #[arg(long)]
        status: Option<TaskStatus>,
        /// What is to be done.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Such as create, modify or test.
        #[arg(long, value_name = "WORD")]
        action: Option<String>,
        /// Files that it is about, in place of those it names.
        #[arg(long = "file", value_name = "PATH")]
        files: Option<Vec<String>>,
    },
    /// Says which tasks come before another.
    Depend {
        /// The task.
        task: String,
        /// Tasks that come first.
        #[arg(required_unless_present = "not")]
        on: Vec<String>,
        /// Tasks that no longer have to.
        #[arg(long, value_name = "TASK", value_delimiter = ',')]
        not: Vec<String>,
    },
    /// Takes in the tasks of a TASKS.md, all or none; those of the same name are replaced.
    Load {
        /// The file; - reads stdin.
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let statuses = match &args.action {
        None => &[][..],
        Some(Action::List { status }) => status,
        Some(action) => return change(args, action, app),
    };
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let tasks = well.work(&id)?.tasks;
    let takes = |task: &Task| statuses.is_empty() || statuses.contains(&task.status);
    if args.markdown {
        let chosen: Tasks = tasks.iter().filter(|task| takes(task)).cloned().collect();
        app.out.line(tasks_markdown(&chosen).trim_end())?;
        return Ok(Exit::Done);
    }
    let chosen: Vec<&Task> = tasks.iter().filter(|task| takes(task)).collect();
    list(&chosen, &tasks, &id, app)?;
    Ok(Exit::Done)
}

fn list(chosen: &[&Task], all: &Tasks, id: &SessionId, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return chosen.iter().try_for_each(|task| app.out.object(&TaskInfo::new(task, all)));
    }
    if chosen.is_empty() {
        app.out.line(if all.is_empty() { "No tasks are planned." } else { "No tasks match." })?;
        note(format_args!("hint: stepwell tasks {id} add \"TEXT\" plans one"));
        return Ok(());
    }
    app.print(&tasks::table(chosen, all))
}

fn change(args: &Args, action: &Action, app: &mut App) -> Result<Exit> {
    let loaded = match action {
        Action::Load { file } => load(file)?,
        _ => Vec::new(),
    };
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let redactor = app.runtime().typed_redactor()?;
    let plain = |text: &str| redactor.redact(text).into_owned();
    let ChangedTasks { tasks, changed } = well.change_tasks(&id, |tasks| match action {
        Action::Add { description, id, action, after, files, status } => {
            let task = Task {
                id: id.clone().unwrap_or_default(),
                action: plain(action.as_deref().unwrap_or_default()),
                description: plain(description),
                deps: after.clone(),
                status: *status,
                files: files.iter().map(|file| plain(file)).collect(),
            };
            Ok(vec![tasks.add(task)?])
        }
        Action::Update { task, status, description, action, files } => {
            let files = files.as_ref().map(|files| files.iter().map(|file| plain(file)).collect());
            let edit = TaskEdit {
                status: *status,
                description: description.as_deref().map(plain),
                action: action.as_deref().map(plain),
                files,
                ..TaskEdit::default()
            };
            Ok(vec![tasks.edit(task, edit)?])
        }
        Action::Depend { task, on, not } => {
            let (after, not_after) = (on.clone(), not.clone());
            Ok(vec![tasks.edit(task, TaskEdit { after, not_after, ..TaskEdit::default() })?])
        }
        Action::Load { .. } => tasks.load(loaded.into_iter().map(|task| Task {
            action: plain(&task.action),
            description: plain(&task.description),
            files: task.files.iter().map(|file| plain(file)).collect(),
            ..task
        })),
        Action::List { .. } => Ok(Vec::new()),
    })?;
    answer(args, &id, &tasks, &changed, app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

fn answer(
    args: &Args,
    id: &SessionId,
    tasks: &Tasks,
    changed: &[Task],
    app: &mut App,
) -> Result<()> {
    if args.markdown {
        return app.out.line(tasks_markdown(tasks).trim_end());
    }
    if app.out.is_json() {
        return changed.iter().try_for_each(|task| app.out.object(&TaskInfo::new(task, tasks)));
    }
    match changed {
        [task] => {
            let after = match &task.deps[..] {
                [] => String::new(),
                deps => format!(", after {}", deps.join(", ")),
            };
            app.out.line(visible(&format!("{id}: task {} is {}{after}", task.id, task.status)))
        }
        many => app.out.line(format_args!("{id}: {} taken in", count(many.len(), "task"))),
    }
}

/// A plan of more tasks than a session can have is told by its count; a file of this size is
/// none.
const MAX_FILE: u64 = 4 << 20;

fn load(file: &Path) -> Result<Vec<Task>> {
    let fault = |error| Failure::file(file, "reading it", &error);
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_FILE + 1).read_to_string(&mut text).map_err(fault)?;
    } else {
        let open = std::fs::File::open(file).map_err(fault)?;
        open.take(MAX_FILE + 1).read_to_string(&mut text).map_err(fault)?;
    }
    if text.len() as u64 > MAX_FILE {
        let message = format!("{}: larger than {MAX_FILE} bytes", file.display());
        return Err(Failure::new(Exit::Failed, message));
    }
    read_tasks(&text).map_err(|error| Failure::from(error).at(file))
}
