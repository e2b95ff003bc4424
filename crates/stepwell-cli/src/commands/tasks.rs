use std::io::Read;
use std::path::{Path, PathBuf};

use stepwell::model::{Task, TaskStatus};
use stepwell::work::{TaskEdit, Tasks};
use stepwell_formats::{read_tasks, tasks_markdown};
use stepwell_runtime::command::{Reply, SessionCommand, TaskChange};

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
    let what = match &args.action {
        None => SessionCommand::Tasks(Vec::new()),
        Some(Action::List { status }) => SessionCommand::Tasks(status.clone()),
        Some(action) => SessionCommand::ChangeTasks(action.change()?),
    };
    let reply = app.of_session(&args.session, what)?;
    let markdown = match &reply {
        _ if !args.markdown => None,
        Reply::Tasks(tasks) => {
            let chosen: Tasks = tasks.chosen.iter().cloned().collect();
            Some(tasks_markdown(&chosen))
        }
        Reply::TasksChanged(tasks) => Some(tasks_markdown(&tasks.all)),
        _ => None,
    };
    match markdown {
        Some(markdown) => app.out.line(markdown.trim_end()).map(|()| Exit::Done),
        None => app.answer(&reply),
    }
}

impl Action {
    /// The change that is asked for.
    fn change(&self) -> Result<TaskChange> {
        Ok(match self {
            Self::Add { description, id, action, after, files, status } => TaskChange::Add(Task {
                id: id.clone().unwrap_or_default(),
                action: action.clone().unwrap_or_default(),
                description: description.clone(),
                deps: after.clone(),
                status: *status,
                files: files.clone(),
            }),
            Self::Update { task, status, description, action, files } => {
                let edit = TaskEdit {
                    status: *status,
                    description: description.clone(),
                    action: action.clone(),
                    files: files.clone(),
                    ..TaskEdit::default()
                };
                TaskChange::Edit(task.clone(), edit)
            }
            Self::Depend { task, on, not } => {
                let (after, not_after) = (on.clone(), not.clone());
                let edit = TaskEdit { after, not_after, ..TaskEdit::default() };
                TaskChange::Edit(task.clone(), edit)
            }
            Self::Load { file } => TaskChange::Load(load(file)?),
            Self::List { .. } => TaskChange::Load(Vec::new()),
        })
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
