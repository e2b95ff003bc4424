//! Signals as inputs, for a loop that does not read keys one by one.

use std::sync::mpsc;

use tokio::signal::unix::{SignalKind, signal};

use crate::driver::Inputs;
use crate::effect::Input;

/// Sends signals as inputs from now on: Ctrl+C cancels, a wish to end leaves. They are caught when
/// this returns. Where they cannot be, they end the process as they always do.
pub(crate) fn pass_on(to: &Inputs) {
    let (ready, caught) = mpsc::channel();
    let to = to.clone();
    std::thread::spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(tokio) = tokio {
            tokio.block_on(listen(&to, &ready));
        }
    });
    // An error says that there will be nobody to catch them.
    let _ = caught.recv();
}

async fn listen(to: &Inputs, ready: &mpsc::Sender<()>) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupts), Ok(mut terminates), Ok(mut hangups)] = kinds.map(signal) else {
        return;
    };
    let _ = ready.send(());
    loop {
        let input = tokio::select! {
            _ = interrupts.recv() => Input::Cancel,
            _ = terminates.recv() => Input::Ending,
            _ = hangups.recv() => Input::Ending,
        };
        if to.send(input).is_err() {
            return;
        }
    }
}
