//! Templates and conditions: text that sees what was said before.
//!
//! They are written by whoever wrote the spec and filled with what models said, so they are
//! sandboxed: no files, no includes, no macros; a name that is not there is an error; and
//! whatever they say, they end soon and take little memory. Four things see to that: fuel
//! counts what is executed, `work` weighs what is looked at, what is written is cut off at
//! [`MAX_RENDERED_BYTES`], and `guard` refuses what would let a value grow without being written.

mod environment;
mod filters;
mod guard;
mod scope;
mod shared_map;
mod work;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

pub use scope::Scope;
pub use shared_map::SharedMap;

/// The most that a template becomes. A model takes less, and it must fit an event.
pub const MAX_RENDERED_BYTES: usize = 4 << 20;

/// The longest template.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// A text with holes, such as `Write about {{ topic }}.`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Template {
    source: String,
    /// What it asks for: found while it is looked at anyway, since that is dear.
    names: BTreeSet<String>,
}

/// When an edge of a graph is taken: an expression such as `nodes.check.response == "ok"`, in
/// braces or not, or `else`, which always holds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct Condition {
    source: String,
    /// What it asks for.
    names: BTreeSet<String>,
}

/// Why a template cannot be filled.
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

    /// An error of the engine, about a text.
    fn of(error: &minijinja::Error, text: &str) -> Self {
        use minijinja::ErrorKind;
        let what = match error.kind() {
            ErrorKind::OutOfFuel => "it does too much: it was stopped".to_owned(),
            ErrorKind::UndefinedError => "it asks for something that is not there".to_owned(),
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
    /// Reads a template.
    pub fn parse(source: impl Into<String>) -> Result<Self, TemplateError> {
        let source = source.into();
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::new(format!(
                "a template of {} bytes is too long, at most {MAX_TEMPLATE_BYTES} are read",
                source.len()
            )));
        }
        // Without a brace it is just text.
        if !source.contains('{') {
            return Ok(Self { source, names: BTreeSet::new() });
        }
        guard::check(&source)?;
        let long = work::may_be_long_to_read(&source);
        let read = move || {
            let compiled = environment::shared().template_from_str(&source);
            let compiled = compiled.map_err(|error| TemplateError::of(&error, &source))?;
            let names = compiled.undeclared_variables(true).into_iter().collect();
            Ok(Self { source, names })
        };
        match long {
            true => work::within(work::PATIENCE, read),
            false => read(),
        }
    }

    /// It as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it asks for, as far as it can be told without filling it: `topic`,
    /// `tasks.fetch.response`, `steps`.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Fills it.
    pub fn render(&self, scope: &Scope) -> Result<String, TemplateError> {
        match work::may_be_long(&self.source) {
            true => self.fill_within(work::PATIENCE, scope),
            false => self.fill(scope),
        }
    }

    fn fill_within(&self, patience: Duration, scope: &Scope) -> Result<String, TemplateError> {
        let (template, scope) = (self.clone(), scope.clone());
        work::within(patience, move || template.fill(&scope))
    }

    fn fill(&self, scope: &Scope) -> Result<String, TemplateError> {
        work::begin();
        let compiled = environment::shared().template_from_str(&self.source);
        let compiled = compiled.map_err(|error| TemplateError::of(&error, &self.source))?;
        let mut text = Bounded::default();
        match compiled.render_captured_to(scope.value(), &mut text) {
            Ok(_) => Ok(text.into_text()),
            Err(_) if text.full => Err(TemplateError::new(format!(
                "it becomes longer than {MAX_RENDERED_BYTES} bytes"
            ))),
            Err(error) => {
                Err(scope.explain(TemplateError::of(&error, &self.source), &error, &self.names))
            }
        }
    }
}

/// Fills the holes of a text that can be filled already, and leaves the others as they are
/// written. A text with statements is filled as a whole or not at all.
#[must_use]
pub fn fill_known(source: &str, scope: &Scope) -> String {
    let filled = |text: &str| Template::parse(text).and_then(|it| it.render(scope)).ok();
    if let Some(whole) = filled(source) {
        return whole;
    }
    if source.contains("{%") || source.contains("{#") {
        return source.to_owned();
    }
    let (mut text, mut rest) = (String::new(), source);
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        let end = start + length + 2;
        let hole = &rest[start..end];
        text.push_str(&rest[..start]);
        text.push_str(&filled(hole).unwrap_or_else(|| hole.to_owned()));
        rest = &rest[end..];
    }
    text + rest
}

impl Condition {
    /// Reads a condition.
    pub fn parse(source: impl Into<String>) -> Result<Self, TemplateError> {
        Self::parse_within(work::PATIENCE, source.into())
    }

    fn parse_within(patience: Duration, source: String) -> Result<Self, TemplateError> {
        let Some(expression) = expression(&source).map(str::to_owned) else {
            return Ok(Self { source, names: BTreeSet::new() });
        };
        if expression.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::new("the condition is too long"));
        }
        guard::check_expression(&expression)?;
        let long = work::may_be_long_to_read(&expression);
        let read = move || {
            let compiled = environment::shared().compile_expression(&expression);
            let compiled = compiled.map_err(|error| TemplateError::of(&error, &expression))?;
            Ok(compiled.undeclared_variables(true).into_iter().collect())
        };
        let names = if long { work::within(patience, read) } else { read() }?;
        Ok(Self { source, names })
    }

    /// It as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Does it hold whatever is the case?
    #[must_use]
    pub fn is_else(&self) -> bool {
        expression(&self.source).is_none()
    }

    /// What it asks for.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Does it hold?
    pub fn holds(&self, scope: &Scope) -> Result<bool, TemplateError> {
        match work::may_be_long(&self.source) {
            true => self.decide_within(work::PATIENCE, scope),
            false => self.decide(scope),
        }
    }

    fn decide_within(&self, patience: Duration, scope: &Scope) -> Result<bool, TemplateError> {
        let (condition, scope) = (self.clone(), scope.clone());
        work::within(patience, move || condition.decide(&scope))
    }

    fn decide(&self, scope: &Scope) -> Result<bool, TemplateError> {
        let Some(expression) = expression(&self.source) else { return Ok(true) };
        let compiled = environment::shared().compile_expression(expression);
        let compiled = compiled.map_err(|error| TemplateError::of(&error, expression))?;
        work::begin();
        match compiled.eval(scope.value()) {
            Ok(value) => Ok(value.is_true()),
            Err(error) => {
                Err(scope.explain(TemplateError::of(&error, expression), &error, &self.names))
            }
        }
    }
}

/// What a condition asks, without its braces; `else` asks nothing.
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

/// What is written, up to [`MAX_RENDERED_BYTES`].
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
