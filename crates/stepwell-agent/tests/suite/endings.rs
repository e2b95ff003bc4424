//! How runs end: with an answer, or with the reason why there is none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use stepwell::log::Redactor;
use stepwell::model::{GateAnswered, ModelCall, Part, Role, StatusChanged, Task, Text, Usage};
use stepwell::store::Span;
use stepwell::{Event, Message, Session, Status, Stepwell, StopReason};
use stepwell_agent::context::tokens::Family;
use stepwell_agent::context::{Context, Policy, Summariser};
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::provider::remote::{Endpoint, Key, Protocol, Remote};
use stepwell_agent::provider::{
    Answer, CallError, Delta, Ended as How, Fault, NOT_DONE, Provider, Purpose, Request,
};
use stepwell_agent::run::{
    Ended, EventSink, FrontEnd, Keeping, Notice, Patience, Run, RunEvent, Setup,
};
use stepwell_agent::tool::{self, ToolEnv};
use stepwell_strict::{Rules as StrictRules, Say, Strict, Tokens};

type Said = Result<Answer, CallError>;

type Answering = dyn Fn(usize, &Request<'_>) -> Said + Send + Sync;

/// A model whose answers a function computes, with a count of its requests.
struct Model {
    answer: Box<Answering>,
    asked: AtomicUsize,
    /// The last message of each request.
    last: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Model")
    }
}

impl Model {
    fn new(answer: impl Fn(usize, &Request<'_>) -> Said + Send + Sync + 'static) -> Arc<Self> {
        let (asked, last) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { answer: Box::new(answer), asked, last })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Provider for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Said> {
        stepwell::View::check(request.messages).expect("the conversation is valid");
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        self.last.lock().unwrap().push(request.messages.last().unwrap().text());
        let answer = (self.answer)(n, &request);
        Box::pin(async move { answer })
    }
}

fn says(parts: Vec<Part>) -> Said {
    let message = Message::new(Role::Assistant, parts);
    Ok(Answer { message, usage: Some(Usage::default()), cost: None, ended: How::Complete })
}

fn text(text: &str) -> Said {
    says(vec![Part::text(text)])
}

fn runs(command: &str) -> Said {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let message = Message::assistant("I run it.").calling("c", "run_command", &arguments);
    says(message.parts)
}

fn too_long() -> Said {
    let (provider, what) = ("model".to_owned(), "too long".to_owned());
    Err(CallError { provider, what, fault: Fault::ContextFull })
}

/// A person who gives the same answer to every question, and collects the events.
#[derive(Default)]
pub(crate) struct Person {
    denies: bool,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Person {
    /// A front end for the person, who answers through the log.
    fn front(&self, session: &Session) -> FrontEnd {
        let (notices, denies, well) =
            (Arc::clone(&self.notices), self.denies, session.well().clone());
        let events = EventSink::to(move |event| match event {
            RunEvent::Notice(notice) => notices.lock().unwrap().push(notice),
            RunEvent::Approval(open) => {
                let answer = match denies {
                    true => stepwell::model::Answer::deny("not here"),
                    false => stepwell::model::Answer::ALLOW_ONCE,
                };
                let answer = GateAnswered::new(open.gate.id.as_str(), answer, "ann@desk");
                well.answer(&open.session, answer.having_seen(open.seq)).unwrap();
            }
            _ => {}
        });
        FrontEnd { events, patience: Patience::Wait, ..FrontEnd::default() }
    }

    fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }
}

/// A folder with a session.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    session: Session,
}

pub(crate) fn scene() -> Scene {
    let well = Stepwell::in_memory();
    let session = well.create(well.draft("t")).unwrap();
    Scene { folder: tempfile::tempdir().unwrap(), session }
}

impl Scene {
    pub(crate) fn setup(&self, provider: Arc<dyn Provider>) -> Setup {
        let tools = tool::builtin();
        let effects = tools.iter().map(|it| (it.spec().name.clone(), it.effect())).collect();
        let limits = Limits { steps: Some(70), ..Limits::default() };
        Setup {
            provider,
            model: "model".to_owned(),
            cost: Arc::new(|_| None),
            tools,
            place: ToolEnv::new(std::fs::canonicalize(self.folder.path()).unwrap()),
            rules: Rules { mode: Mode::ConfirmSensitive, retry_unsafe: false, effects, limits },
            redactor: Redactor::new([]),
            max_output: 1_000,
            timeout: None,
            dry_run: false,
            dispatcher: None,
            context: Context::default(),
            keeping: Keeping::default(),
        }
    }

    pub(crate) async fn run(&self, setup: &Setup, person: &Person, words: Option<&str>) -> Ended {
        let mut run = Run::new(&self.session, setup, person.front(&self.session)).unwrap();
        if let Some(words) = words {
            run.say(words).unwrap();
        }
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        run.drive(interrupt).await.unwrap()
    }

    fn events(&self) -> Vec<Event> {
        let events = self.session.events(Span::ALL).unwrap().intact(self.session.id()).unwrap();
        events.into_iter().map(|event| event.event).collect()
    }
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_again() {
    let thought = Part::Thinking(Text { text: "hm".to_owned(), opaque: None });
    for nothing in [vec![], vec![Part::text(" \n")], vec![thought]] {
        let scene = scene();
        let model =
            Model::new(move |n, _| if n < 2 { says(nothing.clone()) } else { text("Done.") });
        let ended = scene.run(&scene.setup(model.clone()), &Person::default(), Some("go")).await;
        assert_eq!((ended.status, ended.output.as_str()), (Status::Success, "Done."));
        assert_eq!(model.asked(), 3);
        assert!(model.last.lock().unwrap()[1].contains("empty"));
    }
}

#[tokio::test]
async fn a_model_that_only_says_nothing_fails_the_run_and_a_resume_asks_again() {
    let scene = scene();
    let model = Model::new(|_, _| says(vec![]));
    let ended = scene.run(&scene.setup(model.clone()), &Person::default(), Some("go")).await;
    assert_eq!((ended.status, ended.reason), (Status::Failed, StopReason::LlmError));
    assert!(ended.error.unwrap().what.contains("3 answers in a row were empty"));
    assert_eq!(model.asked(), 3);
    let model = Model::new(|_, _| text("Done."));
    let ended = scene.run(&scene.setup(model.clone()), &Person::default(), None).await;
    assert_eq!((ended.status, model.asked()), (Status::Success, 1));
}

#[tokio::test]
async fn a_run_in_which_nothing_was_allowed_is_not_a_success() {
    let scene = scene();
    let model = Model::new(|n, _| if n == 0 { runs("touch x") } else { text("I could not.") });
    let person = Person { denies: true, ..Person::default() };
    let ended = scene.run(&scene.setup(model), &person, Some("go")).await;
    assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::LlmDone));
    // Asked again, the run is done if the model says so, and not if the model repeats a denied
    // call.
    for (wants, status) in [(false, Status::Success), (true, Status::Partial)] {
        let scene = self::scene();
        let first = Model::new(|n, _| if n == 0 { runs("touch x") } else { text("I could not.") });
        scene.run(&scene.setup(first), &person, Some("go")).await;
        let model = Model::new(move |n, _| match wants && n == 0 {
            true => runs("touch y"),
            false => text("Then it is done."),
        });
        let setup = scene.setup(model);
        let mut run = Run::new(&scene.session, &setup, person.front(&scene.session)).unwrap();
        run.go_on().unwrap();
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        assert_eq!(run.drive(interrupt).await.unwrap().status, status, "wants {wants}");
    }
    // One allowed call is enough; so is no call at all.
    let model = Model::new(|n, _| if n == 0 { runs("true") } else { text("Done.") });
    let ended = scene.run(&scene.setup(model), &Person::default(), Some("again")).await;
    assert_eq!(ended.status, Status::Success);
    let model = Model::new(|_, _| text("It is so."));
    let ended = scene.run(&scene.setup(model), &person, Some("is it?")).await;
    assert_eq!(ended.status, Status::Success);
}

#[tokio::test]
async fn nobody_is_asked_about_what_is_refused_whatever_they_say() {
    let scene = scene();
    std::fs::create_dir(scene.folder.path().join(".git")).unwrap();
    let arguments = r#"{"path":".git/config","content":"[core]"}"#;
    let model = Model::new(move |n, _| match n {
        0 => says(Message::assistant("").calling("c1", "write_file", arguments).parts),
        _ => text("I could not."),
    });
    scene.run(&scene.setup(model), &Person::default(), Some("go")).await;
    let log = scene.session.events(Span::ALL).unwrap().events;
    assert!(!log.iter().any(|it| matches!(it.event, Event::Gate(_))), "{log:?}");
    let told = log.iter().any(|it| {
        matches!(&it.event, Event::Message(it) if it.results().any(|it| it.text.contains("one of git's own files")))
    });
    assert!(told, "{log:?}");
}

#[tokio::test]
async fn work_that_was_cut_off_is_not_done_because_the_model_spoke_last() {
    let stopped = |status, reason| Event::from(StatusChanged { status, reason, error: None });
    let open = Task { id: "1".to_owned(), ..Task::default() };
    let cut_off = [
        vec![stopped(Status::Partial, Some(StopReason::BudgetExceeded))],
        vec![stopped(Status::Interrupted, None)],
        vec![Event::from(open), stopped(Status::Success, Some(StopReason::LlmDone))],
    ];
    for events in cut_off {
        let scene = scene();
        let said = [Message::user("do it").into(), Message::assistant("I begin.").into()];
        scene.session.append_all(said.into()).unwrap();
        let events = events.into_iter().chain([stopped(Status::Running, None)]);
        scene.session.append_all(events.map(Into::into).collect()).unwrap();
        let model = Model::new(|_, _| text("Done."));
        let setup = scene.setup(model.clone());
        let mut run = Run::new(&scene.session, &setup, FrontEnd::nobody()).unwrap();
        assert!(run.is_over() && run.is_unfinished());
        run.go_on().unwrap();
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        let ended = run.drive(interrupt).await.unwrap();
        assert_eq!((ended.status, model.asked()), (Status::Success, 1));
        assert_eq!(*model.last.lock().unwrap(), [NOT_DONE]);
    }
    // A session that ended as done stays done; so does one that crashed after its last answer.
    for status in
        [(Status::Success, StopReason::LlmDone), (Status::Interrupted, StopReason::Crashed)]
    {
        let scene = scene();
        let said = [Message::user("do it").into(), Message::assistant("Done.").into()];
        scene.session.append_all(said.into()).unwrap();
        scene.session.append(stopped(status.0, Some(status.1))).unwrap();
        let setup = scene.setup(Model::new(|_, _| text("more")));
        assert!(!Run::new(&scene.session, &setup, FrontEnd::nobody()).unwrap().is_unfinished());
    }
}

/// How often a command ran, with a model whose context is too small for its result.
async fn repeated(length: Option<u64>, result: &str) -> (usize, Ended, Vec<Event>) {
    repeated_within(1_200, length, result).await
}

/// The same, for a context of this many bytes.
async fn repeated_within(
    bytes: usize,
    length: Option<u64>,
    result: &str,
) -> (usize, Ended, Vec<Event>) {
    let scene = scene();
    std::fs::write(scene.folder.path().join("notes.txt"), result).unwrap();
    let size = |request: &Request<'_>| serde_json::to_string(request.messages).unwrap().len();
    // Fits the user's message, and little more.
    let model = Model::new(move |_, request| match request.turn.purpose {
        Purpose::Summary => text("## Done\n- a command ran\n"),
        Purpose::Answer if size(request) > bytes => too_long(),
        Purpose::Answer => runs("echo x >> ran.txt; cat notes.txt"),
    });
    let summariser = Summariser {
        provider: model.clone(),
        model: "model".to_owned(),
        cost: Arc::new(|_| None),
        length: None,
        family: Family::Other,
    };
    let policy = Policy { buffer: 0, keep: 100, ..Policy::default() };
    let mut setup = scene.setup(model.clone());
    setup.context = Context { length, policy, summariser: Some(summariser), ..Context::default() };
    setup.rules.mode = Mode::Yolo;
    setup.rules.limits.steps = Some(40);
    let ended = scene.run(&setup, &Person::default(), Some(&"go on ".repeat(120))).await;
    let ran = std::fs::read_to_string(scene.folder.path().join("ran.txt")).unwrap();
    (ran.lines().count(), ended, scene.events())
}

#[tokio::test]
async fn a_command_whose_result_does_not_fit_is_not_run_again_and_again() {
    for length in [None, Some(2_400)] {
        let (times, ended, events) = repeated(length, &"a line of the result\n".repeat(400)).await;
        assert!(times <= 3, "with {length:?} it ran {times} times");
        assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::ContextFull));
        // The model knows that the command ran.
        let told = events.iter().any(|event| match event {
            Event::Compacted(compacted) => {
                compacted.summary.as_ref().is_some_and(|it| it.contains("run_command echo x"))
            }
            _ => false,
        });
        assert!(told, "{events:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_only_repeats_itself_ends_although_each_call_has_an_id_of_its_own() {
    for length in [None, Some(200_000)] {
        let (times, ended, _) = repeated_within(2_000, length, "a short result").await;
        assert!(times <= 10, "with {length:?} it ran {times} times");
        assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::ContextFull));
    }
}

#[tokio::test]
async fn a_repeating_request_is_known_again_whatever_its_provider_counts() {
    let same = |_: usize, _: u64| 2_500;
    let less = |_: usize, _: u64| 100;
    let thirds = |_: usize, bytes: u64| bytes / 3;
    let moving = |n: usize, bytes: u64| bytes / 3 + 37 * (n as u64 % 5);
    let counts: [fn(usize, u64) -> u64; 4] = [same, less, thirds, moving];
    for (which, count) in counts.into_iter().enumerate() {
        let scene = scene();
        let model = Model::new(move |n, request| {
            let mut answer = match request.turn.purpose {
                Purpose::Summary => text("## Done\n- a command ran\n")?,
                Purpose::Answer => runs("echo x >> ran.txt; seq 1 20000")?,
            };
            let bytes = serde_json::to_string(request.messages).unwrap().len() as u64;
            answer.usage = Some(Usage { input: count(n, bytes), output: 10, ..Usage::default() });
            let told = ModelCall { response_id: Some(format!("r{n}")), ..ModelCall::default() };
            answer.message.call = Some(Box::new(told));
            Ok(answer)
        });
        let mut setup = scene.setup(model.clone());
        let summariser = Summariser {
            provider: model.clone(),
            model: "model".to_owned(),
            cost: Arc::new(|_| None),
            length: Some(6_000),
            family: Family::Other,
        };
        setup.context =
            Context { length: Some(6_000), summariser: Some(summariser), ..Context::default() };
        setup.rules.mode = Mode::Yolo;
        setup.rules.limits.steps = Some(40);
        let ended = scene.run(&setup, &Person::default(), Some("count")).await;
        let ran = std::fs::read_to_string(scene.folder.path().join("ran.txt")).unwrap();
        assert!(ran.lines().count() <= 3, "{which}: it ran {} times", ran.lines().count());
        assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::ContextFull));
    }
}

#[tokio::test]
async fn a_refusal_does_not_teach_how_a_provider_counts() {
    let long = "a line of the result\n".repeat(400);
    let (_, ended, _) = repeated(Some(200_000), &long).await;
    assert_eq!(ended.calibration, Context::default().calibration);
}

#[tokio::test]
async fn a_result_that_is_too_large_is_cut_before_it_is_dropped() {
    let scene = scene();
    std::fs::write(
        scene.folder.path().join("big.txt"),
        "needle 7\n".to_owned() + &"x y\n".repeat(3_000),
    )
    .unwrap();
    let size = |request: &Request<'_>| serde_json::to_string(request.messages).unwrap().len();
    let model = Model::new(move |n, request| match size(request) > 4_000 {
        true => too_long(),
        false if n == 0 => runs("cat big.txt"),
        false if request.messages.iter().any(|it| it.text().contains("needle 7")) => text("Done."),
        false => text("I do not know."),
    });
    let mut setup = scene.setup(model.clone());
    setup.rules.mode = Mode::Yolo;
    let ended = scene.run(&setup, &Person::default(), Some("find the needle")).await;
    assert_eq!((ended.status, ended.output.as_str()), (Status::Success, "Done."));
}

#[tokio::test]
async fn a_result_that_a_summary_takes_out_before_it_was_seen_is_cut_into_it() {
    let scene = scene();
    let big = "needle 7\n".to_owned() + &"some words of a line\n".repeat(6_000);
    std::fs::write(scene.folder.path().join("big.txt"), big).unwrap();
    let model = Model::new(move |n, request| match request.tools.is_empty() {
        true => text("## Goal\n- find the needle"),
        false if n == 0 => runs("cat big.txt"),
        false if request.messages.iter().any(|it| it.text().contains("needle 7")) => text("Done."),
        false => text("I do not know."),
    });
    let mut setup = scene.setup(model.clone());
    setup.rules.mode = Mode::Yolo;
    setup.context.length = Some(9_000);
    let ended = scene.run(&setup, &Person::default(), Some("find the needle")).await;
    assert_eq!((ended.status, ended.output.as_str()), (Status::Success, "Done."));
}

async fn at(strict: &Strict, length: Option<u64>) -> (Ended, Vec<u64>, Vec<Notice>) {
    let endpoint = Endpoint {
        provider: "local".to_owned(),
        protocol: Protocol::OpenAi,
        base_url: Some(strict.base_url()),
        key: Some(Key::new(strict.key())),
        timeout: std::time::Duration::from_secs(20),
        proxy: None,
    };
    let scene = scene();
    let mut setup = scene.setup(Arc::new(Remote::new(endpoint).unwrap()));
    setup.max_output = 8_192;
    setup.context.length = length;
    let person = Person::default();
    let ended = scene.run(&setup, &person, Some("go")).await;
    let asked = strict.asked();
    let most = asked.iter().map(|asked| asked.body["max_tokens"].as_u64().unwrap()).collect();
    (ended, most, person.notices())
}

#[tokio::test]
async fn an_answer_is_asked_for_that_fits_beside_the_conversation() {
    let rules = || StrictRules { context_with_answer: Some(8_192), ..StrictRules::default() };
    let strict = Strict::start(rules()).await.unwrap();
    strict.push(Say::text("Done.").using(Tokens { input: 1_500, output: 5, ..Tokens::default() }));
    let (ended, most, notices) = at(&strict, Some(8_192)).await;
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    assert!(most.len() == 1 && most[0] < 8_192 && most[0] > 2_000, "{most:?}");
    assert!(notices.is_empty(), "{notices:?}");
    // With an unknown context length, the request shrinks until it fits.
    let strict = Strict::start(rules()).await.unwrap();
    strict.push(Say::text("Done.").using(Tokens { input: 1_500, output: 5, ..Tokens::default() }));
    let (ended, most, notices) = at(&strict, Some(128_000)).await;
    assert_eq!(ended.status, Status::Success, "{:?}", ended.error);
    assert_eq!(most, [8_192, 4_096]);
    let provider = "local".to_owned();
    assert_eq!(notices[0], Notice::ShorterAnswers { provider, tokens: 4_096 });
}
