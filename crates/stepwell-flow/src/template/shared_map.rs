//! A mapping that grows while templates use it. Adding a name does not copy the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, Serde};
use parking_lot::Mutex;
use serde::Serialize;

/// A mapping that grows. Clones share its entries.
#[derive(Clone, Debug, Default)]
pub struct SharedMap(Arc<Mutex<BTreeMap<String, Value>>>);

impl SharedMap {
    /// Sets the value of a name.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) {
        self.0.lock().insert(name.into(), Value::from(Serde(value)));
    }

    pub(super) fn value(&self) -> Value {
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
