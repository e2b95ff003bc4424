//! The template engine, configured once: what templates can use, and how much of it.

use std::sync::OnceLock;

use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value};

use super::{filters, work};

/// How many instructions a template may execute. Enough for several loops over a thousand
/// results with a dozen uses each.
const FUEL: u64 = 100_000;

/// The engine's limit for nested calls.
const MAX_RECURSION: usize = 32;

/// The one engine of the process.
pub(super) fn shared() -> &'static Environment<'static> {
    static SHARED: OnceLock<Environment<'static>> = OnceLock::new();
    SHARED.get_or_init(build)
}

fn build() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, state, value| {
        work::charge(value)?;
        minijinja::escape_formatter(out, state, value)
    });
    environment.add_function("range", minijinja::functions::range);
    filters::add(&mut environment);
    tests(&mut environment);
    environment
}

fn tests(environment: &mut Environment<'static>) {
    use minijinja::tests;
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("in", tests::is_in);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("eq", tests::is_eq);
    environment.add_test("equalto", tests::is_eq);
    environment.add_test("==", tests::is_eq);
    environment.add_test("ne", tests::is_ne);
    environment.add_test("!=", tests::is_ne);
    environment.add_test("lt", tests::is_lt);
    environment.add_test("<", tests::is_lt);
    environment.add_test("le", tests::is_le);
    environment.add_test("<=", tests::is_le);
    environment.add_test("gt", tests::is_gt);
    environment.add_test(">", tests::is_gt);
    environment.add_test("ge", tests::is_ge);
    environment.add_test(">=", tests::is_ge);
}

/// The methods of Python strings and dictionaries that templates written for Jinja use.
fn method(
    _: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    work::charge(value)?;
    let unknown = || Error::new(ErrorKind::UnknownMethod, format!("unknown method `{name}`"));
    let text = |n: usize| arguments.get(n).and_then(Value::as_str);
    if let Some(this) = value.as_str() {
        return match (name, arguments.len()) {
            ("lower", 0) => Ok(this.to_lowercase().into()),
            ("upper", 0) => Ok(this.to_uppercase().into()),
            ("strip", 0) => Ok(this.trim().into()),
            ("lstrip", 0) => Ok(this.trim_start().into()),
            ("rstrip", 0) => Ok(this.trim_end().into()),
            ("startswith", 1) => Ok(text(0).is_some_and(|start| this.starts_with(start)).into()),
            ("endswith", 1) => Ok(text(0).is_some_and(|end| this.ends_with(end)).into()),
            ("split", 0) => Ok(list(this.split_whitespace())),
            ("split", 1) => match text(0) {
                Some(by) if !by.is_empty() => Ok(list(this.split(by))),
                _ => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "`split` expects a non-empty string",
                )),
            },
            ("splitlines", 0) => Ok(list(this.lines())),
            _ => Err(unknown()),
        };
    }
    if value.kind() != ValueKind::Map {
        return Err(unknown());
    }
    let entries = || -> Result<Vec<(Value, Value)>, Error> {
        value.try_iter()?.map(|key| Ok((key.clone(), value.get_item(&key)?))).collect()
    };
    match (name, arguments) {
        ("get", [key]) => Ok(found(value.get_item(key)?, Value::from(()))),
        ("get", [key, default]) => Ok(found(value.get_item(key)?, default.clone())),
        ("keys", []) => Ok(value.try_iter()?.collect::<Vec<_>>().into()),
        ("values", []) => Ok(entries()?.into_iter().map(|(_, it)| it).collect::<Vec<_>>().into()),
        ("items", []) => {
            let pairs = entries()?.into_iter().map(|(key, it)| Value::from(vec![key, it]));
            Ok(pairs.collect::<Vec<_>>().into())
        }
        _ => Err(unknown()),
    }
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    texts.map(Value::from).collect::<Vec<_>>().into()
}

fn found(value: Value, default: Value) -> Value {
    if value.is_undefined() { default } else { value }
}
