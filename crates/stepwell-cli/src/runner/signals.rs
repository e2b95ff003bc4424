//! The user's wish to stop.

use std::sync::mpsc;

use stepwell_runtime::Interrupt;
use stepwell_terminal::note;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Exit;

/// Asks for an interrupt at the first Ctrl+C, SIGTERM or closed terminal. The second one ends the
/// process at once; the next look at the session says that it was interrupted.
///
/// Signals are caught when this returns.
pub(super) fn watch(interrupt: &Interrupt) {
    let (ready, caught) = mpsc::channel();
    let interrupt = interrupt.clone();
    let named = std::thread::Builder::new().name("stepwell-signals".to_owned());
    let thread = named.spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Where signals cannot be watched, they end the process as they always do.
        if let Ok(tokio) = tokio {
            tokio.block_on(listen(&interrupt, &ready));
        }
    });
    if thread.is_ok() {
        // An error says that there will be nobody to catch them.
        let _ = caught.recv();
    }
}

async fn listen(interrupt: &Interrupt, ready: &mpsc::Sender<()>) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupts), Ok(mut terminates), Ok(mut hangups)] = kinds.map(signal) else {
        return;
    };
    let _ = ready.send(());
    // Somebody elsewhere may have asked for the same: only a second signal ends it at once.
    let mut caught = false;
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminates.recv() => {}
            _ = hangups.recv() => {}
        }
        if std::mem::replace(&mut caught, true) {
            leave();
        }
        note("Stopping after this; once more to stop at once.");
        interrupt.ask();
    }
}

#[expect(clippy::disallowed_methods, reason = "the user said at once, and said it twice")]
fn leave() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}
