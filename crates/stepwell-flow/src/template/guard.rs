//! What a template may not say, told from its text alone.
//!
//! Fuel counts instructions, but one instruction can double a value, and forty of them fill
//! any memory. A value can only grow again and again if what grew gets a name. So `set` and
//! `for` bind what is there and do not build: no `~`, no `+` of texts, no lists in lists; and
//! an expression joins only so many values. What captures output unseen is left out.

use super::TemplateError;

/// How many values one template may join with `~` and `+`, outside of text.
const MAX_JOINS: usize = 64;
/// How often one template may multiply: texts can be multiplied too.
const MAX_PRODUCTS: usize = 2;

/// The longest expression, without what is in quotes, and how deep its brackets go. The
/// engine's parser and compiler call themselves for each part.
const MAX_EXPRESSION: usize = 1000;
const MAX_BRACKETS: usize = 32;
/// How deep `if` and `for` are nested; each `elif` counts, as it does to the engine.
const MAX_NESTING: usize = 40;

/// What stands for a text in quotes.
const TEXT: char = '"';

/// Words that a value follows: a bracket behind them begins a list.
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
            counts.expression(&code, Use::Shown)?;
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
    Counts::default().expression(&code, Use::Shown)
}

/// Checks a `{% … %}`, and tells where to go on.
fn tag<'a>(code: &Code<'a>, counts: &mut Counts) -> Result<&'a str, TemplateError> {
    let text = code.bare.trim_start_matches(['-', '+']).trim_start();
    let name: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    match &*name {
        "if" | "elif" => {
            counts.nest(if name == "if" { Nest::Deeper } else { Nest::Beside })?;
            counts.expression(code, Use::Shown)?;
        }
        "else" => {}
        "endif" | "endfor" => counts.nest(Nest::Out)?,
        "for" => {
            counts.nest(Nest::Deeper)?;
            if text.split_ascii_whitespace().any(|word| word == "recursive") {
                return Err(TemplateError::new("a loop cannot be `recursive` here"));
            }
            counts.expression(code, Use::Bound)?;
        }
        "set" if text.contains('=') => counts.expression(code, Use::Bound)?,
        "set" => {
            return Err(TemplateError::new(
                "`set` without `=` is not available: write the text where it is shown",
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

/// What follows a raw part: the engine ends it at the first tag that is just `endraw`, and
/// looks at nothing before that.
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

/// What becomes of an expression's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is written, or decides something.
    Shown,
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
    /// For each open `if` and `for`, how deep it goes by itself.
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
        // Deeper by one each time: the sum is small where it is looked at.
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
            let what = format!("an expression is longer than {MAX_EXPRESSION} bytes");
            return Err(TemplateError::new(what));
        }
        refuse_repeating(text)?;
        let (mut lists, mut brackets): (usize, usize) = (0, 0);
        for (n, c) in text.char_indices() {
            let next = text[n + c.len_utf8()..].trim_start().chars().next();
            // A text and a number cannot be added: what has one beside it is a sum.
            let sum = c == '+' && next.is_some_and(|next| next.is_ascii_digit());
            match c {
                '~' | '+' if used == Use::Bound && !sum => {
                    let what = format!(
                        "`{c}` cannot make a value that gets a name: join values where they are shown"
                    );
                    return Err(TemplateError::new(what));
                }
                '~' | '+' if !sum => self.joins += 1,
                '*' if used == Use::Bound => {
                    return Err(TemplateError::new("`*` cannot make a value that gets a name"));
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
                    "a value that gets a name cannot be a list of lists",
                ));
            }
        }
        if self.joins > MAX_JOINS {
            let what =
                format!("more than {MAX_JOINS} values are joined; write them one after the other");
            return Err(TemplateError::new(what));
        }
        if self.products > MAX_PRODUCTS {
            let what = format!("there are more than {MAX_PRODUCTS} `*`");
            return Err(TemplateError::new(what));
        }
        Ok(())
    }
}

/// Refuses to multiply a list or a text that is written down: the engine would do it, and what
/// follows from it, while it reads the template.
fn refuse_repeating(text: &str) -> Result<(), TemplateError> {
    // For each open bracket, whether it began a list; and whether what was last is a literal.
    let (mut open, mut literal) = (Vec::new(), false);
    let mut before = "";
    for (n, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let (so_far, after) = (before, text[n + c.len_utf8()..].trim_start());
        before = text[..n + c.len_utf8()].trim_end();
        literal = match c {
            '*' if literal || after.starts_with(['[', TEXT]) => {
                return Err(TemplateError::new(
                    "`*` is for numbers: a list or a text cannot be multiplied in a template",
                ));
            }
            '[' => {
                open.push(begins_value(so_far));
                false
            }
            ']' => open.pop().unwrap_or(false),
            c => c == TEXT,
        };
    }
    Ok(())
}

/// Does a value begin behind this? Else a bracket there takes something out of what it follows.
fn begins_value(before: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let start = before.rfind(|c| !is_part(c)).map_or(0, |n| n + 1);
    match before.get(start..).unwrap_or_default() {
        "" => !before.ends_with([']', ')', TEXT]),
        word => BEFORE_VALUES.contains(&word),
    }
}

/// The inside of a tag.
struct Code<'a> {
    /// With [`TEXT`] in place of what is in quotes.
    bare: String,
    /// What follows the tag.
    rest: &'a str,
}

impl<'a> Code<'a> {
    /// The code up to a tag's end, quotes heeded.
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
                    // Something stands here, so that a sum is not seen where there is none.
                    bare.push(TEXT);
                }
                None if c == '{' => {
                    return Err(TemplateError::new("mappings cannot be written in a template"));
                }
                None => bare.push(c),
            }
        }
        // Unended: the engine says it better.
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
