//! What templates can do with values. Those that can make a value much larger are bounded.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::{MAX_RENDERED_BYTES, work};

/// Adds them, each so that what it is given is weighed first.
pub(super) fn add(environment: &mut Environment<'static>) {
    macro_rules! add {
        ($looks:expr, $($name:literal: $filter:path),* $(,)?) => {
            $(
                // No template can say a name that begins so.
                let by = concat!("=", $name);
                environment.add_filter(by, $filter);
                work::weighing(environment, $name, by.to_owned(), $looks);
            )*
        };
    }
    add! {
        work::Looks::Outside,
        "length": filters::length,
        "count": filters::length,
        "default": filters::default,
        "d": filters::default,
        "first": filters::first,
        "last": filters::last,
    }
    add! {
        work::Looks::Through,
        "lower": filters::lower,
        "upper": filters::upper,
        "title": filters::title,
        "capitalize": filters::capitalize,
        "trim": filters::trim,
        "min": filters::min,
        "max": filters::max,
        "sort": filters::sort,
        "unique": filters::unique,
        "reverse": filters::reverse,
        "list": filters::list,
        "items": filters::items,
        "dictsort": filters::dictsort,
        "lines": filters::lines,
        "split": filters::split,
        "select": filters::select,
        "reject": filters::reject,
        "selectattr": filters::selectattr,
        "rejectattr": filters::rejectattr,
        "round": filters::round,
        "abs": filters::abs,
        "int": filters::int,
        "float": filters::float,
        "bool": filters::bool,
        "string": string,
        "join": join,
        "replace": replace,
        "indent": indent,
        "truncate": truncate,
        "tojson": tojson,
        "map": map,
        "sum": sum,
    }
}

/// A text that does not grow beyond what a template may become.
#[derive(Default)]
struct Text(String);

impl Text {
    fn push(&mut self, more: &str) -> Result<(), Error> {
        self.write_str(more).map_err(|_| too_long())
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        if self.0.len() + more.len() > MAX_RENDERED_BYTES {
            return Err(std::fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

fn too_long() -> Error {
    let what = format!("a value becomes longer than {MAX_RENDERED_BYTES} bytes");
    Error::new(ErrorKind::InvalidOperation, what)
}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.into())
}

fn string(value: &Value) -> Result<String, Error> {
    let mut text = Text::default();
    write!(text, "{value}").map_err(|_| too_long())?;
    Ok(text.0)
}

fn join(value: &Value, by: Option<&str>) -> Result<String, Error> {
    let mut text = Text::default();
    for (n, item) in value.try_iter()?.enumerate() {
        if n > 0 {
            text.push(by.unwrap_or_default())?;
        }
        write!(text, "{item}").map_err(|_| too_long())?;
    }
    Ok(text.0)
}

fn replace(value: &str, from: &str, to: &str) -> Result<String, Error> {
    if from.is_empty() {
        return Err(wrong("`replace` needs a text to look for"));
    }
    let mut text = Text::default();
    for (n, part) in value.split(from).enumerate() {
        if n > 0 {
            text.push(to)?;
        }
        text.push(part)?;
    }
    Ok(text.0)
}

fn indent(value: &str, width: usize, first: Option<bool>) -> Result<String, Error> {
    if width > 100 {
        return Err(wrong("`indent` takes at most 100 blanks"));
    }
    let blanks = " ".repeat(width);
    let mut text = Text::default();
    for (n, line) in value.split_inclusive('\n').enumerate() {
        if (n > 0 || first == Some(true)) && !line.trim().is_empty() {
            text.push(&blanks)?;
        }
        text.push(line)?;
    }
    Ok(text.0)
}

/// The first so many characters, whole words unless they may be cut, and an end that says
/// that there was more.
fn truncate(
    value: &str,
    length: Option<usize>,
    cut_words: Option<bool>,
    end: Option<&str>,
) -> String {
    let (length, end) = (length.unwrap_or(255), end.unwrap_or("..."));
    if value.chars().nth(length).is_none() {
        return value.to_owned();
    }
    let most = length.saturating_sub(end.chars().count());
    let kept: String = value.chars().take(most).collect();
    let kept = match kept.rfind(' ') {
        Some(word) if cut_words != Some(true) => &kept[..word],
        _ => &kept,
    };
    format!("{kept}{end}")
}

fn tojson(value: &Value, indent: Option<usize>) -> Result<String, Error> {
    let mut bounded = super::Bounded::default();
    let written = match indent {
        None | Some(0) => serde_json::to_writer(&mut bounded, value),
        Some(_) => serde_json::to_writer_pretty(&mut bounded, value),
    };
    match written {
        Ok(()) => Ok(bounded.into_text()),
        Err(_) if bounded.full => Err(too_long()),
        Err(error) => Err(wrong(format!("this is no JSON: {error}"))),
    }
}

/// An attribute of each, or a filter over each.
#[expect(clippy::needless_pass_by_value, reason = "this is how the engine hands them over")]
fn map(
    state: &mut State<'_, '_>,
    value: &Value,
    arguments: Rest<Value>,
    options: Kwargs,
) -> Result<Vec<Value>, Error> {
    let attribute: Option<&str> = options.get("attribute")?;
    options.assert_all_used()?;
    let filter = arguments.first().and_then(Value::as_str);
    let mut items = Vec::new();
    let mut size = 0;
    for item in value.try_iter()? {
        let item = match (attribute, filter) {
            (Some(attribute), None) => {
                attribute.split('.').try_fold(item, |item, part| item.get_attr(part))?
            }
            // It would put the same value in many places, each time for nothing.
            (None, Some("default" | "d")) => {
                return Err(wrong("`map` takes no `default`"));
            }
            (None, Some(filter)) => {
                let mut given = vec![item];
                given.extend(arguments.iter().skip(1).cloned());
                state.apply_filter(filter, &given)?
            }
            _ => return Err(wrong("`map` needs `attribute=NAME` or a filter's name")),
        };
        size += item.as_str().map_or(0, str::len);
        if size > MAX_RENDERED_BYTES {
            return Err(too_long());
        }
        items.push(item);
    }
    Ok(items)
}

fn sum(value: &Value) -> Result<f64, Error> {
    let number = |item: Value| f64::try_from(item).map_err(|_| wrong("`sum` adds numbers"));
    value.try_iter()?.map(number).sum()
}
