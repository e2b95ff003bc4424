//! Lists: checkpoints, files, questions, models, results, settings, servers.

use stepwell::SessionId;
use stepwell::model::FileState;
use stepwell::store::query::Hit;
use stepwell_runtime::ErrorKind;
use stepwell_runtime::command::{FilesReply, SettingReply, SettingShown};
use stepwell_wire::{CheckpointInfo, McpServer, Models, OpenGate};
use stepwell_workspace::{LedgerLine, LedgerLines};

use super::{Rendered, Style};
use crate::console::Style as Look;
use crate::gates::{asked, asked_by, hints};
use crate::table::{Cell, Column, Table, left, right};
use crate::text::{ago, cost_or, count, cut, moment, one_line, second, took, visible, word};
use crate::{servers, wording};

const CHECKPOINTS: &[Column] = &[right("SEQ"), left("WHEN"), left("REASON"), left("NAME")];

pub(super) fn checkpoints(id: &SessionId, all: &[CheckpointInfo], style: &Style) -> Rendered {
    if all.is_empty() {
        let how = format!("{id} has no checkpoints; stepwell checkpoint {id} NAME makes one.");
        return Rendered::default().hint(how);
    }
    let mut table = Table::new(CHECKPOINTS);
    for it in all {
        let (seq, at, reason) = (it.seq.to_string(), second(it.at), word(it.reason));
        table.push(vec![seq.into(), at.into(), reason.into(), checkpoint(it).into()]);
    }
    Rendered::lines(style.table(&table))
}

/// A checkpoint's name, and what is remembered with it. What keeps a flow's spec is too long to
/// show.
fn checkpoint(checkpoint: &CheckpointInfo) -> String {
    let short = |(key, value): (&String, &serde_json::Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}={}", cut(&one_line(&value), 40))
    };
    let known: Vec<String> = checkpoint.metadata.iter().map(short).collect();
    match known.is_empty() {
        true => one_line(&checkpoint.name),
        false => format!("{} ({})", one_line(&checkpoint.name), known.join(", ")),
    }
}

const FILES: &[Column] =
    &[right("SEQ"), left("WHEN"), left("CHANGE"), left("CONTENT"), left("PATH")];

pub(super) fn files(FilesReply { info, versions }: &FilesReply, style: &Style) -> Rendered {
    let id = &info.head.id;
    let mut answer = Rendered { notes: wording::half_rewound(info), ..Rendered::default() };
    if versions.is_empty() {
        return answer.hint(format!("{id} changed no files."));
    }
    let mut table = Table::new(FILES);
    for version in versions {
        let from = version.renamed_from.as_ref().map(|from| format!(" (was {})", one_line(from)));
        table.push(vec![
            version.seq.to_string().into(),
            second(version.at).into(),
            word(version.change).into(),
            content(&version.after).into(),
            format!("{}{}", one_line(&version.path), from.unwrap_or_default()).into(),
        ]);
    }
    answer.lines = style.table(&table);
    let many = count(versions.len(), "version");
    answer.hint(format!("{many}; stepwell files {id} PATH --at SEQ prints one"))
}

/// A file's content, in a few words.
fn content(state: &FileState) -> String {
    match state {
        FileState::Absent => "-".to_owned(),
        FileState::File { blob, mode } => format!("{:.12} {mode:o}", blob.to_string()),
        FileState::Symlink { target } => format!("-> {}", one_line(target)),
        FileState::NotCaptured { why, .. } => format!("not captured: {}", one_line(why)),
    }
}

const GATES: &[Column] =
    &[left("SESSION"), left("GATE"), left("ASKED"), left("BY"), left("QUESTION")];

pub(super) fn gates(open: &[OpenGate], style: &Style) -> Rendered {
    if open.is_empty() {
        return Rendered::default().note("No question waits.");
    }
    let hints = hints(open).iter().map(|hint| format!("hint: {hint}")).collect();
    Rendered { hints, ..Rendered::lines(style.table(&gates_table(open, style))) }
}

/// Questions as a table.
#[must_use]
pub fn gates_table<'a>(open: impl IntoIterator<Item = &'a OpenGate>, style: &Style) -> Table {
    let mut table = Table::new(GATES);
    for gate in open {
        table.push(vec![
            gate.session_id.to_string().into(),
            gate.gate.id.clone().into(),
            Cell::styled(ago(gate.asked_at, style.now), Look::Dim),
            asked_by(gate).into(),
            asked(gate).into(),
        ]);
    }
    table
}

pub(super) fn hits(hits: &[Hit], style: &Style) -> Rendered {
    if hits.is_empty() {
        return Rendered::line("Nothing found.");
    }
    let hit = |hit: &Hit| {
        style.cut(&format!("{} seq {}: {}", hit.session, hit.seq, one_line(hit.snippet.text())))
    };
    Rendered::lines(hits.iter().map(hit).collect())
}

const MODELS: &[Column] = &[left("FAVOURITE"), right("RECENT"), left("MODEL")];

pub(super) fn models(Models { recent, favourites }: &Models, style: &Style) -> Rendered {
    if recent.is_empty() && favourites.is_empty() {
        let hint = "hint: stepwell run \"TASK\" --model provider/name uses one";
        return Rendered::line("No models yet.").hint(hint);
    }
    let mut table = Table::new(MODELS);
    for (name, n) in recent.iter().zip(1..) {
        let liked = if favourites.contains(name) { "yes" } else { "" };
        table.push(vec![liked.into(), n.to_string().into(), visible(name).into()]);
    }
    for name in favourites.iter().filter(|name| !recent.contains(name)) {
        table.push(vec!["yes".into(), "".into(), visible(name).into()]);
    }
    Rendered::lines(style.table(&table))
}

const LEDGER: &[Column] = &[
    left("SESSION"),
    left("ENDED"),
    left("PROJECT"),
    right("TASKS"),
    right("FAILED"),
    right("SKIPPED"),
    right("COST"),
    right("TOOK"),
    right("COMMITS"),
    left("MODEL"),
];

pub(super) fn ledger(ledger: &LedgerLines, style: &Style) -> Rendered {
    let left_out = ledger.left_out.iter();
    let left_out = left_out.map(|(id, error)| format!("warning: {id} is left out: {error}"));
    let mut answer = Rendered { notes: left_out.collect(), ..Rendered::default() };
    if ledger.lines.is_empty() {
        answer.lines.push("No sessions that have ended.".to_owned());
        return answer.hint("hint: stepwell sessions lists all that there are");
    }
    let mut all = Table::new(LEDGER);
    for line in &ledger.lines {
        let LedgerLine { came, estimate, .. } = line;
        all.push(vec![
            one_line(line.about()).into(),
            moment(came.ended).into(),
            one_line(&came.project_type).into(),
            came.tasks.to_string().into(),
            came.failed.to_string().into(),
            came.skipped.to_string().into(),
            cost_or(*estimate, &came.spent).into(),
            took(line.took()).into(),
            line.shown_commits().into(),
            one_line(&line.model()).into(),
        ]);
    }
    answer.lines = style.table(&all);
    answer
}

const SETTINGS: &[Column] = &[left("KEY"), left("VALUE"), left("FROM")];

pub(super) fn settings(settings: &[SettingShown], style: &Style) -> Rendered {
    let mut table = Table::new(SETTINGS);
    for it in settings {
        let source = visible(&wording::source(&it.source));
        table.push(vec![it.key.clone().into(), visible(&it.text).into(), source.into()]);
    }
    Rendered::lines(style.table(&table))
}

pub(super) fn setting(reply: &SettingReply) -> Rendered {
    match reply {
        SettingReply::Is(it) => Rendered::line(it.text.clone()),
        SettingReply::Set(it) => {
            let source = visible(&wording::source(&it.source));
            Rendered::line(format!("{} = {} in {source}", it.key, it.text))
        }
        SettingReply::Unset { key, was_set, file } => {
            let no = if *was_set { "no longer" } else { "not" };
            let file = visible(&file.display().to_string());
            Rendered::line(format!("{key} is {no} set in {file}"))
        }
        SettingReply::OnlyUsers(key) => Rendered::refused(
            ErrorKind::Usage,
            format!("{} = … counts only in your own configuration", key.name),
            Some(format!("stepwell config set --user {} …", key.name)),
        ),
    }
}

pub(super) fn servers(
    found: &[McpServer],
    named_in: Option<&std::path::Path>,
    style: &Style,
) -> Rendered {
    if found.is_empty() {
        let answer = Rendered::line("No MCP servers are named.");
        return match named_in.map(|path| visible(&path.display().to_string())) {
            Some(path) => answer.hint(format!("hint: add [mcp.NAME] to {path}")),
            None => answer,
        };
    }
    let mut lines = style.table(&servers::table(found));
    lines.extend(found.iter().flat_map(|server| servers::more(server, style.columns)));
    Rendered::lines(lines)
}
