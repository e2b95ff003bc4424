//! Limits on how much data a template reads, and for how long it runs.
//!
//! Fuel counts instructions, but one instruction can read megabytes. So each value that a
//! filter, a method or an output gets is charged before it is read. Work inside the engine
//! cannot be charged; it is abandoned when it takes too long.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::TemplateError;

/// How much a template may read: three thousand answers of ten kilobytes.
const MAX_WORK_BYTES: usize = 32 << 20;

/// How long a template that may be slow can take. Charged work ends long before that.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// A template up to this size without loops renders in no time.
const FAST_BYTES: usize = 16 << 10;

/// As much as the main thread has: the engine recurses for each bracket.
const STACK: usize = 8 << 20;

/// The charge for an item besides its text.
const ITEM_BYTES: usize = 16;

/// How deep values are charged: deeper than any answer that can be parsed.
const MAX_DEPTH: usize = 32;

thread_local! {
    /// How much the template that this thread renders may still read.
    static LEFT: Cell<usize> = const { Cell::new(MAX_WORK_BYTES) };
}

/// Resets the limit. Called before each template.
pub(super) fn reset() {
    LEFT.set(MAX_WORK_BYTES);
}

/// Charges for reading all of a value.
pub(super) fn charge(value: &Value) -> Result<(), Error> {
    update(subtract(value, LEFT.get(), MAX_DEPTH))
}

/// Charges for reading only a value's surface: a string, or the number of items.
fn charge_surface(value: &Value) -> Result<(), Error> {
    let text = value.as_str().map_or(0, str::len);
    update(LEFT.get().checked_sub(ITEM_BYTES.saturating_add(text)))
}

fn update(left: Option<usize>) -> Result<(), Error> {
    LEFT.set(left.unwrap_or(0));
    match left {
        Some(_) => Ok(()),
        None => {
            let what = format!(
                "the template was stopped: it reads more than {} MiB",
                MAX_WORK_BYTES >> 20
            );
            Err(Error::new(ErrorKind::InvalidOperation, what))
        }
    }
}

/// The limit that is left after reading a value; `None` if the value exceeds it.
fn subtract(value: &Value, left: usize, depth: usize) -> Option<usize> {
    let left = left.checked_sub(ITEM_BYTES)?;
    if let Some(text) = value.as_str() {
        return left.checked_sub(text.len());
    }
    let is_map = value.kind() == ValueKind::Map;
    match (value.kind(), value.len()) {
        // Too many items: no need to visit them.
        (ValueKind::Seq | ValueKind::Map | ValueKind::Iterable, Some(items))
            if items > left / ITEM_BYTES =>
        {
            None
        }
        (ValueKind::Seq | ValueKind::Map, Some(_)) if depth > 0 => {
            let items = value.try_iter().ok()?;
            items.into_iter().try_fold(left, |left, item| match is_map {
                true => {
                    let left = subtract(&item, left, depth - 1)?;
                    subtract(&value.get_item(&item).ok()?, left, depth - 1)
                }
                false => subtract(&item, left, depth - 1),
            })
        }
        // An iterator can be read only once, so not here.
        (ValueKind::Iterable, Some(items)) => left.checked_sub(items * ITEM_BYTES),
        _ => Some(left),
    }
}

/// How much of its arguments a filter reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// All of them.
    Everything,
    /// Only the number of items, or the first or last one.
    Surface,
}

/// Adds a filter that charges its arguments, then calls the filter named `inner`.
pub(super) fn add_charged_filter(
    environment: &mut Environment<'static>,
    name: &'static str,
    inner: String,
    reads: Reads,
) {
    let charged = move |state: &mut State<'_, '_>, mut inputs: Rest<Value>, options: Kwargs| {
        inputs.iter().try_for_each(|value| match reads {
            Reads::Everything => charge(value),
            Reads::Surface => charge_surface(value),
        })?;
        if options.args().next().is_some() {
            inputs.push(Value::from(options));
        }
        state.apply_filter(&inner, &inputs)
    };
    environment.add_filter(name, charged);
}

/// Whether rendering a template or evaluating a condition may take long.
pub(super) fn may_run_slowly(source: &str) -> bool {
    let has = |what: &str| source.contains(what);
    source.len() > FAST_BYTES || has("*") || (has("{%") && has("for"))
}

/// Whether parsing may take long: the engine computes constants while it parses.
pub(super) fn may_parse_slowly(source: &str) -> bool {
    source.contains('*')
}

/// Runs work in its own thread, and abandons the thread on a timeout: a single instruction of
/// the engine can take until the process ends, and cannot be cancelled.
pub(super) fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> Result<T, TemplateError> + Send + 'static,
) -> Result<T, TemplateError> {
    let (sender, receiver) = channel();
    let work = move || {
        // Fails if the receiver gave up.
        let _ = sender.send(work());
    };
    let thread = std::thread::Builder::new().name("template".to_owned()).stack_size(STACK);
    if let Err(error) = thread.spawn(work) {
        return Err(TemplateError::new(format!("cannot start a thread for the template: {error}")));
    }
    receiver.recv_timeout(timeout).unwrap_or_else(|error| {
        Err(TemplateError::new(match error {
            RecvTimeoutError::Timeout => {
                format!("the template was stopped: it takes longer than {timeout:?}")
            }
            RecvTimeoutError::Disconnected => "the template engine failed".to_owned(),
        }))
    })
}
