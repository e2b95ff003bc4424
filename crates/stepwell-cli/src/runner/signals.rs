//! The user's wish to stop.

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Exit;
use crate::output::note;

/// Becomes true at the first Ctrl+C, SIGTERM or closed terminal. The second one ends the
/// process at once; the next look at the session says that it was interrupted.
///
/// Signals are caught when this returns, not only when the runtime comes to it: call it before
/// there is a session, so that whoever stops a run at once finds it stopped, not crashed.
pub(super) fn watch(runtime: &Runtime) -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    let _within = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let caught = kinds.map(signal);
    runtime.spawn(async move {
        // Where signals cannot be watched, they end the process as they always do.
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = caught else {
            std::future::pending::<()>().await;
            return;
        };
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if *stop.borrow() {
                leave();
            }
            note("Stopping after this; once more to stop at once.");
            // The run is over if nobody listens.
            let _ = stop.send(true);
        }
    });
    stopped
}

#[expect(clippy::disallowed_methods, reason = "the user said at once, and said it twice")]
fn leave() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}
