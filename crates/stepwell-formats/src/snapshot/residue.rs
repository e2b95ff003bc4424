//! What is left of an object when all that can be worked out is taken away: with what can be
//! worked out it is the object again.

use std::collections::HashMap;

use serde_json::Value;

use super::Object;
use crate::json::fields::{Fields, quoted};

/// What an object says otherwise than the one that would be written for it; `None` if it says
/// the same.
pub(crate) fn residue(object: &Fields<'_>, usual: &Fields<'_>) -> Option<String> {
    let mut differs = Object::new();
    let mut done: Vec<&str> = Vec::new();
    for name in object.names() {
        let raw = object.raw(name).unwrap_or("null");
        let same = usual.raw(name).is_some_and(|usual| is_same(usual, raw));
        if !same && !done.contains(&name) {
            done.push(name);
            differs.put(name, raw);
        }
    }
    let absent: Vec<String> =
        usual.names().filter(|name| object.raw(name).is_none()).map(quoted).collect();
    let ordered: Vec<&str> = object.each().map(|(name, _)| name).collect();
    let kept = usual.each().map(|(name, _)| name).filter(|name| object.raw(name).is_some());
    let added = ordered.iter().copied().filter(|name| usual.raw(name).is_none());
    let in_order = kept.chain(added).eq(ordered.iter().copied());
    if done.is_empty() && absent.is_empty() && in_order {
        return None;
    }
    let mut residue = Object::new();
    if !done.is_empty() {
        residue.put("set", &differs.end());
    }
    if !absent.is_empty() {
        residue.put("absent", &super::list(absent));
    }
    if !in_order {
        residue.put("order", &super::list(ordered.into_iter().map(quoted)));
    }
    Some(residue.end())
}

/// The object of which this is left.
pub(crate) fn completed(usual: &Fields<'_>, residue: &str) -> String {
    let residue = Fields::parse(residue).unwrap_or_default();
    let set = residue.object("set").unwrap_or_default();
    let (absent, order) = (super::texts(residue.raw("absent")), super::texts(residue.raw("order")));
    let own = usual.each().filter(|(name, _)| !absent.iter().any(|it| it == name));
    let own = own.map(|(name, raw)| (name, set.raw(name).unwrap_or(raw)));
    let added = set.each().filter(|(name, _)| usual.raw(name).is_none());
    let mut fields: Vec<(&str, &str)> = own.chain(added).collect();
    let places: HashMap<&str, usize> =
        order.iter().enumerate().map(|(n, name)| (name.as_str(), n)).collect();
    fields.sort_by_key(|(name, _)| places.get(name).copied().unwrap_or(order.len()));
    let mut whole = Object::new();
    fields.iter().for_each(|(name, raw)| whole.put(name, raw));
    whole.end()
}

fn is_same(one: &str, other: &str) -> bool {
    let value = |raw: &str| serde_json::from_str::<Value>(raw).ok();
    // What is nested too deep to be looked at is not the same.
    one == other || value(one).is_some_and(|one| Some(one) == value(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_its_residue_and_what_is_usual() {
        let usual = Fields::parse(r#"{"role":"tool","name":"x","content":"a"}"#).unwrap();
        for raw in [
            r#"{"role":"tool","name":"x","content":"a"}"#,
            r#"{"role":"tool","content":"a"}"#,
            r#"{"role":"tool","name":null,"content":["a"],"z":1,"y":{"a":1}}"#,
            r#"{}"#,
            r#"{"content":"a","role":"tool","name":"x"}"#,
            r#"{"z":1,"role":"tool","y":2,"content":"b"}"#,
        ] {
            let object = Fields::parse(raw).unwrap();
            match residue(&object, &usual) {
                None => assert_eq!(raw, usual.rewritten(&[])),
                Some(left) => assert_eq!(completed(&usual, &left), raw, "{left}"),
            }
        }
    }
}
