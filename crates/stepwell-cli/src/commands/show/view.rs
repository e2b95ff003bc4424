//! What a model would be shown of a session, and how large it is.

use stepwell::{SessionId, Stepwell};
use stepwell_runtime::inspect::{self, Viewed};
use stepwell_terminal::Style;
use stepwell_terminal::events::{parts, speaker};
use stepwell_terminal::text::{count, grouped, indented, one_line};
use stepwell_wire::{ModelView, ViewMessageKind};

use crate::app::App;
use crate::failure::{Exit, Result};

/// Prints what would be sent if the model were asked now.
pub(super) fn print(well: &Stepwell, id: &SessionId, app: &mut App) -> Result<Exit> {
    let answer = inspect::model_view(&app.runtime(), well, id, &Viewed::default())?;
    if app.out.is_json() {
        app.out.object(&answer)?;
    } else {
        text(&answer, app)?;
    }
    Ok(Exit::Done)
}

fn text(answer: &ModelView, app: &mut App) -> Result<()> {
    let paint = app.out.paint;
    let title = |text: &str, tokens: u64, app: &mut App| {
        let title = paint.paint(Style::Bold, text);
        app.out.line(format_args!("{title} {}", paint.paint(Style::Dim, &tokens_of(tokens))))
    };
    if !answer.instructions.text.is_empty() {
        title("instructions", answer.instructions.tokens, app)?;
        app.out.line(indented(&answer.instructions.text, "  "))?;
        app.out.line("")?;
    }
    if !answer.tools.names.is_empty() {
        title("tools", answer.tools.tokens, app)?;
        app.out.line(format_args!("  {}", one_line(&answer.tools.names.join(", "))))?;
        app.out.line("")?;
    }
    for shown in &answer.messages {
        let who = match shown.made {
            ViewMessageKind::Summary => "summary",
            _ => speaker(&shown.message),
        };
        let pinned = if shown.pinned { ", pinned" } else { "" };
        title(&format!("{} {who}{pinned}", shown.seq), shown.tokens, app)?;
        for part in parts(&shown.message) {
            app.out.line(indented(&part, "  "))?;
        }
        app.out.line("")?;
    }
    let of = answer.context.map(|n| format!(" of {}", grouped(n))).unwrap_or_default();
    let limit = answer.limit.map(|n| format!("; compacted above {}", grouped(n)));
    let model =
        answer.model.as_ref().map(|name| format!(" for {}", one_line(name))).unwrap_or_default();
    let (all, limit) = (tokens_of(answer.tokens), limit.unwrap_or_default());
    let messages = count(answer.messages.len(), "message");
    app.out.line(format_args!("{messages}, {all}{of}{model}{limit}"))
}

fn tokens_of(tokens: u64) -> String {
    format!("about {} tokens", grouped(tokens))
}
