//! What the entries of a session mean.

use std::path::Path;

use stepwell::Message;
use stepwell::model::Role;

use super::content::{BRANCH, SUMMARY, between, message, parts};
use super::{WORDS, is_header};
use crate::journal::form::Words;
use crate::journal::row::{Compaction, End, LineReader, Link, Row, Said, What};
use crate::json::fields::Fields;
use crate::read::neutral::{KEPT, Opening};

#[derive(Default)]
pub(super) struct Entries {
    /// How many lines there were. Entries of the first version are named by that.
    seen: u64,
}

impl LineReader for Entries {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn opening(&self, _: &Path, line: &Fields<'_>) -> Option<Opening> {
        if !is_header(line) {
            return None;
        }
        let mut opening = Opening::new(line.text("id")?.into_owned(), "");
        opening.created.workspace = line.text("cwd").unwrap_or_default().into_owned();
        opening.started_at = line.time("timestamp");
        Some(opening)
    }

    fn asked(&self, line: &Fields<'_>) -> Option<String> {
        let said = line.object("message").filter(|_| is(line, "message"))?;
        let said = message(&said).filter(Message::is_from_user)?;
        let words = said.text().trim().to_owned();
        (!words.is_empty()).then_some(words)
    }

    fn row<'a>(&mut self, line: &Fields<'a>) -> Row<'a> {
        let at = line.time("timestamp");
        let nth = self.seen;
        self.seen += 1;
        if is_header(line) {
            return Row { name: None, link: Link::Last, at, what: What::Header };
        }
        let named = line.text("id").map(std::borrow::Cow::into_owned);
        let link = match (&named, line.text("parentId")) {
            (None, _) => Link::Last,
            (Some(_), None) => Link::First,
            (Some(_), Some(parent)) => Link::After(parent.into_owned()),
        };
        let name = named.or_else(|| Some(by_place(nth)));
        Row { name, link, at, what: what(line) }
    }

    fn is_ours(&self, line: &Fields<'_>) -> bool {
        is(line, "custom") && line.text("customType").as_deref() == Some(KEPT)
    }
}

/// The name of an entry that has none.
fn by_place(nth: u64) -> String {
    format!("#{nth}")
}

fn is(line: &Fields<'_>, kind: &str) -> bool {
    line.text("type").as_deref() == Some(kind)
}

fn what<'a>(line: &Fields<'a>) -> What<'a> {
    let nothing = What::Nothing;
    let injected = |text: String| What::Said(Said::whole(Message::user(text).injected()));
    match line.text("type").unwrap_or_default().as_ref() {
        "message" => match line.object("message") {
            Some(said) => told(&said),
            None => nothing,
        },
        "custom_message" => match line.raw("content").and_then(|raw| parts(raw, "")) {
            Some(parts) if !parts.is_empty() => {
                What::Said(Said::whole(Message::new(Role::User, parts).injected()))
            }
            _ => nothing,
        },
        "branch_summary" => match line.text("summary").filter(|text| !text.is_empty()) {
            Some(summary) => injected(between(BRANCH, &summary)),
            None => nothing,
        },
        "compaction" => What::Compacted(Compaction {
            summary: Some(between(SUMMARY, &line.text("summary").unwrap_or_default())),
            kept_from: line
                .text("firstKeptEntryId")
                .map(std::borrow::Cow::into_owned)
                .or_else(|| line.get("firstKeptEntryIndex").map(by_place)),
            shown: Vec::new(),
            tokens_before: line.get("tokensBefore").unwrap_or(0),
        }),
        "session_info" => match line.text("name") {
            Some(name) => What::Title(name.into_owned()),
            None => nothing,
        },
        "custom" if line.text("customType").as_deref() == Some(KEPT) => {
            line.object(WORDS.payload).map_or(nothing, What::Ours)
        }
        _ => nothing,
    }
}

fn told<'a>(said: &Fields<'_>) -> What<'a> {
    let Some(message) = message(said) else { return What::Nothing };
    let end = match said.text("stopReason").as_deref() {
        Some("length") => End::CutOff,
        // Pi leaves out such an answer, and asks again.
        Some("error" | "aborted") => End::Failed,
        _ => End::Whole,
    };
    What::Said(Said { message, end })
}
