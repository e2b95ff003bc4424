//! Starting a run.

use stepwell::Stepwell;

use crate::drive::{Agent, UserTurn};
use crate::error::Result;
use crate::handle::RunHandle;
use crate::notice::Notice;
use crate::prepare::{Of, Prepared};
use crate::readiness::make_ready;
use crate::request::RunRequest;
use crate::runtime::{NewWell, Runtime};
use crate::thread::spawn;

impl Runtime {
    /// Starts an agent on a task, in a session of its own. Returns when the session is there.
    ///
    /// # Errors
    /// If the agent, its model or its tools cannot be had, or the session cannot be made. Then
    /// nothing was recorded.
    pub fn start(&self, request: RunRequest) -> Result<RunHandle> {
        let interrupt = request.interrupt.clone();
        spawn(self, interrupt, move |job| {
            let runtime = job.runtime.clone();
            let mut prepared = Prepared::new(&request.options, Of::NEW, &runtime)?;
            prepared.phases = request.phases;
            let connected = job.tokio.block_on(prepared.connect(&job.interrupt, &runtime))?;
            job.keep(&connected);
            job.check_interrupt()?;
            let well = match runtime.well_for_new()? {
                NewWell::Kept(well) => {
                    make_ready(request.options.touch(), &well, None, &runtime)?;
                    Stepwell::clone(&well)
                }
                NewWell::InMemory(well) => {
                    runtime.tell(Notice::NotSaved { is_flow: false });
                    well
                }
            };
            let session = prepared.begin(&well, &request, &runtime)?;
            job.begin(&session, prepared.about(&session)?);
            let (words, resumed_from) = (UserTurn::Begun(request.task), None);
            Agent { session, prepared, connected, words, resumed_from, was_done: false }.drive(job)
        })
    }
}
