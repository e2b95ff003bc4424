mod view;

use std::collections::BTreeMap;

use stepwell::log::{LaneState, Timeline};
use stepwell::model::Origin;
use stepwell::sessions::Relative;
use stepwell::sqlite::Access;
use stepwell::store::Span;
use stepwell::work::NodeInfo;
use stepwell::{Event, Lane, Recorded, Seq, SessionId, SessionInfo};
use stepwell_runtime::inspect::{self, Depth, Details};
use stepwell_terminal::events::{detail, gist, parts, speaker};
use stepwell_terminal::text::{self, cost, indented, one_line, second, visible, word};
use stepwell_terminal::wording::{self, tell_of_half};
use stepwell_terminal::{Style, note, work};
use stepwell_wire::{Messages, NamedSeq, RecordedMessage, SessionDetails};
use stepwell_workspace::Estimates;

use super::sessions::status_cell;
use crate::app::{App, Well};
use crate::failure::{Exit, Result};

/// Shows a session: what it is, what it spent, its files, its last messages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Shows the whole conversation.
    #[arg(long)]
    messages: bool,
    /// Shows every event on a line.
    #[arg(long)]
    events: bool,
    /// Shows the sessions that grew out of it.
    #[arg(long)]
    tree: bool,
    /// Shows what the model would be sent now, and about how many tokens each message has. Calls
    /// that are run first, and instructions that changed since the last run, are not in it yet.
    #[arg(long, conflicts_with_all = ["messages", "events", "tree"])]
    view: bool,
}

/// How many of the last messages are shown.
const LAST: usize = 5;

/// How many columns of a value are shown that may be of any length.
const VALUE: usize = 160;

/// Shows the front of a value that may be of any length, on one line. Half a secret is no longer known
/// as one, so it goes before the value is cut.
fn shortener(app: &App) -> impl Fn(&str) -> String + use<> {
    let redactor = app.out.redactor();
    move |value| text::cut(&redactor.redact(&one_line(value)), VALUE)
}

/// Is there a value that people see only the front of?
fn is_cut(info: &SessionInfo, answer: &SessionDetails, last: &[Recorded]) -> bool {
    let head = &info.head;
    let spoken = last.iter().filter_map(|it| match &it.event {
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

/// What there is to say of a session, to programs and to people.
struct SessionPage {
    answer: SessionDetails,
    /// What it cost with its subagents, for people.
    below: Option<String>,
    lanes: BTreeMap<Lane, LaneState>,
    /// The sessions that grew out of it, for people.
    family: Vec<Relative>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    if args.view {
        well.refuse_altered(&id)?;
        return view::print(&well, &id, app);
    }
    let depth = if args.tree { Depth::Family } else { Depth::Alone };
    let Details { mut answer, info, family, with_subagents, timeline, unread } =
        inspect::details(&well, &id, depth)?;
    let estimate = Estimates::new(app).of(&info.head, &info.head.spent);
    answer.estimate = estimate.map(|it| it.cost.into());
    let mut damage = info.damage.clone();
    let mut last = Vec::new();
    if !args.messages && !args.events {
        let (found, unfound) = inspect::last_messages(&well, &id, &timeline, LAST)?;
        (last, damage) = (found, unfound.or(damage));
    }
    let log = Log { well: &well, id: &id, timeline: &timeline };
    if app.out.is_json() {
        damage = whole(answer, last, args, log, app)?.or(damage);
    } else {
        let below = with_subagents
            .map(|(spent, n)| format!("{} with {}", cost(&spent), text::count(n, "subagent")));
        let lanes = well.store().lanes(&id).unwrap_or_default();
        if unread.is_none() && is_cut(&info, &answer, &last) {
            note(format_args!("hint: stepwell show {id} --json has long values whole"));
        }
        describe(&info, &SessionPage { answer, below, lanes, family }, app)?;
        tail(last, app)?;
        if args.events {
            damage = events(log, app)?.or(damage);
        }
        if args.messages {
            damage = messages(log, app)?.or(damage);
        }
    }
    if unread.is_none() {
        tell_of_half(&info);
    }
    if let Some(damage) = damage {
        let (seq, readable, what) = (damage.seq, damage.seq.prev(), &damage.what);
        app.remember_damage(&id);
        note(match seq == Seq::ZERO {
            true => format!("damaged: {what}; stepwell doctor --repair rebuilds it"),
            false => format!("damaged at seq {seq}: {what}; readable up to {readable}"),
        });
        return Ok(Exit::Damaged);
    }
    match unread {
        Some(error) => Err(error.into()),
        None => Ok(Exit::Done),
    }
}

/// A session's log, and which of its events count.
#[derive(Clone, Copy)]
struct Log<'a> {
    well: &'a Well,
    id: &'a SessionId,
    timeline: &'a Timeline,
}

impl Log<'_> {
    fn each(
        self,
        look: impl FnMut(Recorded) -> Result<()>,
    ) -> Result<Option<stepwell::store::Damage>> {
        self.well.log(self.id, Span::ALL).each(look)
    }
}

/// The whole answer as one object.
fn whole(
    mut answer: SessionDetails,
    last: Vec<Recorded>,
    args: &Args,
    log: Log<'_>,
    app: &mut App,
) -> Result<Option<stepwell::store::Damage>> {
    let mut all = Vec::new();
    let mut damage = None;
    if args.messages || args.events {
        damage = log.each(|event| {
            all.push(event);
            Ok(())
        })?;
    }
    if args.messages {
        let is_message = |event: &&Recorded| matches!(event.event, Event::Message(_));
        let message = |recorded: Recorded| RecordedMessage {
            rewound: !log.timeline.contains(recorded.seq),
            recorded,
        };
        let messages = all.iter().filter(is_message).cloned().map(message).collect();
        answer.session.messages = Messages::All(messages);
    }
    if args.events {
        answer.events = Some(all);
    } else if !args.messages {
        answer.last_messages = Some(last);
    }
    app.out.object(&answer)?;
    Ok(damage)
}

fn describe(info: &SessionInfo, shown: &SessionPage, app: &mut App) -> Result<()> {
    let (answer, head) = (&shown.answer, &info.head);
    let paint = app.out.paint;
    let spent = text::cost_or(Estimates::new(app).of(head, &head.spent), &head.spent);
    let short = shortener(app);
    let mut say = |name: &str, value: &str| {
        if value.is_empty() {
            return Ok(());
        }
        let name = paint.paint(Style::Bold, &format!("{name:<10}"));
        app.out.line(format_args!("{name} {value}"))
    };
    say("Session", head.id.as_str())?;
    let status = status_cell(info);
    let why = match head.stop_reason {
        Some(reason) => Some(format!(" ({})", word(reason))),
        None => head.never_ran().then(|| " (not run yet)".to_owned()),
    };
    let phase = head.phase.map(|phase| format!(", in phase {phase}"));
    let (why, phase) = (why.unwrap_or_default(), phase.unwrap_or_default());
    say("Status", &format!("{}{why}{phase}", paint.paint(status.style, &status.text)))?;
    if let Some(held) = &info.held {
        say("Held by", &visible(&format!("{} until {}", held.holder, second(held.expires))))?;
    }
    if let Some(at) = info.trashed_at {
        say("In trash", &format!("since {}", second(at)))?;
    }
    say("Task", indented(&head.task, "           ").trim_start())?;
    say("Goal", &short(head.goal.as_deref().unwrap_or_default()))?;
    say("Label", &visible(head.label.as_deref().unwrap_or_default()))?;
    say("Tags", &visible(&head.tags.iter().cloned().collect::<Vec<_>>().join(", ")))?;
    say("Pinned", if head.pinned { "yes" } else { "" })?;
    say("Agent", &one_line(&head.agent))?;
    let provider = head.model_provider();
    let by = if provider.is_empty() { "" } else { " of " };
    say("Model", &one_line(&format!("{}{by}{provider}", head.model)))?;
    if let Some(flow) = &head.flow {
        say("Flow", &visible(&format!("{} ({})", flow.name, flow.pattern)))?;
    }
    if let Some(flow) = &answer.flow {
        for variable in &flow.variables {
            say("Variable", &short(&pair(variable)))?;
        }
    }
    if let Some(project) = &answer.project {
        let words = [project.project_type.as_str(), &project.framework];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        say("Project", &one_line(&words.join(", ")))?;
        for (question, answer) in &project.answers {
            let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            say("Answer", &short(&format!("{question}: {answer}")))?;
        }
    }
    say("Workspace", &one_line(&head.workspace))?;
    match &head.origin {
        Origin::Root => {}
        Origin::Subagent { parent } => say("Subagent", &format!("of {parent}"))?,
        Origin::Fork { parent, at } => say("Fork", &format!("of {parent} at {at}"))?,
    }
    if let Some(source) = &head.source {
        say("Imported", &visible(&format!("from {} {}", source.system, source.id)))?;
    }
    say("Began", &second(head.created_at))?;
    if let Some(at) = answer.resumed_at {
        let times = text::count(usize::try_from(head.resumes).unwrap_or(usize::MAX), "time");
        say("Resumed", &format!("{times}, last {}", second(at)))?;
    }
    say("Updated", &second(head.updated_at))?;
    say("Steps", &text::grouped(head.steps))?;
    let rewound = match answer.rewound_messages {
        0 => String::new(),
        n => format!(", {} of them rewound", text::grouped(n)),
    };
    say("Messages", &format!("{}{rewound}", text::grouped(head.messages)))?;
    say("Events", &text::grouped(head.seq.get()))?;
    say("Cost", &spent)?;
    say("In all", shown.below.as_deref().unwrap_or_default())?;
    if head.errors > 0 {
        let last = head.last_error.as_ref().map(|error| one_line(&error.message));
        say("Errors", &format!("{}, the last: {}", head.errors, last.unwrap_or_default()))?;
    }
    say("Error", &short(head.error.as_deref().unwrap_or_default()))?;
    if let Some(settings) = &head.settings {
        say("Settings", &one_line(&wording::settings(settings)))?;
    }
    if let Some(state) = &answer.work {
        let lines = work::guided(state).into_iter().chain(work::questions(&state.questions));
        { lines }.chain(work::next(state)).try_for_each(|line| say(line.name, &line.text))?;
    }
    for entry in &head.metadata {
        say("Metadata", &short(&pair(entry)))?;
    }
    lists(shown, app)
}

fn lists(shown: &SessionPage, app: &mut App) -> Result<()> {
    let answer = &shown.answer;
    let short = shortener(app);
    let node = |it: &NodeInfo| {
        // What failed says why; what is done, what it came to.
        let said = it.error.as_ref().or(it.answer.as_ref()).map(|text| short(text));
        let said = said.map(|text| format!(": {text}"));
        format!("{} {}{}", one_line(&it.key), word(it.state), said.unwrap_or_default())
    };
    let nodes = answer.flow.iter().flat_map(|flow| &flow.nodes).chain(&answer.nodes);
    let nodes = nodes.map(node).collect();
    let mut section = |title: &str, lines: Vec<String>| -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        app.out.line("")?;
        app.out.line(app.out.paint.paint(Style::Bold, title))?;
        lines.into_iter().try_for_each(|line| app.out.line(format_args!("  {line}")))
    };
    let lane = |(lane, state): (&Lane, &LaneState)| {
        let tokens = state.spent.usage;
        let (input, output) = (text::grouped(tokens.input), text::grouped(tokens.output));
        let steps = text::count(usize::try_from(state.steps).unwrap_or(usize::MAX), "step");
        format!("{lane}: {steps}, {input} tokens in, {output} out, {}", cost(&state.spent))
    };
    section("Usage by agent", shown.lanes.iter().map(lane).collect())?;
    section("Nodes", nodes)?;
    section("Files", answer.files.iter().map(|path| one_line(path)).collect())?;
    section("Artifacts", answer.artifacts.iter().map(|path| one_line(path)).collect())?;
    let named = |it: &NamedSeq| format!("{} at {}, {}", one_line(&it.name), it.seq, second(it.at));
    section("Checkpoints", answer.checkpoints.iter().map(named).collect())?;
    let children = answer.children.iter().flatten().zip(&shown.family);
    let grown = children.map(|(child, relative)| {
        let (indent, kind, status) =
            ("  ".repeat(relative.depth), child.kind, child.status.as_str());
        let at = child.at.map(|at| format!(" at {at}")).unwrap_or_default();
        let task = one_line(&relative.info.head.task);
        format!("{indent}{}  {}{at}, {status}  {task}", child.id, kind.as_str())
    });
    section("Grown out of it", grown.collect())
}

fn tail(last: Vec<Recorded>, app: &mut App) -> Result<()> {
    if last.is_empty() {
        return Ok(());
    }
    app.out.line("")?;
    app.out.line(app.out.paint.paint(Style::Bold, "Last messages"))?;
    let short = shortener(app);
    for event in last {
        let Event::Message(message) = &event.event else { continue };
        let line = format!("  {:>5} {}", event.seq, short(&gist(message)));
        app.out.line(app.cut(&line))?;
    }
    Ok(())
}

fn events(log: Log<'_>, app: &mut App) -> Result<Option<stepwell::store::Damage>> {
    app.out.line("")?;
    app.out.line(app.out.paint.paint(Style::Bold, "Events"))?;
    log.each(|event| {
        let says = detail(&event.event);
        let (seq, at, kind) = (event.seq, second(event.at), visible(event.event.kind()));
        let live = rewound(log.timeline, &event);
        let line = format!("  {seq:>5} {at} {kind:<13} {says}{live}");
        app.out.line(app.cut(&line).trim_end())
    })
}

/// Says of an event that it no longer counts.
fn rewound(timeline: &Timeline, event: &Recorded) -> &'static str {
    if timeline.contains(event.seq) { "" } else { " (rewound)" }
}

fn messages(log: Log<'_>, app: &mut App) -> Result<Option<stepwell::store::Damage>> {
    log.each(|event| {
        let Event::Message(message) = &event.event else { return Ok(()) };
        let live = rewound(log.timeline, &event);
        let lane = match message.lane.as_str() {
            "main" => String::new(),
            lane => format!(" in {lane}"),
        };
        let title = format!("{} {}{lane}{live}", event.seq, speaker(message));
        app.out.line("")?;
        app.out.line(app.out.paint.paint(Style::Bold, &title))?;
        parts(message).iter().try_for_each(|part| app.out.line(indented(part, "  ")))
    })
}
