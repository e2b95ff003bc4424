//! Runs with a growing conversation: they continue, and keep what must not be forgotten.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use stepwell::log::Redactor;
use stepwell::model::{Compacted, Edited, Money, Phase, PhaseSet, Role};
use stepwell::store::Span;
use stepwell::{Event, Lane, Message, Recorded, Session, Status, Stepwell, StopReason};
use stepwell_agent::context::plan::Why;
use stepwell_agent::context::tokens::{Calibration, Family};
use stepwell_agent::context::{Context, Policy, Summariser};
use stepwell_agent::machine::{Limits, Rules};
use stepwell_agent::permission::Mode;
use stepwell_agent::price::Cost;
use stepwell_agent::provider::remote::{Endpoint, Key, Protocol, Remote};
use stepwell_agent::provider::script::{Script, Scripted};
use stepwell_agent::provider::{Answer, CallError, Delta, Fault, Provider, Purpose, Request};
use stepwell_agent::run::{Ended, EventSink, FrontEnd, Keeping, Run, RunEvent, Setup, Shrunk};
use stepwell_agent::tool::{self, ToolEnv};
use stepwell_strict::{Say, Strict};
use stepwell_testkit::model::{Moment, Watched};

const GOAL: &str = "Read every file in turn; the goal, word for word: halcyon 7.";

/// A model that checks its requests before it answers.
struct Witness {
    script: Script,
    /// Texts that every request must contain, besides the original one.
    must_hold: Mutex<Vec<String>>,
    /// The largest request, at four bytes a token.
    largest: AtomicU64,
    refused: AtomicUsize,
    summaries: AtomicUsize,
}

impl Witness {
    fn new(script: &str) -> Arc<Self> {
        Arc::new(Self {
            script: Script::parse(script).unwrap(),
            must_hold: Mutex::default(),
            largest: AtomicU64::new(0),
            refused: AtomicUsize::new(0),
            summaries: AtomicUsize::new(0),
        })
    }
}

impl Witness {
    fn model(self: &Arc<Self>) -> Arc<Watched> {
        let witness = Arc::clone(self);
        let model = Scripted::new(self.script.clone());
        Arc::new(Watched::new(model, move |moment| witness.look(moment)))
    }

    fn look(&self, moment: Moment<'_>) {
        let request = match moment {
            Moment::Asked(request) => request,
            Moment::Answered(Err(error)) if error.fault == Fault::ContextFull => {
                self.refused.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Moment::Answered(_) => return,
        };
        let text = serde_json::to_string(request.messages).unwrap();
        if request.turn.purpose == Purpose::Answer {
            assert!(text.contains(GOAL), "the goal is gone");
            for held in &*self.must_hold.lock().unwrap() {
                assert!(text.contains(held), "{held:?} is gone");
            }
        } else {
            self.summaries.fetch_add(1, Ordering::SeqCst);
        }
        self.largest.fetch_max(text.len() as u64 / 4, Ordering::SeqCst);
    }
}

/// Collects the compactions with their reasons.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<(Compacted, Why)>>>);

impl Notes {
    fn front(&self) -> FrontEnd {
        let notes = Arc::clone(&self.0);
        FrontEnd::watching(EventSink::to(move |event| {
            if let RunEvent::Compacted { compacted, why } = event {
                notes.lock().unwrap().push((*compacted, why));
            }
        }))
    }

    fn all(&self) -> Vec<(Compacted, Why)> {
        self.0.lock().unwrap().clone()
    }
}

/// A folder to run in.
struct Workshop {
    folder: tempfile::TempDir,
    well: Stepwell,
}

fn place() -> Workshop {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "a line of a file that is read\n".repeat(60))
        .unwrap();
    Workshop { folder, well: Stepwell::in_memory() }
}

impl Workshop {
    fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    fn session(&self) -> Session {
        self.well.create(self.well.draft("t")).unwrap()
    }

    fn setup(&self, model: &Arc<Witness>, policy: Policy) -> Setup {
        let prices = Scripted::new(model.script.clone());
        let length = prices.context();
        let cost: Cost = Arc::new(move |usage| Some(prices.cost(usage)));
        let model = model.model();
        let summariser = Summariser {
            provider: model.clone(),
            model: "script".to_owned(),
            cost: Arc::clone(&cost),
            length,
            family: Family::Other,
        };
        let context =
            Context { length, policy, summariser: Some(summariser), ..Context::default() };
        let tools = tool::builtin();
        let effects = tools.iter().map(|it| (it.spec().name.clone(), it.effect())).collect();
        Setup {
            provider: model,
            model: "script".to_owned(),
            cost,
            tools,
            place: ToolEnv::new(self.root()),
            rules: Rules {
                mode: Mode::Yolo,
                retry_unsafe: false,
                effects,
                limits: Limits::default(),
            },
            redactor: Redactor::new([]),
            max_output: 1_000,
            timeout: None,
            dry_run: false,
            dispatcher: None,
            context,
            keeping: Keeping::default(),
        }
    }
}

/// This many steps that read a file, then the end.
fn steps(n: usize, front: &str) -> String {
    let mut script = format!("{front}answers:\n");
    for n in 1..=n {
        script.push_str(&format!(
            "  - {{text: 'Step {n}, in a few words.', calls: [{{tool: read_file, arguments: {{path: notes.txt}}}}]}}\n"
        ));
    }
    script + "  - {text: Done.}\n"
}

async fn drive(session: &mut Session, setup: &Setup, say: Option<&str>) -> (Ended, Notes) {
    let notes = Notes::default();
    let mut run = Run::new(session, setup, notes.front()).unwrap();
    if let Some(text) = say {
        run.say(text).unwrap();
    }
    let (_stop, interrupt) = tokio::sync::watch::channel(false);
    let ended = run.drive(interrupt).await.unwrap();
    (ended, notes)
}

fn events(session: &Session) -> Vec<Recorded> {
    session.events(Span::ALL).unwrap().intact(session.id()).unwrap()
}

fn is_truncated(session: &Session) -> bool {
    session.info().unwrap().head.facts.truncated == Some(true)
}

#[tokio::test]
async fn a_run_of_a_thousand_steps_stays_in_its_context_and_forgets_nothing_pinned() {
    let place = place();
    let fact = "FACT: the number of the harbour is 48213-KESTREL.";
    let script = steps(1_000, "context: 32000\n").replace("Step 3, in a few words.", fact);
    let model = Witness::new(&script);
    let mut setup = place.setup(&model, Policy::default());
    let mut session = place.session();
    setup.rules.limits.steps = Some(3);
    drive(&mut session, &setup, Some(GOAL)).await;
    let stated = events(&session).into_iter().find(
        |event| matches!(&event.event, Event::Message(it) if it.text().contains("48213-KESTREL")),
    );
    let seq = stated.unwrap().seq;
    session.append(Edited { pin_messages: [seq].into(), ..Edited::default() }).unwrap();
    model.must_hold.lock().unwrap().push(fact.to_owned());

    setup.rules.limits.steps = None;
    let (ended, notes) = drive(&mut session, &setup, None).await;
    assert_eq!((ended.status, ended.reason), (Status::Success, StopReason::LlmDone));
    assert_eq!(session.info().unwrap().head.steps, 1_001);
    assert_eq!(model.refused.load(Ordering::SeqCst), 0);
    let largest = model.largest.load(Ordering::SeqCst);
    assert!((8_000..32_000).contains(&largest), "{largest}");
    // About 500 tokens a step, and room for some thousands.
    assert!((20..400).contains(&notes.all().len()), "{}", notes.all().len());
    for (compacted, why) in &notes.all() {
        assert_eq!(*why, Why::Near);
        assert!(!compacted.is_truncation(), "{compacted:?}");
        assert!(compacted.tokens_after < compacted.tokens_before, "{compacted:?}");
    }
    assert!(!is_truncated(&session));
    // The log's view equals the model's last conversation.
    let view = session.view(&Lane::main()).unwrap();
    assert!(view.messages.len() < 100);
    assert!(view.messages.iter().any(|shown| shown.message.text() == fact));
}

/// Pins the message of a model's third answer.
fn pin_third(well: &Stepwell, session: &stepwell::SessionId) {
    let events = well.store().events(session, Span::ALL).unwrap().events;
    let third = |event: &&Recorded| matches!(&event.event, Event::Message(it) if it.text().starts_with("Step 3,"));
    let pin_messages = [events.iter().find(third).unwrap().seq].into();
    well.edit(session, Edited { pin_messages, ..Edited::default() }).unwrap();
}

#[tokio::test]
async fn a_pin_reaches_a_run_that_is_under_way() {
    let place = place();
    let model = Witness::new(&steps(40, "context: 12000\n"));
    let policy = Policy { buffer: 5_000, keep: 800, ..Policy::default() };
    let mut setup = place.setup(&model, policy);
    let mut session = place.session();
    let (well, id) = (place.well.clone(), session.id().clone());
    let answers = Scripted::new(model.script.clone());
    setup.provider = Arc::new(Watched::new(answers, move |moment| {
        if let Moment::Asked(Request { turn, .. }) = moment
            && turn.purpose == Purpose::Answer
            && turn.answers == 5
        {
            pin_third(&well, &id);
            model.must_hold.lock().unwrap().push("Step 3, in a few words.".to_owned());
        }
        model.look(moment);
    }));
    let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    assert_eq!(ended.status, Status::Success);
    assert!(notes.all().len() >= 2);
}

#[tokio::test]
async fn a_provider_that_says_no_is_asked_again_with_less() {
    let place = place();
    let model = Witness::new(&steps(20, "context: 3000\n"));
    let mut setup = place.setup(&model, Policy::default());
    // The context length is unknown to the run.
    setup.context.length = None;
    let mut session = place.session();
    let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    assert_eq!(ended.status, Status::Success);
    assert!(model.refused.load(Ordering::SeqCst) >= 1);
    assert!(notes.all().iter().all(|(_, why)| *why == Why::Refused));
    assert_eq!(session.info().unwrap().head.errors, 0);
    // Without automatic compaction the run stops.
    let model = Witness::new(&steps(20, "context: 3000\n"));
    let mut setup = place.setup(&model, Policy { auto: false, ..Policy::default() });
    setup.context.length = None;
    let (ended, notes) = drive(&mut place.session(), &setup, Some(GOAL)).await;
    assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::ContextFull));
    assert!(notes.all().is_empty());
}

#[tokio::test]
async fn what_is_protected_and_does_not_fit_stops_the_run() {
    let place = place();
    let model = Witness::new(&steps(20, "context: 3000\n"));
    let setup = place.setup(&model, Policy::default());
    let long = format!("{GOAL} {}", "and so on ".repeat(2_000));
    let mut session = place.session();
    let (ended, notes) = drive(&mut session, &setup, Some(&long)).await;
    assert_eq!((ended.status, ended.reason), (Status::Partial, StopReason::ContextFull));
    assert!(notes.all().is_empty());
    assert_eq!(session.info().unwrap().head.errors, 1);
}

/// Runs twelve steps in a small context with one scripted summary.
async fn summarised(line: &str) -> (Session, Ended, Vec<(Compacted, Why)>) {
    let place = place();
    let front =
        format!("prices: {{input: '3', output: '15'}}\ncontext: 8000\nsummaries: [{line}]\n");
    let model = Witness::new(&steps(12, &front));
    let policy = Policy { buffer: 4_000, keep: 800, ..Policy::default() };
    let setup = place.setup(&model, policy);
    let mut session = place.session();
    let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    (session, ended, notes.all())
}

#[tokio::test]
async fn a_summary_stands_in_for_what_goes_and_is_paid_for() {
    let line = "{text: \"## Goal\\n- read\\n## Files\\n- notes.txt: read\", \
                usage: {input: 1000, output: 100}}";
    let (session, ended, notes) = summarised(line).await;
    assert_eq!(ended.status, Status::Success);
    let (first, why) = &notes[0];
    assert_eq!(*why, Why::Near);
    assert_eq!((first.model.as_deref(), first.fault.as_deref()), (Some("script"), None));
    let summary = first.summary.as_deref().unwrap();
    assert!(summary.contains("## Files\n- notes.txt: read"), "{summary}");
    assert!(summary.contains("## Tools used\n- read_file notes.txt: done"), "{summary}");
    assert_eq!(first.cost, "0.0045".parse::<Money>().ok());
    let spent = session.info().unwrap().head.spent;
    assert_eq!(spent.cost, "0.0045".parse::<Money>().unwrap());
    assert!(!is_truncated(&session));
    // A later summary keeps the content of this one.
    let (last, _) = notes.last().unwrap();
    assert!(notes.len() > 1 && last.summary.as_deref().unwrap().contains("- notes.txt: read"));
}

#[tokio::test]
async fn without_a_summary_worth_having_old_messages_are_left_out_and_it_says_so() {
    let long = "word ".repeat(3_000);
    let usage = "usage: {input: 1000, output: 100}";
    for (line, fault) in [
        (format!("{{text: '', {usage}}}"), "was empty"),
        (format!("{{text: 'I will not.', {usage}}}"), "none of the headings"),
        (format!("{{text: \"## Goal\\n- x\", cut_short: true, {usage}}}"), "broke off"),
        (format!("{{text: \"## Goal\\n- {long}\", {usage}}}"), "larger than the room"),
        ("{text: '', fail: unavailable}".to_owned(), "summary 1 fails: unavailable"),
        ("{text: '', fail: auth}".to_owned(), "summary 1 fails: auth"),
    ] {
        let (session, ended, notes) = summarised(&line).await;
        assert_eq!(ended.status, Status::Success, "{fault}");
        let (first, _) = &notes[0];
        assert!(
            first.is_truncation() && first.fault.as_deref().unwrap().contains(fault),
            "{first:?}"
        );
        assert_eq!(first.summary, None);
        assert!(first.tokens_after < first.tokens_before);
        assert!(is_truncated(&session), "{fault}");
        // A rejected summary was paid for, too.
        assert_eq!(first.usage.is_some(), !line.contains("fail"), "{fault}");
    }
}

#[tokio::test]
async fn a_summary_that_the_budget_does_not_allow_is_not_asked_for() {
    for price in ["1".parse::<Money>().ok(), None] {
        let place = place();
        let model = Witness::new(&steps(12, "context: 8000\n"));
        let policy = Policy { buffer: 4_000, keep: 800, ..Policy::default() };
        let mut setup = place.setup(&model, policy);
        setup.rules.limits.budget = "0.5".parse().ok();
        setup.context.summariser.as_mut().unwrap().cost = Arc::new(move |_| price);
        let mut session = place.session();
        let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
        assert_eq!(ended.status, Status::Success);
        assert_eq!(model.summaries.load(Ordering::SeqCst), 0);
        let (first, _) = &notes.all()[0];
        assert_eq!((&first.model, &first.usage), (&None, &None));
        assert!(first.fault.as_deref().unwrap().contains("budget"), "{first:?}");
        assert!(is_truncated(&session));
    }
}

#[tokio::test]
async fn truncation_shows_the_last_messages_and_asks_nobody() {
    let place = place();
    let model = Witness::new(&steps(60, ""));
    let policy = Policy { truncates: true, ..Policy::default() };
    let setup = place.setup(&model, policy);
    let mut session = place.session();
    let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    assert_eq!(ended.status, Status::Success);
    assert_eq!(model.summaries.load(Ordering::SeqCst), 0);
    // 51 messages become the original request and the last 30; then 20 more come.
    assert_eq!(notes.all().len(), 4);
    for (compacted, why) in &notes.all() {
        assert_eq!((*why, &compacted.summary, &compacted.fault), (Why::Long, &None, &None));
    }
    assert!(is_truncated(&session));
    let shown = session.view(&Lane::main()).unwrap().messages;
    assert!((31..=51).contains(&shown.len()), "{}", shown.len());
    assert_eq!(shown[0].message.text(), GOAL);
    // The log keeps everything.
    assert_eq!(session.info().unwrap().head.messages, 122);
}

#[tokio::test]
async fn a_new_phase_is_begun_with_a_short_conversation() {
    let place = place();
    let model = Witness::new(&steps(12, ""));
    let policy = Policy { keep: 1_000, ..Policy::default() };
    let mut setup = place.setup(&model, policy);
    let mut draft = place.well.draft("t");
    draft.phases = Some(PhaseSet::Workflow);
    let mut session = place.well.create(draft).unwrap();
    setup.rules.limits.steps = Some(8);
    let (_, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    assert!(notes.all().is_empty());
    session.enter(Phase::Initialize).unwrap();
    let (_, notes) = drive(&mut session, &setup, None).await;
    let whys: Vec<Why> = notes.all().iter().map(|(_, why)| *why).collect();
    assert_eq!(whys, [Why::Phase]);
}

#[tokio::test]
async fn a_run_that_shrank_is_replayed_by_its_record() {
    let place = place();
    let front = "context: 8000\nsummaries: [{text: \"## Goal\\n- one\"}, {text: ''}]\n";
    let policy = Policy { buffer: 4_000, keep: 800, ..Policy::default() };
    let model = Witness::new(&steps(15, front));
    let mut session = place.session();
    let (_, notes) = drive(&mut session, &place.setup(&model, policy), Some(GOAL)).await;
    assert!(notes.all().len() >= 3);
    let log = events(&session);
    let script = Script::of(log.iter().map(|event| &event.event));
    let again = Witness::new(&serde_json::to_string(&script).unwrap());
    let mut second = place.session();
    let (ended, replayed) = drive(&mut second, &place.setup(&again, policy), Some(GOAL)).await;
    assert_eq!((ended.status, &*ended.output), (Status::Success, "Done."));
    // Compactions happen at the same answers, with the same summaries or the same lack of one.
    let told = |session: &Session| -> Vec<(usize, bool)> {
        let mut answers = 0;
        let mut shrank = Vec::new();
        for event in events(session) {
            match event.event {
                Event::Message(it) if it.role == Role::Assistant => answers += 1,
                Event::Compacted(it) => shrank.push((answers, it.fault.is_some())),
                _ => {}
            }
        }
        shrank
    };
    assert_eq!(told(&second), told(&session));
    assert_eq!(replayed.all().len(), notes.all().len());
}

#[tokio::test]
async fn a_summary_is_written_without_secrets_and_shown_with_them() {
    let place = place();
    let key = "sk-given-0123456789abcdef";
    let front = format!(
        "context: 8000\nsummaries: [{{text: \"## Critical context\\n- the key is {key}\"}}]\n"
    );
    let model = Witness::new(&steps(12, &front));
    let policy = Policy { buffer: 4_000, keep: 800, ..Policy::default() };
    let mut setup = place.setup(&model, policy);
    setup.redactor = Redactor::new([key.to_owned()]);
    let mut session = place.session();
    let (ended, notes) = drive(&mut session, &setup, Some(GOAL)).await;
    assert_eq!(ended.status, Status::Success);
    assert!(notes.all()[0].0.summary.as_deref().unwrap().contains(key));
    // The second summary was made from the first, unredacted one.
    assert!(notes.all()[1].0.summary.as_deref().unwrap().contains(key));
    let log = serde_json::to_string(&events(&session)).unwrap();
    assert!(!log.contains(key) && log.contains("the key is [redacted:"));
}

#[tokio::test]
async fn what_a_provider_counts_is_learned() {
    let place = place();
    let script = steps(12, "").replace("calls:", "usage: {input: 9000, output: 10}, calls:");
    let setup = place.setup(&Witness::new(&script), Policy::default());
    let (ended, _) = drive(&mut place.session(), &setup, Some(GOAL)).await;
    assert!(ended.calibration.factor() > 1.2, "{:?}", ended.calibration);
    // A provider without usage teaches nothing.
    let setup = place.setup(&Witness::new(&steps(12, "")), Policy::default());
    let (ended, _) = drive(&mut place.session(), &setup, Some(GOAL)).await;
    assert_eq!(ended.calibration, Calibration::default());
}

#[tokio::test]
async fn a_conversation_shrinks_when_someone_asks_and_grows_back_when_that_is_undone() {
    let place = place();
    let model = Witness::new(&steps(6, ""));
    let policy = Policy { keep: 600, ..Policy::default() };
    let setup = place.setup(&model, policy);
    let mut session = place.session();
    drive(&mut session, &setup, Some(GOAL)).await;
    let before = session.view(&Lane::main()).unwrap();
    let shrink = async |session: &mut Session| {
        let run = Run::new(session, &setup, FrontEnd::nobody()).unwrap();
        let (_stop, interrupt) = tokio::sync::watch::channel(false);
        run.shrink_now(interrupt).await.unwrap()
    };
    let Shrunk::Done(compacted) = shrink(&mut session).await else { panic!("it does not shrink") };
    assert!(!compacted.is_truncation());
    assert!(session.view(&Lane::main()).unwrap().messages.len() < before.messages.len());
    assert_eq!(shrink(&mut session).await, Shrunk::AsShortAsItGets);
    let seq = session.info().unwrap().head.seq;
    session.undo_compaction(seq).unwrap();
    assert_eq!(session.view(&Lane::main()).unwrap(), before);
}

/// A model that never answers.
#[derive(Debug)]
struct Silent;

impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn answer<'a>(
        &'a self,
        _: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_wish_that_is_interrupted_changes_nothing() {
    let place = place();
    let mut setup = place.setup(&Witness::new(&steps(6, "")), Policy::default());
    setup.context.policy.keep = 600;
    let mut session = place.session();
    drive(&mut session, &setup, Some(GOAL)).await;
    let before = events(&session);
    setup.context.summariser.as_mut().unwrap().provider = Arc::new(Silent);
    let run = Run::new(&session, &setup, FrontEnd::nobody()).unwrap();
    let (stop, interrupt) = tokio::sync::watch::channel(false);
    let (shrunk, ()) = tokio::join!(run.shrink_now(interrupt), async {
        tokio::task::yield_now().await;
        stop.send(true).unwrap();
    });
    assert_eq!(shrunk.unwrap(), Shrunk::Interrupted);
    assert_eq!(events(&session), before);
}

/// Both vendors' protocols, against a server that rejects what they reject and counts tokens
/// itself.
#[tokio::test]
async fn real_protocols_take_every_conversation_that_shrank() {
    let both = [Protocol::OpenAi, Protocol::Anthropic];
    // With a known context length, or learning it from refusals.
    let cases = both.into_iter().flat_map(|protocol| [(protocol, Some(6_000)), (protocol, None)]);
    for (protocol, length) in cases {
        let place = place();
        let rules = stepwell_strict::Rules { context: Some(6_000), ..Default::default() };
        let strict = Strict::start(rules).await.unwrap();
        let answers = AtomicUsize::new(0);
        strict.answer_with(move |asked| {
            if asked.text.contains("Summarise it in at most") {
                // A request that is sent once is not cached.
                assert!(!asked.text.contains("cache_control"));
                return Say::text("## Goal\n- read\n## Done\n- some of it").into();
            }
            let n = answers.fetch_add(1, Ordering::SeqCst) + 1;
            match n {
                41.. => Say::text("Done.").into(),
                n => Say::text(format!("Step {n}."))
                    .calling(format!("c{n}"), "read_file", &["{\"path\":\"notes.txt\"}"])
                    .into(),
            }
        });
        let remote = Arc::new(
            Remote::new(Endpoint {
                provider: "vendor".to_owned(),
                protocol,
                base_url: Some(strict.base_url()),
                key: Some(Key::new(strict.key())),
                timeout: Duration::from_secs(20),
                proxy: None,
            })
            .unwrap(),
        );
        let mut setup = place.setup(&Witness::new("[]"), Policy::default());
        setup.context.policy = Policy { buffer: 3_000, keep: 1_000, ..Policy::default() };
        setup.context.length = length;
        setup.provider = remote.clone();
        let by = setup.context.summariser.as_mut().unwrap();
        (by.provider, by.length) = (remote, Some(6_000));
        let (ended, notes) = drive(&mut place.session(), &setup, Some(GOAL)).await;
        assert_eq!(ended.status, Status::Success, "{protocol:?}: {ended:?}");
        assert_eq!(strict.rejected(), 0, "{protocol:?}");
        assert!(notes.all().len() > 3, "{protocol:?}: {}", notes.all().len());
        assert!(
            notes.all().iter().all(|(it, _)| !it.is_truncation()),
            "{protocol:?}: {:?}",
            notes.all()
        );
        let asked = strict.asked();
        let over = asked.iter().filter(|asked| asked.text.len() / 4 > 6_000).count();
        assert_eq!(over == 0, length.is_some(), "{protocol:?}: {over}");
        assert!(asked.last().unwrap().text.contains("halcyon 7"), "{protocol:?}");
    }
}

#[tokio::test]
async fn the_sessions_own_goal_is_always_told() {
    let place = place();
    let model = Witness::new(&steps(12, "context: 8000\n"));
    let policy = Policy { buffer: 4_000, keep: 800, ..Policy::default() };
    let setup = place.setup(&model, policy);
    let session = place.session();
    let goal = stepwell::model::Change::Set("never lose a step".to_owned());
    session.append(Edited { goal, ..Edited::default() }).unwrap();
    session.append(Message::system("Be brief.")).unwrap();
    let mut run = Run::new(&session, &setup, FrontEnd::nobody()).unwrap();
    run.say(GOAL).unwrap();
    assert_eq!(
        run.window().instructions(),
        "Be brief.\n\nThe goal of this work: never lose a step"
    );
}
