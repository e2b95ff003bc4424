//! Making a session's conversation shorter, without running it.

use stepwell::Session;
use stepwell_agent::run::{Run, Shrunk};

use super::gauge::own_tools;
use super::screen::Screen;
use super::{Flags, Prepared, signals, unsaved};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Makes a session's conversation shorter. Without a model that can be asked, old messages
/// are left out.
pub(crate) fn shrink(session: &mut Session, flags: &Flags, app: &App) -> Result<Shrunk> {
    let head = session.standing()?.head;
    let prepared = Prepared::for_shrinking(flags, &head, app)?;
    let setup = prepared.setup_with(own_tools(&prepared.agent), head.budget, app);
    let mut screen = Screen::new(app, &prepared, &head, head.spent.cost);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Failed, format_args!("no threads to run on: {error}"))
    })?;
    let interrupt = signals::watch(&runtime);
    let shrunk = runtime
        .block_on(async { Run::new(session, &setup, &mut screen)?.shrink_now(interrupt).await });
    screen.finish()?;
    shrunk.map_err(|error| unsaved(error, session))
}
