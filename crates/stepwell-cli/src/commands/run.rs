use std::io::Read;

use stepwell::{Access, Driver, Head, Stepwell};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::runner::{Flags, Prepared, Words, drive};

/// Runs an agent on a task. Each step is saved before the next begins.
///
/// Ends with 0 when it is done, 5 at a limit, 8 when it waits for you, 130 when it was
/// interrupted; each can be resumed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; - reads it from stdin.
    task: String,
    /// Adds the task to this session, and goes on there.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let mut task = args.task.clone();
    if task == "-" {
        task.clear();
        std::io::stdin().read_to_string(&mut task).map_err(|error| {
            Failure::new(Exit::Usage, format_args!("the task cannot be read from stdin: {error}"))
        })?;
    }
    if task.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "the task is empty"));
    }
    if let Some(name) = &args.session {
        refuse_unsaved(app)?;
        app.go_to_session(name)?;
        let (well, id) = app.session(name, Access::Write)?;
        let head = well.standing(&id)?.head;
        refuse_external(&head)?;
        let prepared = Prepared::new(&args.flags, Some(&head), app)?;
        let session = well.resume(&id)?;
        well.edit(&id, prepared.remembered())?;
        return drive(session, &prepared, &Words::More(task), Some(head.seq.get()), app);
    }
    let prepared = Prepared::new(&args.flags, None, app)?;
    let well: Stepwell = if app.config.settings.auto_save {
        Stepwell::clone(&*app.make()?)
    } else {
        note("sessions.auto_save is off: this run is kept in memory only and cannot be resumed.");
        Stepwell::in_memory()
    };
    let session = prepared.begin(&well, &task, app)?;
    drive(session, &prepared, &Words::Begun(task), None, app)
}

/// What is not saved cannot be taken up again.
pub(crate) fn refuse_unsaved(app: &App) -> Result<()> {
    if app.config.settings.auto_save {
        return Ok(());
    }
    let message = "sessions.auto_save is off, so a session cannot be gone on with";
    Err(Failure::new(Exit::Absent, message).hint("add --config sessions.auto_save=true"))
}

/// A session that Stepwell does not run is its own agent's.
pub(crate) fn refuse_external(head: &Head) -> Result<()> {
    if head.driver == Driver::Own {
        return Ok(());
    }
    let message = format!("{} is driven by an agent of yours, not by Stepwell", head.id);
    Err(Failure::new(Exit::Failed, message)
        .hint(format_args!("stepwell agent should-resume {}", head.id)))
}
