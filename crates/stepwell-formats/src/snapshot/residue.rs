//! What is left of an object when all that can be worked out is taken away: with what can be
//! worked out it is the object again.

use serde_json::Value;

use super::Object;
use crate::fields::{Fields, elements, quoted, text_of};

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
    if done.is_empty() && absent.is_empty() {
        return None;
    }
    let mut residue = Object::new();
    if !done.is_empty() {
        residue.put("set", &differs.end());
    }
    if !absent.is_empty() {
        residue.put("absent", &super::list(absent));
    }
    Some(residue.end())
}

/// The object of which this is left.
pub(crate) fn completed(usual: &Fields<'_>, residue: &str) -> String {
    let residue = Fields::parse(residue).unwrap_or_default();
    let set = residue.object("set").unwrap_or_default();
    let absent = residue.raw("absent").and_then(|raw| elements(raw).ok()).unwrap_or_default();
    let absent: Vec<_> = absent.into_iter().filter_map(text_of).collect();
    let mut whole = Object::new();
    for name in usual.names().filter(|name| !absent.iter().any(|it| it == name)) {
        let raw = set.raw(name).or_else(|| usual.raw(name)).unwrap_or("null");
        whole.put(name, raw);
    }
    let known: Vec<&str> = usual.names().collect();
    whole.put_others(&set, &known);
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
        ] {
            let object = Fields::parse(raw).unwrap();
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            match residue(&object, &usual) {
                None => assert_eq!(value(raw), value(&usual.rewritten(&[]))),
                Some(left) => assert_eq!(value(&completed(&usual, &left)), value(raw), "{left}"),
            }
        }
    }
}
