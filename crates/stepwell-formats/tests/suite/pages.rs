//! Pages for people: what they show, compared with golden files, and of damaged sessions.

use std::fs;
use std::path::PathBuf;

use stepwell::model::{
    Artifact, Change, Checkpoint, Compacted, Digest, Edited, FileChanged, FileState, Gate,
    GateAnswered, Image, Money, Node, NodeState, OwnCommand, Part, Role, StatusChanged, Step, Text,
    Time, ToolResult, Undone, Usage,
};
use stepwell::store::{Create, Write};
use stepwell::{
    Created, Event, Lane, Message, NewEvent, Seq, Session, Status, Stepwell, StopReason,
};
use stepwell_formats::{Format, Shape, export};

use crate::support::{id, log, root, say, text};

const NAME: &str = "20260223-143022-a1b2c3";

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A session that a test can date: each event comes a second after the one before.
pub(crate) struct Dated {
    session: Session,
    at: Time,
}

impl Dated {
    pub(crate) fn begin(well: &Stepwell, created: Created) -> Self {
        let at: Time = "2026-02-23T14:30:22Z".parse().unwrap();
        let claim = Some(well.claim());
        let create = Create { created, event_id: None, at: Some(at), claim };
        let written = well.store().write(Write::Create(create)).unwrap();
        Self { session: well.adopt(written.lease.unwrap()), at }
    }

    pub(crate) fn add(&mut self, event: impl Into<Event>) -> Seq {
        self.at = Time::from_micros(self.at.as_micros() + 1_000_000);
        self.session.append(NewEvent::from(event.into()).at(self.at)).unwrap()
    }
}

fn file(path: &str, before: FileState, after: FileState) -> FileChanged {
    FileChanged { path: path.to_owned(), before, after, renamed_from: None }
}

fn kept_elsewhere() -> FileState {
    FileState::NotCaptured { digest: None, why: "too large".to_owned() }
}

/// A session with one of everything that a page shows.
fn rich(well: &Stepwell) {
    let created = Created::new(id(NAME), "Fix the login\n\nIt fails for *some* users.")
        .with_agent("build")
        .with_model("acme", "large-1");
    let mut it = Dated::begin(well, created);
    it.add(Message::system("You are careful.\n\n# Rules\n- ask first"));
    it.add(Message::user(
        "Fix the login.\n\nIt fails for *some* users: `a < b`, see <https://x.example>.",
    ));
    let mut answer = Message::assistant("I look at the code.")
        .calling("c1", "read_file", r#"{"path":"src/login.rs","limit":10}"#)
        .calling("c2", "run", r#"{"cmd":"cargo test\n--all","env":{}}"#);
    let thought = Text { text: "Where is it?\nPerhaps in `login.rs`.".to_owned(), opaque: None };
    answer.parts.insert(0, Part::Thinking(thought));
    let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
    it.add(answer.spending(usage, Some(Money::from_picos(12_345_000_000))));
    let code = "fn login() {\n    todo!()\n}\n";
    it.add(Message::tool_result("c1", code));
    let picture =
        Image { media_type: "image/png".to_owned(), data: PIXEL.to_owned(), opaque: None };
    let failed = ToolResult {
        call_id: "c2".to_owned(),
        text: "```\nerror: 1 test failed\n```".to_owned(),
        is_error: true,
        images: vec![picture],
        opaque: None,
    };
    it.add(Message::new(Role::Tool, vec![Part::ToolResult(failed)]));
    it.add(Step { lane: Lane::main(), n: 1 });
    let edit = r#"{"path":"src/login.rs","old_text":"fn login() {\n    todo!()\n}\n","new_text":"fn login() {\n    check(user)\n}\n"}"#;
    it.add(Message::assistant("I change it.").calling("c3", "edit_file", edit));
    it.add(Message::tool_result("c3", "1 change"));
    it.add(Gate::new("g", "Ship it?"));
    it.add(GateAnswered::new("g", "yes", "ann"));
    it.add(file("src/login.rs", kept_elsewhere(), kept_elsewhere()));
    it.add(file("src/new.rs", FileState::Absent, kept_elsewhere()));
    it.add(file("src/old.rs", kept_elsewhere(), FileState::Absent));
    let before_detour = it.add(Checkpoint { name: "before".to_owned(), ..Checkpoint::default() });
    it.add(Message::user("Take a detour."));
    it.add(Message::assistant("Gladly."));
    it.session.rewind(before_detour, stepwell::model::Scope::Chat).unwrap();
    let lines = "Fixed:\n\n```rust\nfn login() -> Vec<User> {}\n```\n\n# Done\n\n1. one\n2. two\n";
    it.add(Message::assistant(lines));
    it.add(Message::user("And this?").in_lane("critic".parse().unwrap()));
    let critic = Message::assistant("").calling("c1", "think", "not json");
    it.add(critic.in_lane("critic".parse().unwrap()));
    let digest = Digest::of(b"report");
    it.add(Artifact { path: "out/report.md".to_owned(), digest });
    it.add(StatusChanged {
        status: Status::Success,
        reason: Some(StopReason::LlmDone),
        error: None,
    });
}

fn golden(format: Format) -> PathBuf {
    let end = if format == Format::HTML { "html" } else { "md" };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/suite/golden/rich.{end}"))
}

/// The page without the one time that the store gave.
fn page(format: Format) -> String {
    let well = Stepwell::in_memory();
    rich(&well);
    // The rewind bears the store's own time.
    let rewound =
        log(&well, &id(NAME)).into_iter().find(|it| matches!(it.event, Event::Rewound(_)));
    let at = rewound.unwrap().at.to_string();
    let at = format!("{} {}", &at[..10], &at[11..19]);
    text(&well, NAME, format).replace(&at, "2026-02-23 14:31:00")
}

#[test]
fn markdown_looks_as_it_did() {
    assert_eq!(page(Format::MARKDOWN), fs::read_to_string(golden(Format::MARKDOWN)).unwrap());
}

#[test]
fn html_looks_as_it_did() {
    assert_eq!(page(Format::HTML), fs::read_to_string(golden(Format::HTML)).unwrap());
}

#[test]
#[ignore = "rewrites the golden files: cargo test -p stepwell-formats -- --ignored rewrite"]
fn rewrite_the_golden_files() {
    for format in [Format::MARKDOWN, Format::HTML] {
        fs::write(golden(format), page(format)).unwrap();
    }
}

#[test]
fn both_pages_say_the_same() {
    let well = Stepwell::in_memory();
    rich(&well);
    let (markdown, html) = (text(&well, NAME, Format::MARKDOWN), text(&well, NAME, Format::HTML));
    for words in [
        "Fix the login",
        "$0.0123",
        "2 messages that were rewound",
        "Take a detour",
        "2026-02-23 14:30:25 UTC",
        "1,000 in, 100 out",
        "Asked: Ship it?",
        "ann answered: yes",
        "+    check(user)",
        "-    todo!()",
        "You are careful.",
        "Where is it?",
        "read_file — src/login.rs",
        "run — cargo test --all (failed)",
        "error: 1 test failed",
        "interrupted, outcome unknown",
        PIXEL,
        "Lane critic",
        "src/new.rs",
        "created",
        "out/report.md",
    ] {
        assert!(markdown.contains(words), "Markdown lacks {words:?}");
        assert!(html.contains(words), "HTML lacks {words:?}");
    }
    assert!(html.contains("<em>some</em>") && html.contains("<section class=\"user\">"));
}

#[test]
fn pages_say_what_a_session_was_given_and_keep_the_lines_of_a_question() {
    let well = Stepwell::in_memory();
    let mut created = Created::new(NAME.parse().unwrap(), "publish");
    created.flow = Some(stepwell::model::Flow {
        name: "publish".to_owned(),
        pattern: "chain".to_owned(),
        spec: String::new(),
        hash: stepwell::model::SpecHash::of(b""),
        variables: [("product".to_owned(), "Teapot".into())].into(),
    });
    created.project = Some(stepwell::model::Project {
        framework: "axum".to_owned(),
        answers: [("Which port?".to_owned(), "8080".into())].into(),
        ..stepwell::model::Project::default()
    });
    let session = well.create(created).unwrap();
    let metadata = [("plan".to_owned(), "by hand".into())].into();
    session.append(Edited { metadata, ..Edited::default() }).unwrap();
    session.append(Gate::new("1", "The plan?\n\n1. the page\n2. the <b>form</b>")).unwrap();
    let (markdown, html) = (text(&well, NAME, Format::MARKDOWN), text(&well, NAME, Format::HTML));
    for words in ["product", "Teapot", "axum", "Which port?", "8080", "plan", "by hand"] {
        assert!(markdown.contains(words), "Markdown lacks {words:?}: {markdown}");
        assert!(html.contains(words), "HTML lacks {words:?}");
    }
    let quoted = "\n```\n1. the page\n2. the <b>form</b>\n```\n";
    assert!(markdown.contains(quoted), "{markdown}");
}

#[test]
fn a_command_that_the_user_ran_is_shown_as_typed() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let own = OwnCommand {
        command: "grep -rn `cat name` *.rs *.md <a".to_owned(),
        output: "a.rs: *x*\n```\n# no heading".to_owned(),
        failed: Some("exit status: 2".to_owned()),
    };
    session.append(Message::user(format!("{}\n\nwhy *not*?", own.told()))).unwrap();
    let page = text(&well, "a", Format::MARKDOWN);
    assert!(page.contains("\n```sh\n!grep -rn `cat name` *.rs *.md <a\n```\n"), "{page}");
    assert!(page.contains("\n````\na.rs: *x*\n```\n# no heading\n````\n"), "{page}");
    assert!(page.contains("\nFailed: exit status: 2\n") && !page.contains("I ran"), "{page}");
    let page = text(&well, "a", Format::HTML);
    assert!(page.contains("<pre>\n!grep -rn `cat name` *.rs *.md &lt;a</pre>"), "{page}");
    assert!(page.contains("<pre>\na.rs: *x*\n```\n# no heading</pre>"), "{page}");
    assert!(page.contains("why <em>not</em>?") && !page.contains("I ran"), "{page}");
}

#[test]
fn an_unpriced_call_makes_the_cost_unknown() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    session.append(Message::assistant("hm").spending(Usage::default(), None)).unwrap();
    assert!(text(&well, "a", Format::MARKDOWN).contains("| cost | ? |"));
    assert!(text(&well, "a", Format::HTML).contains("<th>cost</th><td>?</td>"));
}

#[test]
fn what_was_compacted_is_folded_away_before_its_summary() {
    let well = Stepwell::in_memory();
    let mut session = root(&well, "a");
    say(&mut session, &["one", "two"]);
    let compacted = Compacted {
        summary: Some("they counted".to_owned()),
        ..Compacted::new(Lane::main(), Seq::new(2), Seq::new(3))
    };
    let at = session.append(compacted).unwrap();
    let note = "<summary>2 messages that were compacted</summary>";
    let page = text(&well, "a", Format::MARKDOWN);
    let (fold, summary) = (page.find(note).unwrap(), page.find("they counted").unwrap());
    assert!(page.contains("## Summary of earlier messages\n"), "{page}");
    let one = page.find("\none\n").unwrap();
    assert!(fold < one && one < summary, "the summary stands behind what it replaced: {page}");
    session.append(Undone::Compaction { of: at }).unwrap();
    let page = text(&well, "a", Format::MARKDOWN);
    assert!(!page.contains(note) && page.contains("\none\n"));
}

#[test]
fn a_rewind_is_seen_by_lanes_that_begin_after_it() {
    let well = Stepwell::in_memory();
    let mut session = root(&well, "a");
    say(&mut session, &["one", "two"]);
    let critic = |text: &str| Message::user(text).in_lane("critic".parse().unwrap());
    session.append(critic("early")).unwrap();
    session.rewind(Seq::new(2), stepwell::model::Scope::Chat).unwrap();
    session.append(critic("late")).unwrap();
    let page = text(&well, "a", Format::MARKDOWN);
    let critic = &page[page.find("# Lane critic").unwrap()..];
    let fold = critic.find("<summary>1 message that was rewound</summary>").unwrap();
    let (early, late) = (critic.find("early").unwrap(), critic.find("late").unwrap());
    let end = critic.find("</details>").unwrap();
    assert!(fold < early && early < end && end < late, "{page}");
}

#[test]
fn files_are_shown_as_they_are_after_a_rewind_and_its_undoing() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let blob =
        |n: u8| FileState::NotCaptured { digest: Some(Digest::of(&[n])), why: String::new() };
    let before = session.append(Message::user("one")).unwrap();
    session.append(file("kept.rs", FileState::Absent, blob(1))).unwrap();
    session.append(file("back.rs", blob(2), blob(3))).unwrap();
    let moved = session.rewind(before, stepwell::model::Scope::Both).unwrap();
    // The files move with it.
    session.append(file("kept.rs", blob(1), FileState::Absent)).unwrap();
    session.append(file("back.rs", blob(3), blob(2))).unwrap();
    session.append(Checkpoint { name: "between".to_owned(), ..Checkpoint::default() }).unwrap();
    let page = text(&well, "a", Format::MARKDOWN);
    assert!(!page.contains("kept.rs") && !page.contains("back.rs"), "{page}");
    session
        .append(Undone::Rewind {
            of: moved,
            scope: stepwell::model::Scope::Both,
            restored: Default::default(),
        })
        .unwrap();
    session.append(file("kept.rs", FileState::Absent, blob(1))).unwrap();
    well.edit(
        &id("a"),
        Edited {
            label: Change::Set("loaf".to_owned()),
            tag: ["rye".to_owned()].into(),
            ..Edited::default()
        },
    )
    .unwrap();
    session.append(Checkpoint { name: "later".to_owned(), ..Checkpoint::default() }).unwrap();
    for format in [Format::MARKDOWN, Format::HTML] {
        let page = text(&well, "a", format);
        assert!(page.contains("kept.rs") && !page.contains("back.rs"), "{page}");
        for words in ["loaf", "rye", "later", "between", "rewound"] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}

#[test]
fn results_of_nodes_are_on_the_page_unless_somebody_said_them() {
    let well = Stepwell::in_memory();
    let session = root(&well, "a");
    let node = |key: &str, output: Option<&str>, error: Option<&str>| Node {
        key: key.to_owned(),
        state: if error.is_some() { NodeState::Failed } else { NodeState::Done },
        output: output.map(|it| serde_json::json!({"response": it})),
        usage: None,
        error: error.map(str::to_owned),
    };
    session.append(node("task/dough", Some("**knead** it"), None)).unwrap();
    session.append(node("task/oven", None, Some("it is cold"))).unwrap();
    session.append(Message::assistant("said aloud").in_lane("cook".parse().unwrap())).unwrap();
    session.append(node("task/said", Some("said aloud"), None)).unwrap();
    let page = text(&well, "a", Format::HTML);
    assert!(page.contains("task/dough") && page.contains("<strong>knead</strong>"), "{page}");
    assert!(page.contains("task/oven") && page.contains("it is cold"), "{page}");
    assert!(!page.contains("task/said") && page.contains("said aloud"), "{page}");
    let page = text(&well, "a", Format::MARKDOWN);
    assert!(page.contains("## task/dough (done)\n\n**knead** it\n"), "{page}");
    let hits = well.search(&stepwell::store::query::Search::new("knead"));
    assert_eq!(hits.unwrap().hits.len(), 1);
    let hits = well.search(&stepwell::store::query::Search::new("aloud"));
    assert_eq!(hits.unwrap().hits.len(), 1, "what was said is found once");
}

#[test]
fn a_session_without_words_has_a_page() {
    let well = Stepwell::in_memory();
    drop(well.create(Created::new(id("a"), " \n ")).unwrap());
    assert!(text(&well, "a", Format::MARKDOWN).starts_with("# a\n"));
    assert!(text(&well, "a", Format::HTML).contains("<h1 dir=\"auto\">a</h1>"));
}

#[test]
fn pages_show_no_secret_of_an_import() {
    let well = Stepwell::in_memory();
    // Put together here, so that no file of ours holds one.
    let secret = format!("ghp_{}", "aB3dE5gH7jK9mN1p".repeat(3));
    let says = format!("it is {secret}");
    let created = Created::new(id(NAME), says.as_str());
    let create = Create { created, event_id: None, at: None, claim: Some(well.claim()) };
    let lease = well.store().write(Write::Create(create)).unwrap().lease.unwrap();
    let call = format!(r#"{{"command":"curl -H {secret}"}}"#);
    let events = [
        Event::from(Message::user(says.as_str())),
        Message::assistant(says.as_str()).calling("1", "run", call).into(),
        Message::tool_result("1", says.as_str()).into(),
        Edited { label: Change::Set(says), ..Edited::default() }.into(),
    ];
    let events = events.map(NewEvent::from).to_vec();
    let (session, epoch) = (lease.session.clone(), Some(lease.epoch));
    let append = stepwell::store::Append { session, epoch, expected: None, events: events.into() };
    well.store().write(Write::Append(append)).unwrap();
    for format in [Format::MARKDOWN, Format::HTML] {
        let page = text(&well, NAME, format);
        assert!(!page.contains(&secret[4..20]), "{page}");
        assert!(page.matches("redacted:github-token").count() >= 5, "{page}");
    }
    // Whoever is to go on with it gets it as it is.
    assert!(text(&well, NAME, Format::JSON).contains(&secret));
    assert!(text(&well, NAME, "claude".parse().unwrap()).contains(&secret));
}

#[test]
fn a_session_that_is_not_there_is_absent() {
    let well = Stepwell::in_memory();
    let streamed = |it: &Format| it.writer().is_some_and(|it| it.shape() == Shape::File);
    for format in Format::all().filter(streamed) {
        let error = export(&well, &id("a"), format, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), stepwell::ErrorKind::Absent);
    }
}

#[test]
fn every_format_reads_back_from_its_word() {
    for format in Format::all() {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    assert_eq!("md".parse(), Ok(Format::MARKDOWN));
    assert!("pdf".parse::<Format>().unwrap_err().to_string().contains("jsonl"));
}
