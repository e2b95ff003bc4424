//! Rejects dangerous templates by their text alone.
//!
//! Fuel counts instructions, but one instruction can double a value, and forty of them fill
//! any memory. A value can only grow repeatedly if the grown value gets a name. So `set` and
//! `for` may bind values but not build larger ones: no `~`, no `+` of strings, no lists of
//! lists. An expression may join only a limited number of values. Tags that capture output are
//! not available.

use super::TemplateError;

/// How many values one template may join with `~` and `+`, outside quoted strings.
const MAX_JOINS: usize = 64;
/// How often one template may multiply. Strings can be multiplied too.
const MAX_PRODUCTS: usize = 2;

/// The longest expression, not counting quoted strings, and its deepest brackets. The engine's
/// parser and compiler recurse for each part.
const MAX_EXPRESSION: usize = 1000;
const MAX_BRACKETS: usize = 32;
/// How deep `if` and `for` may be nested. Each `elif` counts, as it does in the engine.
const MAX_NESTING: usize = 40;

/// Replaces each quoted string before the check.
const TEXT: char = '"';

/// Words that a value follows: a bracket after them starts a list.
const BEFORE_VALUES: [&str; 8] = ["in", "not", "and", "or", "if", "else", "is", "elif"];

/// Checks a template.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    let mut counts = Counts::default();
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let tail = &rest[start..];
        if let Some(comment) = tail.strip_prefix("{#") {
            rest = comment.find("#}").map_or("", |end| &comment[end + 2..]);
        } else if let Some(code) = tail.strip_prefix("{{") {
            let code = Code::until(code, "}}")?;
            counts.expression(&code, Use::Output)?;
            rest = code.rest;
        } else if let Some(code) = tail.strip_prefix("{%") {
            let code = Code::until(code, "%}")?;
            rest = tag(&code, &mut counts)?;
        } else {
            rest = &tail[1..];
        }
    }
    Ok(())
}

/// Checks a condition.
pub(super) fn check_expression(source: &str) -> Result<(), TemplateError> {
    let code = Code::of(source)?;
    Counts::default().expression(&code, Use::Output)
}

/// Checks a `{% … %}`. Returns the text after it.
fn tag<'a>(code: &Code<'a>, counts: &mut Counts) -> Result<&'a str, TemplateError> {
    let text = code.bare.trim_start_matches(['-', '+']).trim_start();
    let name: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    match &*name {
        "if" | "elif" => {
            counts.nest(if name == "if" { Nest::Deeper } else { Nest::Beside })?;
            counts.expression(code, Use::Output)?;
        }
        "else" => {}
        "endif" | "endfor" => counts.nest(Nest::Out)?,
        "for" => {
            counts.nest(Nest::Deeper)?;
            if text.split_ascii_whitespace().any(|word| word == "recursive") {
                return Err(TemplateError::new("`recursive` loops are not available"));
            }
            counts.expression(code, Use::Bound)?;
        }
        "set" if text.contains('=') => counts.expression(code, Use::Bound)?,
        "set" => {
            return Err(TemplateError::new(
                "`set` without `=` is not available: write the text where it is output",
            ));
        }
        "raw" => return Ok(after_raw(code.rest)),
        name => {
            return Err(TemplateError::new(format!(
                "the tag `{name}` is not available: templates have `if`, `for`, `set` and `raw`"
            )));
        }
    }
    Ok(code.rest)
}

/// The text after a raw part. The engine ends it at the first tag that is just `endraw`, and
/// parses nothing before that.
fn after_raw(text: &str) -> &str {
    let mut rest = text;
    while let Some(start) = rest.find("{%") {
        rest = &rest[start + 2..];
        let inside = rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_ascii_start();
        let Some(inside) = inside.strip_prefix("endraw") else { continue };
        let inside = inside.trim_ascii_start();
        let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
        if let Some(after) = inside.strip_prefix("%}") {
            return after;
        }
    }
    ""
}

/// What happens to an expression's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is output, or used as a condition.
    Output,
    /// It gets a name.
    Bound,
}

/// How a tag changes the nesting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nest {
    Deeper,
    Beside,
    Out,
}

#[derive(Default)]
struct Counts {
    joins: usize,
    products: usize,
    /// The depth of each open `if` and `for`.
    open: Vec<usize>,
}

impl Counts {
    fn nest(&mut self, how: Nest) -> Result<(), TemplateError> {
        match how {
            Nest::Deeper => self.open.push(1),
            Nest::Beside => self.open.last_mut().map(|depth| *depth += 1).unwrap_or_default(),
            Nest::Out => {
                self.open.pop();
            }
        }
        // It grows by one at a time, so the sum stays small.
        match self.open.iter().sum::<usize>() > MAX_NESTING {
            true => {
                Err(TemplateError::new(format!("tags are nested more than {MAX_NESTING} deep")))
            }
            false => Ok(()),
        }
    }

    fn expression(&mut self, code: &Code<'_>, used: Use) -> Result<(), TemplateError> {
        let text = code.bare.trim_start_matches(['-', '+']).trim_end_matches('-');
        if text.len() > MAX_EXPRESSION {
            let what = format!("an expression exceeds {MAX_EXPRESSION} bytes");
            return Err(TemplateError::new(what));
        }
        reject_repeated_literals(text)?;
        let (mut lists, mut brackets): (usize, usize) = (0, 0);
        for (n, c) in text.char_indices() {
            let next = text[n + c.len_utf8()..].trim_start().chars().next();
            // Strings and numbers cannot be added: `+` before a digit is a sum.
            let sum = c == '+' && next.is_some_and(|next| next.is_ascii_digit());
            match c {
                '~' | '+' if used == Use::Bound && !sum => {
                    let what = format!(
                        "`{c}` is not allowed in `set` and `for`: join values where they are output"
                    );
                    return Err(TemplateError::new(what));
                }
                '~' | '+' if !sum => self.joins += 1,
                '*' if used == Use::Bound => {
                    return Err(TemplateError::new("`*` is not allowed in `set` and `for`"));
                }
                '*' => self.products += 1,
                '[' => (lists, brackets) = (lists + 1, brackets + 1),
                ']' => (lists, brackets) = (lists.saturating_sub(1), brackets.saturating_sub(1)),
                '(' => brackets += 1,
                ')' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            if brackets > MAX_BRACKETS {
                let what = format!("brackets are nested more than {MAX_BRACKETS} deep");
                return Err(TemplateError::new(what));
            }
            if used == Use::Bound && lists > 1 {
                return Err(TemplateError::new(
                    "a list of lists is not allowed in `set` and `for`",
                ));
            }
        }
        if self.joins > MAX_JOINS {
            let what = format!("more than {MAX_JOINS} values are joined; output them one by one");
            return Err(TemplateError::new(what));
        }
        if self.products > MAX_PRODUCTS {
            let what = format!("`*` occurs more than {MAX_PRODUCTS} times");
            return Err(TemplateError::new(what));
        }
        Ok(())
    }
}

/// Rejects the multiplication of a literal list or string: the engine would compute it, and
/// what follows from it, while it parses the template.
fn reject_repeated_literals(text: &str) -> Result<(), TemplateError> {
    // For each open bracket, whether it starts a list; and whether the last token is a literal.
    let (mut open, mut literal) = (Vec::new(), false);
    let mut before = "";
    for (n, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let (so_far, after) = (before, text[n + c.len_utf8()..].trim_start());
        before = text[..n + c.len_utf8()].trim_end();
        literal = match c {
            '*' if literal || after.starts_with(['[', TEXT]) => {
                return Err(TemplateError::new(
                    "`*` is for numbers: a template cannot multiply a list or a string",
                ));
            }
            '[' => {
                open.push(starts_list(so_far));
                false
            }
            ']' => open.pop().unwrap_or(false),
            c => c == TEXT,
        };
    }
    Ok(())
}

/// Whether a bracket after this text starts a list. Otherwise it is an index.
fn starts_list(before: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let start = before.rfind(|c| !is_part(c)).map_or(0, |n| n + 1);
    match before.get(start..).unwrap_or_default() {
        "" => !before.ends_with([']', ')', TEXT]),
        word => BEFORE_VALUES.contains(&word),
    }
}

/// The inside of a tag.
struct Code<'a> {
    /// The code, with [`TEXT`] in place of each quoted string.
    bare: String,
    /// The text after the tag.
    rest: &'a str,
}

impl<'a> Code<'a> {
    /// The code up to a tag's end. Quotes can contain the end.
    fn until(text: &'a str, end: &str) -> Result<Self, TemplateError> {
        let mut bare = String::new();
        let mut quote: Option<char> = None;
        let mut escaped = false;
        for (n, c) in text.char_indices() {
            match quote {
                Some(_) if escaped => escaped = false,
                Some(_) if c == '\\' => escaped = true,
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if text[n..].starts_with(end) => {
                    return Ok(Self { bare, rest: &text[n + end.len()..] });
                }
                None if c == '"' || c == '\'' => {
                    quote = Some(c);
                    // A placeholder, so that no `+` is mistaken for a sum.
                    bare.push(TEXT);
                }
                None if c == '{' => {
                    return Err(TemplateError::new(
                        "mapping literals are not available in templates",
                    ));
                }
                None => bare.push(c),
            }
        }
        // Not closed: the engine has the better error.
        Ok(Self { bare, rest: "" })
    }

    /// Code without a tag around it.
    fn of(text: &'a str) -> Result<Self, TemplateError> {
        let code = Self::until(text, "}}")?;
        match code.rest {
            "" => Ok(code),
            _ => Err(TemplateError::new(
                "expected one expression, such as `nodes.check.response == \"ok\"`",
            )),
        }
    }
}
