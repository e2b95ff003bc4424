//! The users' own metadata of a session.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::{Edited, Seq, SessionId};
use crate::sessions::well::Stepwell;

impl Stepwell {
    /// Sets entries of the users' own metadata, also while the session runs; `null` removes one.
    pub fn set_metadata(&self, id: &SessionId, entries: BTreeMap<String, Value>) -> Result<Seq> {
        let is_wrong = |key: &&String| key.trim().is_empty() || key.chars().any(char::is_control);
        if let Some(key) = entries.keys().find(is_wrong) {
            let (session, kind) = (id.clone(), "metadata".to_owned());
            let why = format!("invalid key {key:?}: it is empty or has control characters");
            return Err(Error::Illegal { session, kind, why });
        }
        self.edit(id, Edited { metadata: entries, ..Edited::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Created;

    #[test]
    fn users_set_any_key_also_while_a_session_runs() {
        let well = Stepwell::in_memory();
        let running = well.create(Created::new("s".parse().unwrap(), "t")).unwrap();
        let set = |key: &str, value: Value| {
            well.set_metadata(running.id(), BTreeMap::from([(key.to_owned(), value)]))
        };
        set("ticket", "T-1".into()).unwrap();
        assert!(set(" ", 1.into()).is_err());
        let kept = || running.info().unwrap().head.metadata;
        assert_eq!(kept(), BTreeMap::from([("ticket".to_owned(), "T-1".into())]));
        set("ticket", Value::Null).unwrap();
        assert!(kept().is_empty());
    }
}
