//! Named points at which a crash test can end the process.
//!
//! Without the `failpoints` feature they compile to nothing.

/// Every point, in the order in which a write passes them.
#[cfg(feature = "failpoints")]
pub const FAILPOINTS: &[&str] = &[
    "open.before_link",
    "open.after_link",
    "write.before_begin",
    "write.after_begin",
    "append.after_event",
    "append.between_events",
    "blob.after_insert",
    "write.before_commit",
    "write.after_commit",
    "search.before_commit",
    "search.after_commit",
    "purge.before_commit",
    "purge.after_commit",
];

#[cfg(feature = "failpoints")]
static HOOK: std::sync::OnceLock<fn(&str)> = std::sync::OnceLock::new();

/// Sets the function that every point calls, once for the process.
#[cfg(feature = "failpoints")]
pub fn on_failpoint(hook: fn(&str)) {
    // A second hook would be a mistake in the test; the first one stays.
    let _ = HOOK.set(hook);
}

#[cfg(feature = "failpoints")]
pub(crate) fn failpoint(name: &'static str) {
    debug_assert!(FAILPOINTS.contains(&name), "{name} is not in the list of points");
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}

#[cfg(not(feature = "failpoints"))]
pub(crate) fn failpoint(_name: &'static str) {}
