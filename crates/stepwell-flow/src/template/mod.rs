//! Templates and conditions: text that can use earlier answers.
//!
//! The author of the spec writes them, and the output of models fills them. So they are
//! sandboxed: no files, no includes, no macros. An undefined name is an error. Whatever they
//! contain, they end soon and take little memory. Four limits ensure that: fuel counts executed
//! instructions, `work` charges for the data that is read, output stops at
//! [`MAX_RENDERED_BYTES`], and `guard` rejects what could make a value grow without output.

mod environment;
mod filters;
mod guard;
mod scope;
mod work;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

pub use scope::{Scope, SharedMap};

/// The largest output of a template. Models accept less, and it must fit into an event.
pub const MAX_RENDERED_BYTES: usize = 4 << 20;

/// The longest template.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// A text with placeholders, such as `Write about {{ topic }}.`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Template {
    source: String,
    /// The names it uses. Kept from the parse, because parsing is expensive.
    names: BTreeSet<String>,
}

/// When a graph follows an edge: an expression such as `nodes.check.response == "ok"`, with or
/// without braces, or `else`, which is always true.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Condition {
    source: String,
    /// The names it uses.
    names: BTreeSet<String>,
}

/// Why a template cannot be parsed or rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map(|line| format!("in line {line} of the template: ")).unwrap_or_default())]
pub struct TemplateError {
    /// What is wrong.
    pub what: String,
    /// The line of the template, from 1, if it has several.
    pub line: Option<usize>,
}

impl TemplateError {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), line: None }
    }

    /// An error of the engine for this source.
    fn of(error: &minijinja::Error, text: &str) -> Self {
        use minijinja::ErrorKind;
        let what = match error.kind() {
            ErrorKind::OutOfFuel => {
                "the template was stopped: it executes too many instructions".to_owned()
            }
            ErrorKind::UndefinedError => "a value is undefined".to_owned(),
            kind => match error.detail() {
                Some(detail) => detail.to_owned(),
                None => kind.to_string(),
            },
        };
        let line = error.line().filter(|_| text.trim_end().contains('\n'));
        Self { what, line }
    }
}

impl Template {
    /// Parses and checks a template.
    pub fn parse(source: impl Into<String>) -> Result<Self, TemplateError> {
        let source = source.into();
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::new(format!(
                "the template has {} bytes; the limit is {MAX_TEMPLATE_BYTES}",
                source.len()
            )));
        }
        // Without a brace it is plain text.
        if !source.contains('{') {
            return Ok(Self { source, names: BTreeSet::new() });
        }
        guard::check(&source)?;
        let slow = work::may_parse_slowly(&source);
        let read = move || {
            let compiled = environment::shared().template_from_str(&source);
            let compiled = compiled.map_err(|error| TemplateError::of(&error, &source))?;
            let names = compiled.undeclared_variables(true).into_iter().collect();
            Ok(Self { source, names })
        };
        match slow {
            true => work::with_timeout(work::TIMEOUT, read),
            false => read(),
        }
    }

    /// The original text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names it uses, as far as its text tells: `topic`, `tasks.fetch.response`, `steps`.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Renders it with these values.
    pub fn render(&self, scope: &Scope) -> Result<String, TemplateError> {
        match work::may_run_slowly(&self.source) {
            true => self.render_within(work::TIMEOUT, scope),
            false => self.render_here(scope),
        }
    }

    fn render_within(&self, timeout: Duration, scope: &Scope) -> Result<String, TemplateError> {
        let (template, scope) = (self.clone(), scope.clone());
        work::with_timeout(timeout, move || template.render_here(&scope))
    }

    fn render_here(&self, scope: &Scope) -> Result<String, TemplateError> {
        work::reset();
        let compiled = environment::shared().template_from_str(&self.source);
        let compiled = compiled.map_err(|error| TemplateError::of(&error, &self.source))?;
        let mut text = Bounded::default();
        match compiled.render_captured_to(scope.value(), &mut text) {
            Ok(_) => Ok(text.into_text()),
            Err(_) if text.full => {
                Err(TemplateError::new(format!("the output exceeds {MAX_RENDERED_BYTES} bytes")))
            }
            Err(error) => {
                Err(scope.explain(TemplateError::of(&error, &self.source), &error, &self.names))
            }
        }
    }
}

/// Renders the placeholders of a text whose values are known, and leaves the others as they are.
/// A text with statements is rendered completely or not at all.
#[must_use]
pub fn render_known(source: &str, scope: &Scope) -> String {
    let render = |text: &str| Template::parse(text).and_then(|it| it.render(scope)).ok();
    if let Some(rendered) = render(source) {
        return rendered;
    }
    if source.contains("{%") || source.contains("{#") {
        return source.to_owned();
    }
    let (mut text, mut rest) = (String::new(), source);
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let end = start + length + 2;
        let placeholder = &rest[start..end];
        text.push_str(&rest[..start]);
        text.push_str(&render(placeholder).unwrap_or_else(|| placeholder.to_owned()));
        rest = &rest[end..];
    }
    text + rest
}

impl Condition {
    /// Parses and checks a condition.
    pub fn parse(source: impl Into<String>) -> Result<Self, TemplateError> {
        Self::parse_within(work::TIMEOUT, source.into())
    }

    fn parse_within(timeout: Duration, source: String) -> Result<Self, TemplateError> {
        let Some(expression) = expression(&source).map(str::to_owned) else {
            return Ok(Self { source, names: BTreeSet::new() });
        };
        if expression.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::new("the condition is too long"));
        }
        guard::check_expression(&expression)?;
        let slow = work::may_parse_slowly(&expression);
        let read = move || {
            let compiled = environment::shared().compile_expression(&expression);
            let compiled = compiled.map_err(|error| TemplateError::of(&error, &expression))?;
            Ok(compiled.undeclared_variables(true).into_iter().collect())
        };
        let names = if slow { work::with_timeout(timeout, read) } else { read() }?;
        Ok(Self { source, names })
    }

    /// The original text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it is always true.
    #[must_use]
    pub fn is_else(&self) -> bool {
        expression(&self.source).is_none()
    }

    /// The names it uses.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Whether it is true for these values.
    pub fn holds(&self, scope: &Scope) -> Result<bool, TemplateError> {
        match work::may_run_slowly(&self.source) {
            true => self.evaluate_within(work::TIMEOUT, scope),
            false => self.evaluate_here(scope),
        }
    }

    fn evaluate_within(&self, timeout: Duration, scope: &Scope) -> Result<bool, TemplateError> {
        let (condition, scope) = (self.clone(), scope.clone());
        work::with_timeout(timeout, move || condition.evaluate_here(&scope))
    }

    fn evaluate_here(&self, scope: &Scope) -> Result<bool, TemplateError> {
        let Some(expression) = expression(&self.source) else { return Ok(true) };
        let compiled = environment::shared().compile_expression(expression);
        let compiled = compiled.map_err(|error| TemplateError::of(&error, expression))?;
        work::reset();
        match compiled.eval(scope.value()) {
            Ok(value) => Ok(value.is_true()),
            Err(error) => {
                Err(scope.explain(TemplateError::of(&error, expression), &error, &self.names))
            }
        }
    }
}

/// A condition's expression without braces; `None` for `else`.
fn expression(source: &str) -> Option<&str> {
    let source = source.trim();
    let bare = source.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let bare = bare.unwrap_or(source).trim();
    (bare != "else").then_some(bare)
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(source: String) -> Result<Self, TemplateError> {
        Self::parse(source)
    }
}

impl TryFrom<String> for Condition {
    type Error = TemplateError;

    fn try_from(source: String) -> Result<Self, TemplateError> {
        Self::parse(source)
    }
}

/// A writer that accepts up to [`MAX_RENDERED_BYTES`].
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl Bounded {
    fn into_text(self) -> String {
        match String::from_utf8_lossy(&self.bytes) {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => String::from_utf8(self.bytes).unwrap_or_default(),
        }
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED_BYTES {
            self.full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
