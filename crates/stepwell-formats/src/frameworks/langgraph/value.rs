//! Values as LangGraph serializes them, as JSON. Python objects become objects of their fields, with
//! their class; bytes become base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmpv::Value as Packed;
use serde_json::{Map, Number, Value};

/// The field that names the class of a Python object.
pub(super) const CLASS: &str = "__class__";

/// How deep objects may lie in each other: each is packed anew.
const DEEPEST: usize = 64;

/// Reads a value of a type that LangGraph names: `msgpack`, `json`, `bytes`, …
pub(super) fn decode(kind: &str, bytes: &[u8]) -> Result<Value, String> {
    match kind {
        "null" | "empty" => Ok(Value::Null),
        "bytes" | "bytearray" => Ok(binary(bytes)),
        "msgpack" => unpack(bytes, DEEPEST),
        "json" => {
            let read = serde_json::from_slice(bytes).map(revive);
            read.map_err(|error| format!("it is no JSON ({error})"))
        }
        // Encrypted ones and pickles. A pickle is a program, which nobody should run to read it.
        other => Err(format!("values of the type {other:?} are not read")),
    }
}

fn binary(bytes: &[u8]) -> Value {
    Map::from_iter([("__bytes__".to_owned(), STANDARD.encode(bytes).into())]).into()
}

fn unpack(mut bytes: &[u8], depth: usize) -> Result<Value, String> {
    let depth = depth.checked_sub(1).ok_or("objects lie too deep in each other")?;
    let packed = rmpv::decode::read_value(&mut bytes).map_err(|error| error.to_string())?;
    plain(packed, depth)
}

/// A packed value as JSON.
fn plain(packed: Packed, depth: usize) -> Result<Value, String> {
    Ok(match packed {
        Packed::Nil => Value::Null,
        Packed::Boolean(it) => it.into(),
        Packed::Integer(it) => match (it.as_i64(), it.as_u64()) {
            (Some(it), _) => it.into(),
            (None, it) => it.into(),
        },
        Packed::F32(it) => float(it.into()),
        Packed::F64(it) => float(it),
        Packed::String(it) => String::from_utf8_lossy(it.as_bytes()).into_owned().into(),
        Packed::Binary(it) => binary(&it),
        Packed::Array(it) => {
            it.into_iter().map(|it| plain(it, depth)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Packed::Map(it) => {
            let pairs =
                it.into_iter().map(|(key, value)| Ok((name(key, depth)?, plain(value, depth)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        Packed::Ext(kind, bytes) => object(kind, &bytes, depth)?,
    })
}

/// Keys are texts in JSON.
fn name(key: Packed, depth: usize) -> Result<String, String> {
    Ok(match plain(key, depth)? {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

/// Python has numbers that JSON does not.
fn float(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

/// A Python object: what it is, and what it is made of again.
fn object(kind: i8, bytes: &[u8], depth: usize) -> Result<Value, String> {
    match kind {
        0..=5 => {}
        // A snapshot of a channel that is kept as what changed.
        7 => return unpack(bytes, depth),
        // A list of numbers of numpy's, and what is not known.
        kind => {
            let mut object = Map::new();
            object.insert("__type__".to_owned(), kind.into());
            object.insert("__bytes__".to_owned(), STANDARD.encode(bytes).into());
            return Ok(object.into());
        }
    }
    let Value::Array(made) = unpack(bytes, depth)? else {
        return Err("an object is not made of a list".to_owned());
    };
    let mut made = made.into_iter();
    let class = match (made.next(), made.next()) {
        (Some(Value::String(module)), Some(Value::String(class))) => format!("{module}.{class}"),
        _ => return Err("an object has no class".to_owned()),
    };
    let mut fields = match made.next().unwrap_or_default() {
        Value::Object(fields) => fields,
        value => Map::from_iter([("value".to_owned(), value)]),
    };
    fields.insert(CLASS.to_owned(), class.into());
    Ok(fields.into())
}

/// The older form, in JSON: what is an object there is one here.
fn revive(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(revive).collect(),
        Value::Object(mut object) if object.get("lc").is_some_and(Value::is_number) => {
            let words = object.get("id").and_then(Value::as_array).into_iter().flatten();
            let class: Vec<&str> = words.filter_map(Value::as_str).collect();
            let class = class.join(".");
            let mut fields = match object.remove("kwargs") {
                Some(Value::Object(fields)) => fields,
                other => Map::from_iter([("value".to_owned(), other.unwrap_or_default())]),
            };
            for field in fields.values_mut() {
                *field = revive(field.take());
            }
            fields.insert(CLASS.to_owned(), class.into());
            fields.into()
        }
        Value::Object(mut object) => {
            object.values_mut().for_each(|field| *field = revive(field.take()));
            object.into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn packed(value: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    #[test]
    fn an_object_becomes_its_fields_and_its_class() {
        let fields =
            Packed::Map(vec![("content".into(), "hi".into()), (1.into(), Packed::F64(f64::NAN))]);
        let made = Packed::Array(vec![
            "langchain_core.messages.human".into(),
            "HumanMessage".into(),
            fields,
        ]);
        let bytes =
            packed(&Packed::Array(vec![Packed::Ext(5, packed(&made)), Packed::Binary(vec![1])]));
        let wanted = json!([
            {"content": "hi", "1": "NaN", "__class__": "langchain_core.messages.human.HumanMessage"},
            {"__bytes__": "AQ=="}
        ]);
        assert_eq!(decode("msgpack", &bytes).unwrap(), wanted);
    }

    #[test]
    fn the_older_form_in_json_is_read_the_same() {
        let text = r#"[{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
                        "kwargs": {"content": "yes", "type": "ai"}}]"#;
        let wanted = json!([{"content": "yes", "type": "ai", "__class__": "langchain.schema.messages.AIMessage"}]);
        assert_eq!(decode("json", text.as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn what_is_encrypted_pickled_torn_or_too_deep_is_refused_with_why() {
        for kind in ["pickle", "msgpack+aes"] {
            assert!(decode(kind, b"x").unwrap_err().contains(kind));
        }
        assert!(decode("msgpack", &[0x93, 1]).is_err());
        let mut deep = packed(&Packed::Nil);
        for _ in 0..100 {
            deep = packed(&Packed::Ext(7, deep));
        }
        assert!(decode("msgpack", &deep).unwrap_err().contains("deep"));
    }
}
