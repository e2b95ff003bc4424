//! What the library does, told on stderr to whoever asks for it.

use std::str::FromStr;
use stepwell_workspace::Host;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::global::Global;

/// Starts telling, if `-v` or `STEPWELL_LOG` asks for it.
pub(crate) fn start(global: &Global, host: &Host) {
    let targets = match (global.verbose, host.variable("STEPWELL_LOG")) {
        (0, None) => return,
        (0, Some(asked)) => Targets::from_str(&asked).unwrap_or_else(|_| {
            tell(&format!("warning: STEPWELL_LOG={asked:?} is no list of targets and levels\n"));
            ours(tracing::Level::INFO)
        }),
        (1, _) => ours(tracing::Level::INFO),
        (2, _) => ours(tracing::Level::DEBUG),
        _ => ours(tracing::Level::TRACE),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_filter(targets);
    tracing_subscriber::registry().with(lines).init();
}

/// What our own crates tell, up to a level.
fn ours(level: tracing::Level) -> Targets {
    Targets::new().with_target("stepwell", level)
}

fn tell(text: &str) {
    use std::io::Write;
    // Nobody is left to tell if stderr is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
