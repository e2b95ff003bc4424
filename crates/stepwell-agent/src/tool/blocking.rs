//! Tools that only read. They run on their own thread, and stop if their result is no longer
//! needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;
use stepwell::model::Effect;

use super::{Done, Plan, Tool, ToolEnv};
use crate::provider::ToolSpec;

/// A tool that only reads.
#[derive(Debug)]
pub(super) struct Looking {
    pub(super) spec: ToolSpec,
    pub(super) preview: fn(&Value) -> String,
    pub(super) look: fn(&Value, &ToolEnv, &Wanted) -> Result<String, String>,
}

/// Whether the result is still needed.
#[derive(Clone, Debug)]
pub(super) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Fails once the result is no longer needed, which ends the tool.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { Err("stopped".to_owned()) }
    }
}

/// Marks the result as no longer needed when dropped.
struct Wish(Wanted);

impl Drop for Wish {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl Tool for Looking {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn preview(&self, arguments: &Value) -> String {
        (self.preview)(arguments)
    }

    fn plan(&self, _: &Value, _: &ToolEnv) -> Result<Plan, String> {
        Ok(Plan::default())
    }

    fn run<'a>(&'a self, arguments: &'a Value, place: &'a ToolEnv) -> BoxFuture<'a, Done> {
        Box::pin(async move {
            let wish = Wish(Wanted(Arc::new(AtomicBool::new(true))));
            let (wanted, look) = (wish.0.clone(), self.look);
            let (place, arguments) =
                place.looked_into(arguments).unwrap_or_else(|| (place.clone(), arguments.clone()));
            let looked =
                tokio::task::spawn_blocking(move || look(&arguments, &place, &wanted)).await;
            match looked {
                Ok(Ok(text)) => Done::ok(text),
                Ok(Err(text)) => Done::failed(text),
                Err(error) => Done::failed(format!("the tool failed: {error}")),
            }
        })
    }
}
