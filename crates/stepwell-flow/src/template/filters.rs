//! The filters of templates. Those that can make a value much larger are bounded.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::{MAX_RENDERED_BYTES, work};

/// Adds all filters. Each charges its arguments against the work limit first.
pub(super) fn add(environment: &mut Environment<'static>) {
    macro_rules! add {
        ($reads:expr, $($name:literal: $filter:path),* $(,)?) => {
            $(
                // No template can use a name that starts with `=`.
                let inner = concat!("=", $name);
                environment.add_filter(inner, $filter);
                work::add_charged_filter(environment, $name, inner.to_owned(), $reads);
            )*
        };
    }
    add! {
        work::Reads::Surface,
        "length": filters::length,
        "count": filters::length,
        "default": filters::default,
        "d": filters::default,
        "first": filters::first,
        "last": filters::last,
    }
    add! {
        work::Reads::Everything,
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

/// A string that cannot exceed [`MAX_RENDERED_BYTES`].
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
    let what = format!("a value exceeds {MAX_RENDERED_BYTES} bytes");
    Error::new(ErrorKind::InvalidOperation, what)
}

fn invalid(what: impl Into<String>) -> Error {
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
        return Err(invalid("`replace` expects a non-empty string to search for"));
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
        return Err(invalid("`indent` is limited to 100 spaces"));
    }
    let spaces = " ".repeat(width);
    let mut text = Text::default();
    for (n, line) in value.split_inclusive('\n').enumerate() {
        if (n > 0 || first == Some(true)) && !line.trim().is_empty() {
            text.push(&spaces)?;
        }
        text.push(line)?;
    }
    Ok(text.0)
}

/// The first `length` characters, `end` included, which marks that text is missing. Cuts
/// between words unless `cut_words` is set.
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
    let max = length.saturating_sub(end.chars().count());
    let kept: String = value.chars().take(max).collect();
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
        Err(error) => Err(invalid(format!("the value cannot be written as JSON: {error}"))),
    }
}

/// Takes an attribute of each item, or applies a filter to each.
#[expect(clippy::needless_pass_by_value, reason = "the engine passes them by value")]
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
            // It would copy one value into many places without any charge.
            (None, Some("default" | "d")) => {
                return Err(invalid("`map` does not support `default`"));
            }
            (None, Some(filter)) => {
                let mut inputs = vec![item];
                inputs.extend(arguments.iter().skip(1).cloned());
                state.apply_filter(filter, &inputs)?
            }
            _ => return Err(invalid("`map` expects `attribute=NAME` or the name of a filter")),
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
    let number = |item: Value| f64::try_from(item).map_err(|_| invalid("`sum` expects numbers"));
    value.try_iter()?.map(number).sum()
}
