//! The users' own metadata of a session.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::log::Head;
use crate::model::{Edited, Seq, SessionId};
use crate::sessions::well::Stepwell;

/// Keys that Stepwell itself uses, and users may not set.
const RESERVED: [&str; 8] =
    ["agent", "flow", "imported", "mode", "model", "subagent", "summary", "truncated"];

impl Head {
    /// The users' own metadata, without Stepwell's keys.
    pub fn users_metadata(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.metadata.iter().filter(|(key, _)| !RESERVED.contains(&key.as_str()))
    }
}

impl Stepwell {
    /// Sets entries of the users' own metadata, also while the session runs; `null` removes one.
    /// Keys that Stepwell itself uses are refused.
    pub fn set_metadata(&self, id: &SessionId, entries: BTreeMap<String, Value>) -> Result<Seq> {
        let refuse = |why: String| {
            let (session, kind) = (id.clone(), "metadata".to_owned());
            Err(Error::Illegal { session, kind, why })
        };
        for key in entries.keys() {
            if RESERVED.contains(&key.as_str()) {
                return refuse(format!("Stepwell itself uses the key {key:?}"));
            }
            if key.trim().is_empty() || key.chars().any(char::is_control) {
                return refuse(format!(
                    "invalid key {key:?}: it is empty or has control characters"
                ));
            }
        }
        self.edit(id, Edited { metadata: entries, ..Edited::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Created;

    #[test]
    fn users_set_only_their_own_keys_also_while_a_session_runs() {
        let well = Stepwell::in_memory();
        let running = well.create(Created::new("s".parse().unwrap(), "t")).unwrap();
        let set = |key: &str, value: Value| {
            well.set_metadata(running.id(), BTreeMap::from([(key.to_owned(), value)]))
        };
        set("ticket", "T-1".into()).unwrap();
        assert!(set("mode", "yolo".into()).is_err() && set(" ", 1.into()).is_err());
        let kept = || running.info().unwrap().head.metadata;
        assert_eq!(kept(), BTreeMap::from([("ticket".to_owned(), "T-1".into())]));
        set("ticket", Value::Null).unwrap();
        assert!(kept().is_empty());
    }
}
