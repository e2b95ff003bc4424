//! For every format that is written and read: each kind of fact of a full session is there after
//! a round trip, or the export named it as a loss.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use stepwell::model::{
    Artifact, Change, Checkpoint, Edited, Failure, FileChanged, FileState, Flow, Gate,
    GateAnswered, Image, Kind, Mode, Money, Node, NodeState, Part, Permission, Phase, PhaseChanged,
    PhaseSet, Question, Role, Said, Settings, StatusChanged, Step, Task, TaskStatus, Text,
    ToolResult, Usage,
};
use stepwell::{Created, Event, Lane, Message, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Destination, Existing, Format, write_to};

use crate::mirror::taken;
use crate::pages::Dated;
use crate::support::{id, imported, log};

const NAME: &str = "20260223-143022-a1b2c3";

const SPEC: &str = "\
name: loaf
runtime: {provider: openai, model_id: large-1}
agents: {baker: {prompt: bake}}
pattern: {type: chain, config: {steps: [{agent: baker, input: go}]}}
";

/// A kind of fact: how it reads in a session, and the words by which a loss of it is named.
struct Fact {
    name: &'static str,
    read: fn(&Stepwell, &SessionId) -> String,
    words: &'static [&'static str],
}

fn picture() -> Image {
    let data = "iVBORw0KGgo=".to_owned();
    Image { media_type: "image/png".to_owned(), data, opaque: None }
}

/// A session with one of everything.
fn full(well: &Stepwell, flow: bool) -> SessionId {
    let mut created = Created::new(id(NAME), "bake the loaf")
        .with_agent("baker")
        .with_model("acme", "large-1")
        .in_workspace("/home/mila/loaf")
        .with_phases(PhaseSet::Workflow);
    if flow {
        let (name, pattern) = ("loaf".to_owned(), "chain".to_owned());
        let hash = stepwell::model::SpecHash::of(SPEC.as_bytes());
        let spec = SPEC.to_owned();
        created.flow = Some(Flow { name, pattern, spec, hash, variables: BTreeMap::new() });
        created.phases = None;
    }
    let mut it = Dated::begin(well, created);
    it.add(Settings { mode: Some(Mode::ConfirmAll), ..Settings::default() });
    it.add(Message::system("You bake."));
    let mut asked = Message::user("Bake it at noon.");
    asked.parts.push(Part::Image(picture()));
    it.add(asked);
    let thought = Text { text: "Which flour?".to_owned(), opaque: None };
    let mut answer = Message::assistant("I look.").calling("c1", "run", r#"{"command":"ls"}"#);
    answer.parts.insert(0, Part::Thinking(thought));
    answer.model = Some("large-1".to_owned());
    let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
    it.add(answer.spending(usage, Some(Money::from_picos(250_000_000_000))));
    let failed = ToolResult {
        call_id: "c1".to_owned(),
        text: "no such folder".to_owned(),
        is_error: true,
        images: vec![picture()],
        opaque: None,
    };
    it.add(Message::new(Role::Tool, vec![Part::ToolResult(failed)]));
    it.add(Step { lane: Lane::main(), n: 1 });
    it.add(Message::user("And a critic?").in_lane("critic".parse().unwrap()));
    if !flow {
        it.add(PhaseChanged { from: Phase::Idle, to: Phase::Initialize });
    }
    it.add(Task {
        id: "1".to_owned(),
        action: "create".to_owned(),
        description: "the dough".to_owned(),
        deps: Vec::new(),
        status: TaskStatus::Pending,
        files: vec!["dough.txt".to_owned()],
    });
    it.add(Question::new("q", "Rye or wheat?").with_answer("rye"));
    it.add(Gate::new("g", "Ship it?"));
    it.add(GateAnswered::new("g", "yes", "ann"));
    it.add(Permission::new("run", false));
    let after = FileState::NotCaptured { digest: None, why: "too large".to_owned() };
    let path = "src/oven.rs".to_owned();
    it.add(FileChanged { path, before: after.clone(), after, renamed_from: None });
    it.add(Checkpoint { name: "before noon".to_owned(), ..Checkpoint::default() });
    let digest = stepwell::model::Digest::of(b"report");
    it.add(Artifact { path: "out/report.md".to_owned(), digest });
    let (key, state) = ("step:0".parse().unwrap(), NodeState::Done);
    it.add(Node { key, state, output: Some(json!("warm")), usage: None, error: None });
    it.add(Failure { message: "the oven is cold".to_owned() });
    it.add(Said { text: "hurry".into(), lane: Lane::main(), who: "ann".into(), now: false });
    let metadata = BTreeMap::from([("shelf".to_owned(), json!(3))]);
    it.add(Edited {
        label: Change::Set("the loaf".to_owned()),
        goal: Change::Set("a crust".to_owned()),
        tag: ["bread".to_owned()].into(),
        budget: Change::Set("2".parse().unwrap()),
        metadata,
        ..Edited::default()
    });
    let (status, reason) = (Status::Partial, Some(StopReason::MaxSteps));
    it.add(StatusChanged { status, reason, error: Some("no more flour".to_owned()) });
    id(NAME)
}

fn count(well: &Stepwell, id: &SessionId, kind: Kind) -> String {
    let kind = kind.as_str();
    log(well, id).iter().filter(|it| it.event.kind() == kind).count().to_string()
}

fn messages(well: &Stepwell, id: &SessionId) -> Vec<Message> {
    let said = log(well, id).into_iter().filter_map(|it| match it.event {
        Event::Message(message) => Some(message),
        _ => None,
    });
    said.collect()
}

fn parts(well: &Stepwell, id: &SessionId, is: fn(&Part) -> bool) -> String {
    let said = messages(well, id);
    said.iter().flat_map(|it| &it.parts).filter(|part| is(part)).count().to_string()
}

/// The files that it changed.
fn files(well: &Stepwell, id: &SessionId) -> String {
    let changed = log(well, id).into_iter().filter_map(|it| match it.event {
        Event::File(file) => Some(file.path),
        _ => None,
    });
    format!("{:?}", changed.collect::<BTreeSet<String>>())
}

const FACTS: &[Fact] = &[
    Fact {
        name: "status",
        read: |well, id| well.info(id).unwrap().head.status.to_string(),
        words: &["status"],
    },
    Fact {
        name: "stop reason",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.stop_reason),
        words: &["max_steps"],
    },
    Fact {
        name: "error",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.error),
        words: &["error", "a status"],
    },
    Fact { name: "task", read: |well, id| well.info(id).unwrap().head.task, words: &["task"] },
    Fact { name: "agent", read: |well, id| well.info(id).unwrap().head.agent, words: &["baker"] },
    Fact { name: "model", read: |well, id| well.info(id).unwrap().head.model, words: &["model"] },
    Fact {
        name: "steps",
        read: |well, id| well.info(id).unwrap().head.steps.to_string(),
        words: &["steps"],
    },
    Fact {
        name: "cost",
        read: |well, id| well.info(id).unwrap().head.spent.cost.to_string(),
        words: &["cost", "$0.25"],
    },
    Fact {
        name: "tokens",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.spent.usage),
        words: &["tokens", "messages ("],
    },
    Fact {
        name: "when it began",
        // A transcript begins with its first line, moments later.
        read: |well, id| well.info(id).unwrap().head.created_at.to_string()[..16].to_owned(),
        words: &["when it began"],
    },
    Fact {
        name: "provider",
        read: |well, id| well.info(id).unwrap().head.model_provider().to_owned(),
        words: &["provider"],
    },
    Fact {
        name: "when it was updated",
        read: |well, id| well.info(id).unwrap().head.updated_at.to_string()[..16].to_owned(),
        words: &["when it was updated"],
    },
    Fact {
        name: "when things were said",
        read: |well, id| {
            let said = log(well, id).into_iter();
            let said = said.filter(|it| matches!(&it.event, Event::Message(it) if it.role != Role::System && it.lane == Lane::main()));
            format!("{:?}", said.map(|it| it.at.to_string()[..19].to_owned()).collect::<Vec<_>>())
        },
        words: &["times of messages", "messages ("],
    },
    Fact {
        name: "the last error",
        read: |well, id| {
            let last = well.info(id).unwrap().head.last_error;
            format!("{:?}", last.map(|it| (it.message, it.at.to_string()[..19].to_owned())))
        },
        words: &["errors"],
    },
    Fact {
        name: "label",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.label),
        words: &["label"],
    },
    Fact {
        name: "goal",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.goal),
        words: &["goal"],
    },
    Fact {
        name: "tags",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.tags),
        words: &["tag"],
    },
    Fact {
        name: "budget",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.budget),
        words: &["budget"],
    },
    Fact {
        name: "metadata",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.metadata.get("shelf")),
        words: &["metadata"],
    },
    Fact {
        name: "workspace",
        read: |well, id| well.info(id).unwrap().head.workspace,
        words: &["workspace"],
    },
    Fact {
        name: "phase",
        read: |well, id| format!("{:?}", well.info(id).unwrap().head.phase),
        words: &["phases"],
    },
    Fact {
        name: "what was said",
        read: |well, id| {
            let said = messages(well, id);
            let main = said.iter().filter(|it| it.lane == Lane::main() && it.role != Role::System);
            format!("{:?}", main.map(Message::text).collect::<Vec<_>>())
        },
        words: &["messages ("],
    },
    Fact {
        name: "system messages",
        read: |well, id| {
            let said = messages(well, id);
            said.iter().filter(|it| it.role == Role::System).count().to_string()
        },
        words: &["system", "messages ("],
    },
    Fact {
        name: "lanes",
        read: |well, id| {
            let said = messages(well, id);
            said.iter().filter(|it| it.lane != Lane::main()).count().to_string()
        },
        words: &["other lanes"],
    },
    Fact {
        name: "thinking",
        read: |well, id| parts(well, id, |part| matches!(part, Part::Thinking(_))),
        words: &["thinking", "messages ("],
    },
    Fact {
        name: "pictures",
        read: |well, id| parts(well, id, |part| matches!(part, Part::Image(_))),
        words: &["pictures", "messages ("],
    },
    Fact {
        name: "pictures of tools",
        read: |well, id| {
            parts(well, id, |part| matches!(part, Part::ToolResult(it) if !it.images.is_empty()))
        },
        words: &["pictures of tools", "messages ("],
    },
    Fact {
        name: "whether a tool failed",
        read: |well, id| {
            parts(well, id, |part| matches!(part, Part::ToolResult(it) if it.is_error))
        },
        words: &["failed", "errors", "messages ("],
    },
    Fact {
        name: "tasks",
        read: |well, id| format!("{:?}", well.work(id).unwrap().tasks.iter().count()),
        words: &["tasks and questions"],
    },
    Fact {
        name: "questions",
        read: |well, id| count(well, id, Kind::Question),
        words: &["tasks and questions"],
    },
    Fact { name: "gates", read: |well, id| count(well, id, Kind::Gate), words: &["human"] },
    Fact {
        name: "permissions",
        read: |well, id| count(well, id, Kind::Permission),
        words: &["permissions"],
    },
    Fact { name: "files", read: files, words: &["files"] },
    Fact {
        name: "checkpoints",
        read: |well, id| {
            let named = |it: &stepwell::Recorded| matches!(&it.event, Event::Checkpoint(it) if it.name == "before noon");
            log(well, id).iter().filter(|it| named(it)).count().to_string()
        },
        words: &["checkpoints"],
    },
    Fact {
        name: "artifacts",
        read: |well, id| count(well, id, Kind::Artifact),
        words: &["artifacts"],
    },
    Fact { name: "nodes", read: |well, id| count(well, id, Kind::Node), words: &["nodes"] },
    Fact {
        name: "errors",
        read: |well, id| well.info(id).unwrap().head.errors.to_string(),
        words: &["errors"],
    },
    Fact {
        name: "settings",
        read: |well, id| count(well, id, Kind::Settings),
        words: &["settings"],
    },
    Fact {
        name: "what was said from outside",
        read: |well, id| count(well, id, Kind::Said),
        words: &["from outside"],
    },
];

#[test]
fn every_fact_comes_back_or_is_named_as_a_loss() {
    let formats = [
        "json",
        "jsonl",
        "claude",
        "codex",
        "architect",
        "m31a",
        "gaia",
        "strands-sdk",
        "qwen",
        "pi",
    ];
    let cases = formats.map(|format| (format, false)).into_iter().chain([("strands-cli", true)]);
    let mut silent = Vec::new();
    for (name, flow) in cases {
        let format: Format = name.parse().unwrap();
        let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
        let session = full(&here, flow);
        let folder = tempfile::tempdir().unwrap();
        let writer = format.writer().unwrap();
        let place = folder.path().join(writer.place(&here.info(&session).unwrap().head));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let exported =
            write_to(&Destination::new(&place, Existing::Keep), writer, &here, &session).unwrap();
        let losses = exported.losses.to_string();
        assert!(!losses.contains("other records"), "{name}: {losses}");
        let back = match [Format::JSON, Format::JSONL].contains(&format) {
            true => {
                imported(&there, std::fs::read(&place).unwrap()).unwrap();
                session.clone()
            }
            false => taken(&there, &place).into_iter().next().unwrap().id,
        };
        for fact in FACTS {
            let (was, is) = ((fact.read)(&here, &session), (fact.read)(&there, &back));
            if was != is && !fact.words.iter().any(|word| losses.contains(word)) {
                silent.push(format!("{name}, {}: {was} became {is}", fact.name));
            }
        }
        if !silent.is_empty() {
            silent.push(format!("  {name} named: {losses}"));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
