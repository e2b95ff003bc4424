//! SQL functions for Stepwell's queries.

use std::sync::Arc;

use memchr::memchr2;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::SqliteOptions;

/// Registers them on a connection.
pub(super) fn add_functions(conn: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    let (clock, processes) = (Arc::clone(&options.clock), Arc::clone(&options.processes));
    conn.create_scalar_function("alive", 2, flags, move |context| {
        let (holder, expires): (Option<String>, Option<i64>) = (context.get(0)?, context.get(1)?);
        let holder = holder.and_then(|text| serde_json::from_str(&text).ok());
        Ok(holder.zip(expires).is_some_and(|(holder, expires)| {
            let expires = crate::model::Time::from_micros(expires);
            let held = crate::store::LeaseInfo {
                epoch: crate::model::Epoch::FIRST,
                holder,
                expires,
                login: None,
            };
            !held.is_dead(clock.now(), &*processes)
        }))
    })?;
    conn.create_scalar_function("ending", 1, flags, |context| {
        Ok(crate::model::id::ending(&context.get::<String>(0)?).to_owned())
    })?;
    // An unreadable head matches nothing, and does not fail the query for other sessions.
    #[derive(serde::Deserialize)]
    struct Parts {
        task: String,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        rewinding: Option<u64>,
    }
    let parts = |context: &rusqlite::functions::Context<'_>| -> rusqlite::Result<Option<Parts>> {
        Ok(serde_json::from_str(&context.get::<String>(0)?).ok())
    };
    conn.create_scalar_function("task_has", 2, flags, move |context| {
        let (head, wanted) = (context.get_raw(0).as_str()?, context.get_raw(1).as_str()?);
        if !may_hold(head, wanted) {
            return Ok(false);
        }
        Ok(parts(context)?.is_some_and(|head| head.task.to_lowercase().contains(wanted)))
    })?;
    conn.create_scalar_function("has_tag", 2, flags, move |context| {
        let wanted: String = context.get(1)?;
        Ok(parts(context)?.is_some_and(|head| head.tags.contains(&wanted)))
    })?;
    conn.create_scalar_function("is_rewinding", 1, flags, move |context| {
        Ok(parts(context)?.is_some_and(|head| head.rewinding.is_some()))
    })
}

/// Could a head contain these lower-case words? `false` is certain and costs one scan, so most
/// heads of a long list are never parsed.
fn may_hold(head: &str, words: &str) -> bool {
    let as_is = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    // Non-ASCII letters fold differently, and some characters are escaped.
    if !head.is_ascii() || !words.bytes().all(as_is) {
        return true;
    }
    let (mut rest, words) = (head.as_bytes(), words.as_bytes());
    let Some(first) = words.first() else { return true };
    while let Some(at) = memchr2(*first, first.to_ascii_uppercase(), rest) {
        if rest[at..].get(..words.len()).is_some_and(|it| it.eq_ignore_ascii_case(words)) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_heads_without_the_words_are_excluded_without_parsing() {
        let head = |task: &str| serde_json::json!({ "task": task, "tags": ["x"] }).to_string();
        for (task, words, may) in [
            ("Repair the PART 77", "part 77", true),
            ("Repair the PART 77", "part 78", false),
            ("end", "end", true),
            ("en", "end", false),
            ("anything", "", true),
            // Other texts are parsed.
            ("\u{212a}elvin", "kelvin", true),
            ("say \"so\"", "say \"so", true),
            ("two\nlines", "two\nlines", true),
            ("gr\u{fc}n", "blue", true),
        ] {
            assert_eq!(may_hold(&head(task), words), may, "{task:?} {words:?}");
            let holds = task.to_lowercase().contains(words);
            assert!(may || !holds, "{task:?} {words:?}");
        }
    }
}
