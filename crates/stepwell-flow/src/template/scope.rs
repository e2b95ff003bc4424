//! The values that a template sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Serde};
use minijinja::{ErrorKind, Value};
use parking_lot::Mutex;
use serde::Serialize;

use super::TemplateError;
use crate::names::nearest;

/// The names that a template sees, and their values. Cloning is cheap: values are shared.
#[derive(Clone, Debug, Default)]
pub struct Scope(BTreeMap<String, Value>);

impl Scope {
    /// An empty scope.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name, or replaces its value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        self.set(name, value);
        self
    }

    /// Sets the value of a name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Serialize) {
        self.0.insert(name.into(), Value::from(Serde(value)));
    }

    /// Whether the name has a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets a name to a mapping that the caller keeps adding to.
    pub fn share(&mut self, name: impl Into<String>, mapping: &SharedMap) {
        self.0.insert(name.into(), mapping.value());
    }

    pub(super) fn value(&self) -> Value {
        Value::from_pairs(self.0.iter().map(|(name, value)| (name.clone(), value.clone())))
    }

    /// Improves the error for an undefined value: names the one that is missing.
    pub(super) fn explain(
        &self,
        mut explained: TemplateError,
        error: &minijinja::Error,
        used: &BTreeSet<String>,
    ) -> TemplateError {
        if error.kind() == ErrorKind::UndefinedError
            && let Some(missing) = used.iter().find_map(|path| self.missing(path))
        {
            explained.what = missing;
        }
        explained
    }

    fn missing(&self, path: &str) -> Option<String> {
        let mut parts = path.split('.');
        let first = parts.next()?;
        let meant = |near: Option<&str>| {
            near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
        };
        let Some(mut here) = self.0.get(first).cloned() else {
            let near = nearest(first, self.0.keys().map(String::as_str));
            return Some(format!("`{first}` is undefined{}", meant(near)));
        };
        let mut walked = first.to_owned();
        for part in parts {
            let next = here.get_attr(part).ok().filter(|value| !value.is_undefined());
            let Some(next) = next else {
                let keys: Vec<String> = match here.kind() {
                    minijinja::value::ValueKind::Map => {
                        here.try_iter().into_iter().flatten().map(|key| key.to_string()).collect()
                    }
                    _ => Vec::new(),
                };
                let near = nearest(part, keys.iter().map(String::as_str));
                return Some(format!("`{walked}` has no `{part}`{}", meant(near)));
            };
            walked = format!("{walked}.{part}");
            here = next;
        }
        None
    }
}

/// A mapping that grows while templates use it: a new name does not copy the rest. Clones share its
/// entries.
#[derive(Clone, Debug, Default)]
pub struct SharedMap(Arc<Mutex<BTreeMap<String, Value>>>);

impl SharedMap {
    /// Sets the value of a name.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) {
        self.0.lock().insert(name.into(), Value::from(Serde(value)));
    }

    fn value(&self) -> Value {
        Value::from_object(self.clone())
    }
}

impl Object for SharedMap {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.lock().get(key.as_str()?).cloned()
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.lock().get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.lock().keys().cloned().map(Value::from).collect())
    }
}
