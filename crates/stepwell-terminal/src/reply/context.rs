//! What a model is shown, what compactions changed of it, and what a session did to files.

use stepwell::SessionId;
use stepwell::log::ViewMessage;
use stepwell::work::compactions::ViewChange;
use stepwell_wire::{FileDiff, ModelView, ViewMessageKind};

use super::{Rendered, Style};
use crate::console::Style as Look;
use crate::events::{gist, parts, speaker};
use crate::text::{count, grouped, indented, one_line, visible};

/// What would be sent if the model were asked now.
pub(super) fn view(view: &ModelView, style: &Style) -> Rendered {
    let mut lines = Vec::new();
    let title = |text: &str, tokens: u64| {
        let tokens = style.paint.paint(Look::Dim, &tokens_of(tokens));
        format!("{} {tokens}", style.paint.paint(Look::Bold, text))
    };
    if !view.instructions.text.is_empty() {
        lines.push(title("instructions", view.instructions.tokens));
        lines.extend([indented(&view.instructions.text, "  "), String::new()]);
    }
    if !view.tools.names.is_empty() {
        lines.push(title("tools", view.tools.tokens));
        lines.extend([format!("  {}", one_line(&view.tools.names.join(", "))), String::new()]);
    }
    for shown in &view.messages {
        let who = match shown.made {
            ViewMessageKind::Summary => "summary",
            _ => speaker(&shown.message),
        };
        let pinned = if shown.pinned { ", pinned" } else { "" };
        lines.push(title(&format!("{} {who}{pinned}", shown.seq), shown.tokens));
        lines.extend(parts(&shown.message).iter().map(|part| indented(part, "  ")));
        lines.push(String::new());
    }
    let of = view.context.map(|n| format!(" of {}", grouped(n))).unwrap_or_default();
    let limit = view.limit.map(|n| format!("; compacted above {}", grouped(n)));
    let model = view.model.as_ref().map(|name| format!(" for {}", one_line(name)));
    let (all, messages) = (tokens_of(view.tokens), count(view.messages.len(), "message"));
    let (model, limit) = (model.unwrap_or_default(), limit.unwrap_or_default());
    lines.push(format!("{messages}, {all}{of}{model}{limit}"));
    Rendered::lines(lines)
}

fn tokens_of(tokens: u64) -> String {
    format!("about {} tokens", grouped(tokens))
}

/// What the model no longer sees, and what stands in its place.
pub(super) fn changes(id: &SessionId, changes: &[ViewChange], style: &Style) -> Rendered {
    if changes.iter().all(|change| matches!(change, ViewChange::Kept(_))) {
        return Rendered::line(format!("{id}: the model sees everything"));
    }
    let mut lines = Vec::new();
    for change in changes {
        let (look, mark, who, it) = match change {
            ViewChange::Kept(it) => {
                lines.push(style.cut(&format!("  {} {}", it.seq, gist(&it.message))));
                continue;
            }
            ViewChange::Hidden(it) => (Look::Red, "-", speaker(&it.message), it),
            ViewChange::Summary(it) => (Look::Green, "+", "summary", it),
        };
        let ViewMessage { seq, message, .. } = it;
        lines.push(style.paint.paint(look, &format!("{mark} {seq} {who}")));
        let part = |part: &String| style.paint.paint(look, &indented(part, &format!("{mark} ")));
        lines.extend(parts(message).iter().map(part));
    }
    Rendered::lines(lines)
}

/// A unified diff.
pub(super) fn diff(patches: &[FileDiff], style: &Style) -> Rendered {
    let line = |line: &str| {
        let look = match line.as_bytes().first() {
            _ if line.starts_with("diff ")
                || line.starts_with("--- ")
                || line.starts_with("+++ ") =>
            {
                Look::Bold
            }
            Some(b'+') => Look::Green,
            Some(b'-') => Look::Red,
            Some(b'@') => Look::Cyan,
            _ => Look::Plain,
        };
        style.paint.paint(look, &visible(line))
    };
    Rendered::lines(patches.iter().flat_map(|it| it.diff.lines()).map(line).collect())
}
