//! Names of calls in a transcript: each once, and without what providers refuse.

use std::collections::{HashMap, HashSet};

use crate::json::fields::{Fields, push_field, quoted};

/// The names that were given.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    used: HashSet<String>,
    /// What each call is called here, by the name that its result will bear.
    open: HashMap<String, Named>,
}

/// What a call is called, and its tool.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) id: String,
    pub(crate) tool: String,
}

impl Calls {
    /// The name of a call of a tool.
    pub(crate) fn call(&mut self, id: &str, tool: &str) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let plain: String = id.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
        let plain = if plain.is_empty() { "call".to_owned() } else { plain };
        let mut name = plain.clone();
        let mut n = 1;
        while !self.used.insert(name.clone()) {
            n += 1;
            name = format!("{plain}_{n}");
        }
        self.open.insert(id.to_owned(), Named { id: name.clone(), tool: tool.to_owned() });
        name
    }

    /// The call that a result answers; nothing, if there is no such call.
    pub(crate) fn result(&self, id: &str) -> Option<&Named> {
        self.open.get(id)
    }

    /// A call that was written as another system wrote it.
    pub(crate) fn known(&mut self, id: &str, tool: &str) {
        self.used.insert(id.to_owned());
        self.open.insert(id.to_owned(), Named { id: id.to_owned(), tool: tool.to_owned() });
    }
}

/// A call's arguments as the object that they must be.
pub(crate) fn object_of(arguments: &str) -> String {
    match serde_json::from_str::<Fields<'_>>(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => {
            let mut object = String::from("{");
            push_field(&mut object, "malformed_arguments", &quoted(arguments));
            object.push('}');
            object
        }
    }
}
