//! Names, moves, compactions and copies of sessions.

use stepwell::SessionId;
use stepwell::model::counted;
use stepwell::store::Removal;
use stepwell_agent::context::plan::Why;
use stepwell_files::rewind::Done;
use stepwell_runtime::ErrorKind;
use stepwell_runtime::command::{CompactionReply, Exported, MessagePinned, MoveOutcome, MoveReply};
use stepwell_wire::{CompactionUndone, Label, Tags};
use stepwell_workspace::handoff::{Handed, Wrote};

use super::{Refusal, Rendered, Style};
use crate::events::gist;
use crate::explained::Explained;
use crate::lines;
use crate::rewind::{Move, cut_off};
use crate::text::{count, grouped, visible};
use crate::wording::{self, compacted_later};

pub(super) fn label(Label { id, label }: &Label) -> Rendered {
    Rendered::line(match label {
        Some(label) => format!("{id} is labelled {}", visible(label)),
        None => format!("{id} has no label"),
    })
}

pub(super) fn tags(Tags { id, tags }: &Tags) -> Rendered {
    let listed: Vec<_> = tags.iter().map(|tag| visible(tag)).collect();
    Rendered::line(match listed.is_empty() {
        true => format!("{id} has no tags"),
        false => format!("{id} is tagged {}", listed.join(", ")),
    })
}

pub(super) fn message_pin(pinned: &MessagePinned, style: &Style) -> Rendered {
    let (id, seq) = (&pinned.answer.id, pinned.answer.seq);
    let says = match &pinned.message {
        Some(message) => format!("is pinned: {}", gist(message)),
        None => "is not pinned".to_owned(),
    };
    let answer = Rendered::line(style.cut(&format!("{id}: message {seq} {says}")));
    match pinned.is_shown {
        true => answer,
        false => answer.note(format!(
            "It is not shown now: it was compacted or rewound. stepwell compact {id} --undo takes \
             the last compaction back."
        )),
    }
}

/// What a move did, would do, or why nothing was done.
pub(super) fn moved(moved: &MoveReply, style: &Style) -> Rendered {
    let MoveReply { id, asked, way, info, outcome } = moved;
    let of = |preview| Move { id, asked, head: &info.head, way: *way, preview };
    match outcome {
        MoveOutcome::Previewed(preview) => {
            let answer = Rendered::lines(of(preview).lines(false, style.paint));
            match preview.is_refused(asked) {
                true => answer.hint("It would be refused; --force does it all the same."),
                false => answer,
            }
        }
        MoveOutcome::Tried(Done::Rewound { preview, .. }) => {
            let it = of(preview);
            Rendered::lines(it.lines(true, style.paint)).hint(it.hint())
        }
        MoveOutcome::Tried(Done::Refused(preview)) => {
            let (notes, why) = of(preview).refusal();
            let refused = Some(Refusal { why, kind: ErrorKind::Invalid });
            Rendered { notes, refused, ..Rendered::default() }
        }
        MoveOutcome::CutOff(half) => {
            let lines = half.as_ref().map(|half| cut_off(id, half, style.paint));
            let answer = Rendered::lines(lines.unwrap_or_default());
            Rendered { notes: wording::half_rewound(info), ..answer }
        }
    }
}

pub(super) fn compaction(done: &CompactionReply, style: &Style) -> Rendered {
    let id = &done.answer.id;
    if done.answer.asked {
        return Rendered::line(compacted_later(&done.head));
    }
    let Some(it) = &done.answer.compacted else {
        return Rendered::line(format!("{id} is as short as it gets")).note(format!(
            "The newest {} tokens stay as they are (compaction.keep_tokens), and so does what is \
             protected.",
            grouped(done.keeps)
        ));
    };
    let how = if it.is_truncation() { "truncated" } else { "compacted" };
    let (before, after) = (grouped(it.tokens_before), grouped(it.tokens_after));
    let mut answer = Rendered::line(format!("{id} was {how}, from {before} to {after} tokens"));
    // Why there is no summary, if one was wanted.
    if it.fault.is_some() {
        let (look, line) = lines::compaction(it, Why::Asked);
        answer = answer.note(style.paint.paint(look, &format!("  {line}")));
    }
    answer.note(format!("hint: stepwell compact {id} --diff, or --undo"))
}

pub(super) fn compaction_undone(undone: &CompactionUndone) -> Rendered {
    let CompactionUndone { id, undone, tokens_before, tokens_after } = undone;
    let (before, after) = (grouped(*tokens_before), grouped(*tokens_after));
    let line =
        format!("{id}: the compaction at {undone} is undone, from {before} to {after} tokens");
    Rendered::line(line)
}

pub(super) fn exported(exported: &Exported) -> Rendered {
    let written = &exported.written;
    let file = visible(&exported.path.display().to_string());
    let answer = Rendered::line(format!("Wrote {} to {file}", count(written.sessions, "session")));
    let mut notes: Vec<String> =
        wording::losses(exported.format, &written.losses).into_iter().collect();
    notes.extend(written.damaged.iter().map(|(id, damage)| {
        format!("{id} is damaged at seq {}; what lies before was written", damage.seq)
    }));
    Rendered { notes, ..answer }
}

pub(super) fn handed_over(handed: &Handed) -> Rendered {
    let (id, file) = (&handed.session, handed.file.display());
    let folder = quoted(&handed.folder.to_string_lossy());
    let mut notes = Vec::new();
    match &handed.wrote {
        Wrote::Now(losses) => {
            notes.extend(wording::losses(handed.format, losses));
            notes.push(format!("Wrote {id} to {file}"));
        }
        Wrote::Before => notes.push(format!("{id} was written before, to {file}")),
        Wrote::Would => notes.push(format!("Would write {id} to {file}")),
        Wrote::Origin => {}
    }
    let answer = Rendered::line(format!("cd {folder} && {}", shell(&handed.command)));
    Rendered { notes, ..answer }
}

/// A command as it is typed.
fn shell(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// How many sessions are named in a command to undo it; more would not fit one.
const NAMED: usize = 200;

pub(super) fn deleted(asked: &[SessionId], removal: &Removal, days: u64) -> Rendered {
    let lines = removal.taken.iter().map(|id| format!("Deleted {id}")).collect();
    let answer = left(Rendered::lines(lines), removal);
    if answer.refused.is_some() {
        return answer;
    }
    match undo(asked, days) {
        Some(undo) => answer.note(undo),
        None => answer,
    }
}

/// How deleted sessions are brought back. Their subagents' sessions come with them.
#[must_use]
pub fn undo(ids: &[SessionId], days: u64) -> Option<String> {
    let days = counted(days, "day");
    let names: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
    match names.len() {
        0 => None,
        1..=NAMED => {
            let names = names.join(" ");
            Some(format!("Undo: stepwell trash restore {names} (within {days})"))
        }
        _ => Some(format!("Undo within {days}: stepwell trash list --json names them")),
    }
}

pub(super) fn restored(removal: &Removal) -> Rendered {
    let lines = removal.taken.iter().map(|id| format!("Restored {id}")).collect();
    left(Rendered::lines(lines), removal)
}

/// Adds what was left, and why.
fn left(mut answer: Rendered, removal: &Removal) -> Rendered {
    let mut left = removal.left.iter().map(|(_, error)| (error, Explained::from(error)));
    if let Some((error, why)) = left.next() {
        answer.refused = Some(Refusal { why, kind: ErrorKind::Store(error.kind()) });
    }
    answer.notes.extend(left.map(|(_, other)| format!("error: {}", other.message)));
    answer
}
