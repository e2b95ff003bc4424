//! A session on one page.

use stepwell::log::LaneState;
use stepwell::model::Origin;
use stepwell::work::NodeInfo;
use stepwell::{Event, Lane, Seq, SessionInfo};
use stepwell_runtime::ErrorKind;
use stepwell_runtime::command::SessionPage;
use stepwell_wire::{NamedSeq, SessionStatus};

use super::{Refusal, Rendered, Style};
use crate::console::Style as Look;
use crate::events::gist;
use crate::explained::Explained;
use crate::table::Cell;
use crate::text::{self, cost, indented, one_line, second, visible, word};
use crate::{wording, work};

/// How many columns of a value are shown that may be of any length.
const VALUE: usize = 160;

pub(super) fn page(page: &SessionPage, style: &Style) -> Rendered {
    let mut answer = Rendered::default();
    let id = &page.details.info.head.id;
    describe(page, style, &mut answer.lines);
    lists(page, style, &mut answer.lines);
    last_messages(page, style, &mut answer.lines);
    let is_readable = page.details.unread.is_none();
    if is_readable && is_cut(page) {
        answer = answer.hint(format!("hint: stepwell show {id} --json has long values whole"));
    }
    if is_readable {
        answer.notes.extend(wording::half_rewound(&page.details.info));
    }
    if let Some(damage) = &page.damage {
        let (seq, readable, what) = (damage.seq, damage.seq.prev(), &damage.what);
        return answer.note(match seq == Seq::ZERO {
            true => format!("damaged: {what}; stepwell doctor --repair rebuilds it"),
            false => format!("damaged at seq {seq}: {what}; readable up to {readable}"),
        });
    }
    if let Some(error) = &page.details.unread {
        let (why, kind) = (Explained::from(error), ErrorKind::Store(error.kind()));
        answer.refused = Some(Refusal { why, kind });
    }
    answer
}

/// The front of a value that may be of any length, on one line. Half a secret is no longer known as
/// one, so it goes before the value is cut.
fn short(value: &str, style: &Style) -> String {
    text::cut(&style.redactor.redact(&one_line(value)), VALUE)
}

/// Is there a value that people see only the front of?
fn is_cut(page: &SessionPage) -> bool {
    let (head, answer) = (&page.details.info.head, &page.details.answer);
    let spoken = page.last.iter().filter_map(|it| match &it.event {
        Event::Message(message) => Some(gist(message)),
        _ => None,
    });
    let nodes = answer.flow.iter().flat_map(|flow| &flow.nodes).chain(&answer.nodes);
    let said = nodes.flat_map(|it| it.error.iter().chain(&it.answer)).cloned();
    let variables = answer.flow.iter().flat_map(|flow| &flow.variables);
    let told = answer.project.iter().flat_map(|project| &project.answers);
    let pairs = variables.chain(told).chain(&head.metadata).map(pair);
    let texts = head.error.iter().chain(&head.goal).cloned();
    said.chain(pairs).chain(texts).chain(spoken).any(|it| text::width(&one_line(&it)) > VALUE)
}

/// A name of the user's and its value.
fn pair((name, value): (&String, &serde_json::Value)) -> String {
    format!("{name} = {value}")
}

fn describe(page: &SessionPage, style: &Style, lines: &mut Vec<String>) {
    let (answer, info) = (&page.details.answer, &page.details.info);
    let (head, paint) = (&info.head, style.paint);
    let spent = text::cost_or(page.estimate, &head.spent);
    let short = |value: &str| short(value, style);
    let mut say = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = paint.paint(Look::Bold, &format!("{name:<10}"));
            lines.push(format!("{name} {value}"));
        }
    };
    say("Session", head.id.as_str());
    let status = status_cell(info);
    let why = match head.stop_reason {
        Some(reason) => Some(format!(" ({})", word(reason))),
        None => head.never_ran().then(|| " (not run yet)".to_owned()),
    };
    let phase = head.phase.map(|phase| format!(", in phase {phase}"));
    let (why, phase) = (why.unwrap_or_default(), phase.unwrap_or_default());
    say("Status", &format!("{}{why}{phase}", paint.paint(status.style, &status.text)));
    if let Some(held) = &info.held {
        say("Held by", &visible(&format!("{} until {}", held.holder, second(held.expires))));
    }
    if let Some(at) = info.trashed_at {
        say("In trash", &format!("since {}", second(at)));
    }
    say("Task", indented(&head.task, "           ").trim_start());
    say("Goal", &short(head.goal.as_deref().unwrap_or_default()));
    say("Label", &visible(head.label.as_deref().unwrap_or_default()));
    say("Tags", &visible(&head.tags.iter().cloned().collect::<Vec<_>>().join(", ")));
    say("Pinned", if head.pinned { "yes" } else { "" });
    say("Agent", &one_line(&head.agent));
    let provider = head.model_provider();
    let by = if provider.is_empty() { "" } else { " of " };
    say("Model", &one_line(&format!("{}{by}{provider}", head.model)));
    if let Some(flow) = &head.flow {
        say("Flow", &visible(&format!("{} ({})", flow.name, flow.pattern)));
    }
    if let Some(flow) = &answer.flow {
        for variable in &flow.variables {
            say("Variable", &short(&pair(variable)));
        }
    }
    if let Some(project) = &answer.project {
        let words = [project.project_type.as_str(), &project.framework];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        say("Project", &one_line(&words.join(", ")));
        for (question, answer) in &project.answers {
            let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            say("Answer", &short(&format!("{question}: {answer}")));
        }
    }
    say("Workspace", &one_line(&head.workspace));
    match &head.origin {
        Origin::Root => {}
        Origin::Subagent { parent } => say("Subagent", &format!("of {parent}")),
        Origin::Fork { parent, at } => say("Fork", &format!("of {parent} at {at}")),
    }
    if let Some(source) = &head.source {
        say("Imported", &visible(&format!("from {} {}", source.system, source.id)));
    }
    if let Some(file) = &head.facts.provenance {
        say("From", &visible(&file.from));
    }
    if head.facts.truncated == Some(true) {
        say("Truncated", "the model is not shown old messages");
    }
    say("Began", &second(head.created_at));
    if let Some(at) = answer.resumed_at {
        let times = text::count(usize::try_from(head.resumes).unwrap_or(usize::MAX), "time");
        say("Resumed", &format!("{times}, last {}", second(at)));
    }
    say("Updated", &second(head.updated_at));
    say("Steps", &text::grouped(head.steps));
    let rewound = match answer.rewound_messages {
        0 => String::new(),
        n => format!(", {} of them rewound", text::grouped(n)),
    };
    say("Messages", &format!("{}{rewound}", text::grouped(head.messages)));
    say("Events", &text::grouped(head.seq.get()));
    say("Cost", &spent);
    let below = page
        .details
        .with_subagents
        .as_ref()
        .map(|(spent, n)| format!("{} with {}", cost(spent), text::count(*n, "subagent")));
    say("In all", &below.unwrap_or_default());
    if head.errors > 0 {
        let last = head.last_error.as_ref().map(|error| one_line(&error.message));
        say("Errors", &format!("{}, the last: {}", head.errors, last.unwrap_or_default()));
    }
    say("Error", &short(head.error.as_deref().unwrap_or_default()));
    if let Some(settings) = &head.settings {
        say("Settings", &one_line(&wording::settings(settings)));
    }
    if let Some(state) = &answer.work {
        let lines = work::guided(state).into_iter().chain(work::questions(&state.questions));
        { lines }.chain(work::next(state)).for_each(|line| say(line.name, &line.text));
    }
    for entry in &head.metadata {
        say("Metadata", &short(&pair(entry)));
    }
}

fn lists(page: &SessionPage, style: &Style, lines: &mut Vec<String>) {
    let answer = &page.details.answer;
    let node = |it: &NodeInfo| {
        // What failed says why; what is done, what it came to.
        let said = it.error.as_ref().or(it.answer.as_ref()).map(|text| short(text, style));
        let said = said.map(|text| format!(": {text}"));
        format!("{} {}{}", one_line(&it.key), word(it.state), said.unwrap_or_default())
    };
    let nodes = answer.flow.iter().flat_map(|flow| &flow.nodes).chain(&answer.nodes);
    let nodes = nodes.map(node).collect();
    let mut section = |title: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            lines.extend([String::new(), style.paint.paint(Look::Bold, title)]);
            lines.extend(entries.into_iter().map(|line| format!("  {line}")));
        }
    };
    let lane = |(lane, state): (&Lane, &LaneState)| {
        let tokens = state.spent.usage;
        let (input, output) = (text::grouped(tokens.input), text::grouped(tokens.output));
        let steps = text::count(usize::try_from(state.steps).unwrap_or(usize::MAX), "step");
        format!("{lane}: {steps}, {input} tokens in, {output} out, {}", cost(&state.spent))
    };
    section("Usage by agent", page.lanes.iter().map(lane).collect());
    section("Nodes", nodes);
    section("Files", answer.files.iter().map(|path| one_line(path)).collect());
    section("Artifacts", answer.artifacts.iter().map(|path| one_line(path)).collect());
    let named = |it: &NamedSeq| format!("{} at {}, {}", one_line(&it.name), it.seq, second(it.at));
    section("Checkpoints", answer.checkpoints.iter().map(named).collect());
    let children = answer.children.iter().flatten().zip(&page.details.family);
    let grown = children.map(|(child, relative)| {
        let (indent, kind, status) =
            ("  ".repeat(relative.depth), child.kind, child.status.as_str());
        let at = child.at.map(|at| format!(" at {at}")).unwrap_or_default();
        let task = one_line(&relative.info.head.task);
        format!("{indent}{}  {}{at}, {status}  {task}", child.id, kind.as_str())
    });
    section("Grown out of it", grown.collect());
}

fn last_messages(page: &SessionPage, style: &Style, lines: &mut Vec<String>) {
    if page.last.is_empty() {
        return;
    }
    lines.extend([String::new(), style.paint.paint(Look::Bold, "Last messages")]);
    for event in &page.last {
        if let Event::Message(message) = &event.event {
            let said = short(&gist(message), style);
            lines.push(style.cut(&format!("  {:>5} {said}", event.seq)));
        }
    }
}

/// How a session stands, in its colour.
#[must_use]
pub fn status_cell(info: &SessionInfo) -> Cell {
    use SessionStatus::{
        Abandoned, Damaged, Failed, Idle, Interrupted, Partial, Paused, Running, Success,
    };
    let shown = SessionStatus::from(info);
    let style = match shown {
        Damaged | Failed => Look::Red,
        Running => Look::Cyan,
        Success => Look::Green,
        Paused | Interrupted | Partial => Look::Yellow,
        Abandoned | Idle => Look::Dim,
    };
    Cell::styled(shown.as_str(), style)
}
