//! The user's wish to stop.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Exit;
use crate::output::note;

/// Becomes true at the first Ctrl+C, SIGTERM or closed terminal. The second one ends the
/// process at once; the next look at the session says that it was interrupted.
pub(super) fn watch() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // Where signals cannot be watched, they end the process as they always do.
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
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
