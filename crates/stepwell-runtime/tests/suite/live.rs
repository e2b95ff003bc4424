//! What a model says, heard by others while it speaks.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use stepwell::model::{Origin, Role};
use stepwell::{Event, Lane, Seq, SessionId, Status};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::Delta;
use stepwell_runtime::live::{Listening, LivePiece, LivePieceKind, listen};
use stepwell_runtime::{Patience, RunEvent, RunHandle, RunOptions, RunRequest};
use stepwell_strict::{Ending, Rules, Say, Strict};

use crate::test_env::{ASKS, TestEnv, asked};

/// Whoever waits for longer waits in vain.
const PATIENCE: Duration = Duration::from_secs(120);

const WHOLE: &str = "Half an answer, and the rest of it.";
const HALF: &str = "Half an answer,";

/// An answer that pauses behind its first half until it is told to go on.
fn halved() -> Say {
    Say::text(WHOLE).ending(Ending::PausedAfter(4))
}

/// A workspace whose model streams.
struct Stage {
    env: TestEnv,
    strict: Strict,
    _tokio: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = { tokio }.worker_threads(1).enable_all().build().unwrap();
        let strict = tokio.block_on(Strict::start(Rules::default())).unwrap();
        let config = format!(
            "[providers.local]\nbase_url = \"{}\"\nprotocol = \"openai\"\nkey_env = \"LOCAL_KEY\"\n",
            strict.base_url()
        );
        let variables = BTreeMap::from([("LOCAL_KEY".to_owned(), strict.key().to_owned())]);
        Self { env: TestEnv::with(&config, variables), strict, _tokio: tokio }
    }

    fn options() -> RunOptions {
        RunOptions {
            model: Some("local/large".to_owned()),
            mode: Some(Mode::Yolo),
            patience: Patience::Wait,
            ..RunOptions::default()
        }
    }

    fn start(&self) -> RunHandle {
        let options = Self::options();
        let request = RunRequest { options, ..RunRequest::new("tell me") };
        self.env.runtime.start(request).unwrap()
    }

    /// Listens to a session as another process of the user does.
    fn listen(&self, id: &SessionId) -> Heard {
        let elsewhere = self.env.elsewhere();
        let well = elsewhere.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
        let (to, pieces) = mpsc::channel();
        let tell = move |piece| drop(to.send(piece));
        Heard { pieces, listening: listen(elsewhere.workspace(), &well, id, tell) }
    }

    /// What the model has said on record.
    fn recorded(&self, id: &SessionId) -> Vec<String> {
        let said = |event: &Event| match event {
            Event::Message(it) if it.role == Role::Assistant => Some(it.text()),
            _ => None,
        };
        self.env.events(id).iter().filter_map(|event| said(&event.event)).collect()
    }
}

struct Heard {
    pieces: mpsc::Receiver<LivePiece>,
    listening: Listening,
}

impl Heard {
    /// Hears the text of a session's conversation until it is this.
    fn until(&self, session: &SessionId, lane: &str, whole: &str) {
        let mut text = String::new();
        while text != whole {
            let piece = self.next();
            if piece.session != *session || piece.lane.as_str() != lane {
                continue;
            }
            match piece.kind {
                LivePieceKind::SoFar { text: so_far, .. } => text = so_far,
                LivePieceKind::Text { text: more } => text.push_str(&more),
                LivePieceKind::Void => text.clear(),
                _ => {}
            }
            assert!(whole.starts_with(&text), "{text:?}");
        }
    }

    /// Hears until the answer is on record, and tells where.
    fn until_recorded(&self) -> Seq {
        loop {
            if let LivePieceKind::Recorded { seq } = self.next().kind {
                return seq;
            }
        }
    }

    fn next(&self) -> LivePiece {
        self.pieces.recv_timeout(PATIENCE).expect("a piece")
    }
}

/// The sockets in a user's folder.
fn sockets(env: &TestEnv) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(env.state().join("live")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_listener_hears_an_answer_in_order_before_it_is_on_record() {
    let stage = Stage::new();
    stage.strict.push(halved());
    let handle = stage.start();
    let id = handle.id().clone();
    let heard = stage.listen(&id);
    heard.until(&id, "main", HALF);
    assert_eq!(stage.recorded(&id), [""; 0]);
    // Whoever comes in the middle hears it from its beginning.
    let late = stage.listen(&id);
    late.until(&id, "main", HALF);
    stage.strict.go_on();
    let rest = WHOLE.strip_prefix(HALF).unwrap();
    heard.until(&id, "main", rest);
    late.until(&id, "main", rest);
    let seq = heard.until_recorded();
    let events = stage.env.events(&id);
    let answer = events.iter().find(|event| event.seq == seq).unwrap();
    assert!(matches!(&answer.event, Event::Message(it) if it.text() == WHOLE), "{answer:?}");
    assert_eq!(handle.join().unwrap().status, Status::Success);
}

#[test]
fn whoever_is_attached_is_told_an_answer_while_it_comes_and_nothing_twice() {
    let stage = Stage::new();
    stage.strict.push(halved());
    let handle = stage.start();
    let attached = stage.env.elsewhere().attach(handle.id(), Seq::FIRST).unwrap();
    let (mut text, mut whole) = (String::new(), Vec::new());
    for event in attached.events() {
        match event {
            RunEvent::Delta(Delta::Text(piece)) => text.push_str(&piece),
            RunEvent::Delta(delta) => panic!("{delta:?}"),
            RunEvent::Recorded(event) => match event.event {
                Event::Message(it) if it.role == Role::Assistant => {
                    // All of it was told before.
                    assert_eq!(text, it.text());
                    whole.push(it.text());
                }
                _ => assert_eq!(text, "", "events before an answer come before its pieces"),
            },
            _ => {}
        }
        if text == HALF {
            stage.strict.go_on();
        }
        if !whole.is_empty() {
            break;
        }
    }
    assert_eq!(whole, [WHOLE]);
    assert_eq!(handle.join().unwrap().status, Status::Success);
}

#[test]
fn a_listener_that_does_not_read_is_dropped_and_the_run_ends() {
    let stage = Stage::new();
    // Each piece of five letters is a line of a hundred bytes: more than ever waits for anyone.
    let long = format!("{WHOLE}{}", "word ".repeat(20_000));
    stage.strict.push(Say::text(long.clone()).ending(Ending::PausedAfter(4)));
    let handle = stage.start();
    let heard = stage.listen(handle.id());
    heard.until(handle.id(), "main", HALF);
    let mut stalled = BufReader::new(UnixStream::connect(&sockets(&stage.env)[0]).unwrap());
    let mut first = String::new();
    stalled.read_line(&mut first).unwrap();
    assert!(first.contains(HALF), "{first}");
    stage.strict.go_on();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let mut rest = String::new();
    stalled.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("\"recorded\""), "it heard all of {} bytes", rest.len());
    // One that reads hears all of it.
    heard.until_recorded();
}

#[test]
fn the_socket_is_the_users_alone_and_goes_with_the_run() {
    let env = TestEnv::new();
    let handle = env.start(ASKS);
    let open = asked(&mut handle.events());
    let folder = env.state().join("live");
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let made = sockets(&env);
    assert_eq!((mode(&folder), made.len()), (0o700, 1));
    assert_eq!(mode(&made[0]), 0o600);
    handle.answer(&open.gate.id, stepwell::model::Answer::ALLOW_ONCE, "ann@desk").unwrap();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert!(sockets(&env).is_empty());
}

#[test]
fn a_folder_that_others_may_enter_is_not_used() {
    let env = TestEnv::new();
    let folder = env.state().join("live");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let handle = env.start("- {text: Done.}\n");
    assert_eq!(handle.join().unwrap().status, Status::Success);
    let handle = env.start(ASKS);
    let _ = asked(&mut handle.events());
    assert!(sockets(&env).is_empty());
}

#[test]
fn a_run_whose_session_is_not_saved_has_no_socket() {
    let env = TestEnv::configured("[sessions]\nauto_save = false\n");
    let handle = env.start(ASKS);
    let _ = asked(&mut handle.events());
    assert!(sockets(&env).is_empty());
}

#[test]
fn a_socket_that_a_crash_left_is_in_nobodys_way_and_the_next_run_is_heard() {
    let stage = Stage::new();
    stage.strict.push(halved());
    let handle = stage.start();
    let id = handle.id().clone();
    let heard = stage.listen(&id);
    heard.until(&id, "main", HALF);
    let path = sockets(&stage.env)[0].clone();
    handle.interrupt();
    assert_eq!(handle.join().unwrap().status, Status::Interrupted);
    assert!(!path.exists());
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    stage.strict.push(halved());
    let request = stage.env.resume(&id);
    let handle = stage.env.runtime.resume(request).unwrap();
    // The same listener: nobody had to tell it.
    heard.listening.nudge();
    heard.until(&id, "main", HALF);
    stage.strict.go_on();
    heard.until_recorded();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert!(!path.exists());
}

#[test]
fn a_subagent_is_heard_by_its_own_name_and_with_the_run_that_it_belongs_to() {
    let stage = Stage::new();
    let arguments = r#"{"task": "look around", "agent": "explore"}"#;
    stage.strict.push(Say::text("I ask.").calling("call_1", "dispatch_subagent", &[arguments]));
    stage.strict.push(halved());
    stage.strict.push(Say::text("Done."));
    let handle = stage.start();
    let heard = stage.listen(handle.id());
    let child = loop {
        let piece = heard.next();
        if piece.session != *handle.id() {
            break piece.session;
        }
    };
    let well = stage.env.runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
    let origin = well.info(&child).unwrap().head.origin;
    assert!(matches!(&origin, Origin::Subagent { parent } if parent == handle.id()), "{origin:?}");
    // By its own name only its own words are heard.
    let below = stage.listen(&child);
    below.until(&child, "main", HALF);
    stage.strict.go_on();
    below.until_recorded();
    heard.until(handle.id(), "main", "Done.");
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert!(below.pieces.try_iter().all(|piece| piece.session == child));
}

const SPEC: &str = "
version: 0
name: letter
runtime: {provider: ollama, model_id: fake}
agents:
  writer: {prompt: Write.}
pattern: {type: chain, config: {steps: [{agent: writer, input: Draft it.}]}}
";

#[test]
fn the_agents_of_a_flow_are_heard_by_their_lanes() {
    let stage = Stage::new();
    stage.strict.push(halved());
    let request = stage.env.flow(SPEC, "[]");
    let request = stepwell_runtime::FlowRequest { options: Stage::options(), ..request };
    let handle = stage.env.runtime.start_flow(request).unwrap();
    let heard = stage.listen(handle.id());
    heard.until(handle.id(), "writer", HALF);
    let attached = stage.env.elsewhere().attach(handle.id(), Seq::FIRST).unwrap();
    let mut events = attached.events();
    let lane: Lane = "writer".parse().unwrap();
    let within = events.find_map(|event| match event {
        RunEvent::Within { lane, event, .. } => Some((lane, event)),
        _ => None,
    });
    let (whose, event) = within.unwrap();
    assert!(matches!(&*event, RunEvent::Delta(Delta::Text(text)) if text == HALF), "{event:?}");
    assert_eq!(whose, lane);
    stage.strict.go_on();
    assert_eq!(handle.join().unwrap().status, Status::Success);
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_reached_all_the_same() {
    let mut stage = Stage::new();
    let host = &stage.env.runtime.workspace().host;
    let long = stage.env.state().join("long ".repeat(40)).join("folder ".repeat(30));
    let host = stepwell_workspace::Host { runtime: Some(long.clone()), ..host.clone() };
    let wanted = stepwell_workspace::Wanted { folder: host.folder.clone(), ..Default::default() };
    let nobody = stepwell_workspace::Notices::to_nobody();
    let workspace = stepwell_workspace::Workspace::locate(host, wanted, nobody).unwrap();
    stage.env.runtime = stepwell_runtime::Runtime::new(workspace);
    stage.strict.push(halved());
    let handle = stage.start();
    let well = stage.env.runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
    let (to, pieces) = mpsc::channel();
    let tell = move |piece| drop(to.send(piece));
    let listening = listen(stage.env.runtime.workspace(), &well, handle.id(), tell);
    let heard = Heard { pieces, listening };
    heard.until(handle.id(), "main", HALF);
    assert_eq!(std::fs::read_dir(&long).unwrap().count(), 1);
    stage.strict.go_on();
    assert_eq!(handle.join().unwrap().status, Status::Success);
    assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0);
}
