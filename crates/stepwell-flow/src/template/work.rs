//! Work: how much a template goes through, and for how long.
//!
//! Fuel counts instructions, and one instruction can go through megabytes. So whatever a
//! filter, a method or an output is given is weighed before it is looked at; and what cannot
//! be weighed, because the engine does it by itself, is given up when it takes too long.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::TemplateError;

/// How much a template may go through: three thousand answers of ten kilobytes.
const MAX_WORK_BYTES: usize = 32 << 20;

/// How long one that may be long can take. What is weighed ends long before.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Up to this, a template without loops is filled in no time.
const SHORT: usize = 16 << 10;

/// As much as the main thread has: the engine calls itself for each bracket.
const STACK: usize = 8 << 20;

/// What an item weighs besides its text.
const ITEM: usize = 16;

/// How deep values are weighed: deeper than any answer that is read.
const DEPTH: usize = 32;

thread_local! {
    /// What the template that this thread fills may still go through.
    static LEFT: Cell<usize> = const { Cell::new(MAX_WORK_BYTES) };
}

/// A template begins.
pub(super) fn begin() {
    LEFT.set(MAX_WORK_BYTES);
}

/// Takes what a value weighs from what the template may go through.
pub(super) fn charge(value: &Value) -> Result<(), Error> {
    take(weigh(value, LEFT.get(), DEPTH))
}

/// The same for what looks at a value from outside: at a text, or at how many items there are.
fn charge_outside(value: &Value) -> Result<(), Error> {
    let text = value.as_str().map_or(0, str::len);
    take(LEFT.get().checked_sub(ITEM.saturating_add(text)))
}

fn take(left: Option<usize>) -> Result<(), Error> {
    LEFT.set(left.unwrap_or(0));
    match left {
        Some(_) => Ok(()),
        None => {
            let what = format!(
                "it goes through more than {} MiB, again and again: it was stopped",
                MAX_WORK_BYTES >> 20
            );
            Err(Error::new(ErrorKind::InvalidOperation, what))
        }
    }
}

/// What is left when a value was weighed, if it does not weigh more.
fn weigh(value: &Value, left: usize, depth: usize) -> Option<usize> {
    let left = left.checked_sub(ITEM)?;
    if let Some(text) = value.as_str() {
        return left.checked_sub(text.len());
    }
    let is_map = value.kind() == ValueKind::Map;
    match (value.kind(), value.len()) {
        // Nothing is longer than what it would take to look at all of it.
        (ValueKind::Seq | ValueKind::Map | ValueKind::Iterable, Some(items))
            if items > left / ITEM =>
        {
            None
        }
        (ValueKind::Seq | ValueKind::Map, Some(_)) if depth > 0 => {
            let items = value.try_iter().ok()?;
            items.into_iter().try_fold(left, |left, item| match is_map {
                true => {
                    let left = weigh(&item, left, depth - 1)?;
                    weigh(&value.get_item(&item).ok()?, left, depth - 1)
                }
                false => weigh(&item, left, depth - 1),
            })
        }
        // What can be looked at only once is not looked at here.
        (ValueKind::Iterable, Some(items)) => left.checked_sub(items * ITEM),
        _ => Some(left),
    }
}

/// How much of what it is given a filter looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// At all that is in it.
    Through,
    /// At how much it is, or at an end of it.
    Outside,
}

/// Has a filter, that is there by another name, weigh what it is given.
pub(super) fn weighing(
    environment: &mut Environment<'static>,
    name: &'static str,
    by: String,
    looks: Looks,
) {
    let weighed = move |state: &mut State<'_, '_>, mut given: Rest<Value>, options: Kwargs| {
        given.iter().try_for_each(|value| match looks {
            Looks::Through => charge(value),
            Looks::Outside => charge_outside(value),
        })?;
        if options.args().next().is_some() {
            given.push(Value::from(options));
        }
        state.apply_filter(&by, &given)
    };
    environment.add_filter(name, weighed);
}

/// Could the engine be at a template or a condition for long?
pub(super) fn may_be_long(source: &str) -> bool {
    let has = |what: &str| source.contains(what);
    source.len() > SHORT || has("*") || (has("{%") && has("for"))
}

/// Can the engine be at it for long while it reads it? It computes what it can.
pub(super) fn may_be_long_to_read(source: &str) -> bool {
    source.contains('*')
}

/// Does something in a thread of its own, which is left to itself when it takes too long: the
/// engine can be at a single instruction until the process ends.
pub(super) fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> Result<T, TemplateError> + Send + 'static,
) -> Result<T, TemplateError> {
    let (tell, told) = channel();
    let work = move || {
        // Nobody listens if it took too long.
        let _ = tell.send(work());
    };
    let thread = std::thread::Builder::new().name("template".to_owned()).stack_size(STACK);
    if let Err(error) = thread.spawn(work) {
        return Err(TemplateError::new(format!("no thread could be started for it: {error}")));
    }
    told.recv_timeout(patience).unwrap_or_else(|error| {
        Err(TemplateError::new(match error {
            RecvTimeoutError::Timeout => {
                format!("it takes longer than {patience:?}: it was stopped")
            }
            RecvTimeoutError::Disconnected => "the engine failed".to_owned(),
        }))
    })
}
