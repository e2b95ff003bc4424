//! Which question is meant by a name, and what whoever comes too late is told.

use std::path::Path;

use stepwell::error::{GateChoice, Listing};
use stepwell::model::{Answer, GateAnswered};
use stepwell::sqlite::Access;
use stepwell::work::Gates;
use stepwell::{Remedy, Seq, SessionId, Status, Stepwell};
use stepwell_runtime::inspect::{meant_gate, open_gates};
use stepwell_runtime::{
    Error, FlowOptions, Given, Notice, Notices, Patience, ResumeRequest, RunOptions, RunRequest,
    Runtime,
};

use crate::test_env::{ASKS, TestEnv, runtime_in};

/// A session that has paused with a question about its first call.
fn paused(runtime: &Runtime, root: &Path) -> SessionId {
    std::fs::create_dir_all(root).unwrap();
    let script = root.join("script.yaml");
    std::fs::write(&script, ASKS).unwrap();
    let model = Some(format!("script:{}", script.display()));
    let options = RunOptions { model, patience: Patience::Pause, ..RunOptions::default() };
    let handle = runtime.start(RunRequest { options, ..RunRequest::new("make it") }).unwrap();
    let id = handle.id().clone();
    assert_eq!(handle.join().unwrap().status, Status::Paused);
    id
}

/// The questions that an error says could be meant.
fn choices(error: &Error) -> Vec<GateChoice> {
    match &error.remedies()[..] {
        [Remedy::Answer(choices)] => choices.clone(),
        other => panic!("{other:?}"),
    }
}

fn answer(runtime: &Runtime, id: &SessionId, gate: Option<&str>, word: &str) -> Result<(), Error> {
    let given = Given { gate: gate.map(str::to_owned), answer: Answer::from(word) };
    runtime.answer(id, &given, &FlowOptions::default()).map(drop)
}

fn only_gate(runtime: &Runtime, id: &SessionId) -> (String, Seq) {
    let well = runtime.workspace().open_existing(Access::Read).unwrap();
    let open = open_gates(&well, Some(id)).unwrap();
    let [gate] = &*open else { panic!("{open:?}") };
    (gate.gate.id.clone(), gate.seq)
}

fn end_of(id: &SessionId) -> String {
    id.as_str().rsplit('-').next().unwrap().to_owned()
}

#[test]
fn a_late_answer_does_not_go_to_another_session_of_the_store() {
    let env = TestEnv::new();
    let (one, two) = (paused(&env.runtime, &env.root()), paused(&env.runtime, &env.root()));
    let (gate, _) = only_gate(&env.runtime, &one);
    assert_eq!(only_gate(&env.runtime, &two).0, gate, "names repeat");
    // Both wait: the name alone means neither.
    let both = meant_gate(env.runtime.workspace(), &gate);
    let choices = choices(&both.unwrap_err());
    let mut typed: Vec<&str> = choices.iter().map(|it| it.typed.as_str()).collect();
    typed.sort_unstable();
    let mut wanted = [format!("{}/{gate}", end_of(&one)), format!("{}/{gate}", end_of(&two))];
    wanted.sort_unstable();
    assert_eq!(typed, wanted);
    answer(&env.runtime, &one, Some(&gate), "no").unwrap();
    // Only the other waits, and whoever types the name may mean the one that was answered.
    let late = meant_gate(env.runtime.workspace(), &gate);
    let late = late.unwrap_err();
    assert!(late.to_string().contains("was answered by"), "{late}");
    assert_eq!(self::choices(&late)[0].typed, format!("{}/{gate}", end_of(&two)));
    assert!(late.kind().is_busy());
    // What the hint says is clear.
    let meant = meant_gate(env.runtime.workspace(), &format!("{}/{gate}", end_of(&two))).unwrap();
    assert_eq!((meant.session, meant.gate, meant.elsewhere), (two, gate.clone(), false));
    let gone = meant_gate(env.runtime.workspace(), &format!("{}/{gate}", end_of(&one)));
    assert!(matches!(&gone, Err(Error::AnsweredBefore { session, .. }) if *session == one));
    let unknown = meant_gate(env.runtime.workspace(), "no-such-gate");
    assert_eq!(unknown.unwrap_err().remedies(), [Remedy::List(Listing::Gates)]);
}

#[test]
fn a_question_of_another_store_is_meant_only_with_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let here = runtime_in(folder.path(), "here");
    let there = runtime_in(folder.path(), "there");
    let (one, two) =
        (paused(&here, &folder.path().join("here")), paused(&there, &folder.path().join("there")));
    let (gate, _) = only_gate(&here, &one);
    assert_eq!(meant_gate(here.workspace(), &gate).unwrap().session, one);
    answer(&here, &one, Some(&gate), "no").unwrap();
    let late = meant_gate(here.workspace(), &gate);
    assert!(matches!(&late, Err(Error::AnsweredBefore { session, .. }) if *session == one));
    // From a third folder, the name alone means nothing, since nobody sees which one it is.
    let third = runtime_in(folder.path(), "third");
    let bare = meant_gate(third.workspace(), &gate);
    let bare = bare.unwrap_err();
    assert!(bare.to_string().contains("waits in another of your stores"), "{bare}");
    assert_eq!(choices(&bare).len(), 1);
    let meant = meant_gate(third.workspace(), &format!("{}/{gate}", end_of(&two))).unwrap();
    assert_eq!((meant.session, meant.elsewhere), (two, true));
}

#[test]
fn an_answer_to_a_question_that_is_another_one_by_now_is_refused() {
    let env = TestEnv::new();
    let id = paused(&env.runtime, &env.root());
    let (gate, seq) = only_gate(&env.runtime, &id);
    let well = env.runtime.workspace().open_existing(Access::Write).unwrap();
    let asked = well.store().keyed_events(&id, &[stepwell::model::Kind::Gate]).unwrap().remove(0);
    // The session is rewound to before it, and asks something else under the same name.
    let session = well.lock(&id).unwrap();
    let restored = stepwell::model::Restored::default();
    let scope = stepwell::model::Scope::Chat;
    session.append(stepwell::model::Rewound { to: seq.prev(), scope, restored }).unwrap();
    let stepwell::Event::Gate(again) = asked.event else { panic!() };
    session.append(stepwell::model::Gate { prompt: "run rm -r x".to_owned(), ..again }).unwrap();
    drop(session);
    let given = Given { gate: Some(gate), answer: Answer::from("yes") };
    let flow = FlowOptions::default();
    let old = env.runtime.answer_having_seen(&id, &given, &flow, Some(seq));
    assert!(matches!(&old, Err(Error::AnswerRefused { .. })), "{old:?}");
    let now = only_gate(&env.runtime, &id).1;
    assert!(now > seq);
    env.runtime.answer_having_seen(&id, &given, &flow, Some(now)).unwrap();
}

#[test]
fn whoever_resumes_with_an_answer_too_late_is_told_whose_was_first() {
    for gate in [None, Some("call_1_1")] {
        let env = TestEnv::new();
        let id = paused(&env.runtime, &env.root());
        answer(&env.runtime, &id, None, "no").unwrap();
        let given = |gate: Option<&str>| {
            Some(Given { gate: gate.map(str::to_owned), answer: Answer::from("approve") })
        };
        // It has stopped, with the answer.
        let late = ResumeRequest { answer: given(gate), ..env.resume(&id) };
        let told = env.runtime.resume_or_answer(late).err();
        assert!(matches!(&told, Some(Error::AnsweredBefore { .. })), "{told:?}");
        assert!(told.unwrap().kind().is_busy());
        // It has ended with it.
        env.runtime.resume(env.resume(&id)).unwrap().join().unwrap();
        let late = ResumeRequest { answer: given(gate), ..env.resume(&id) };
        let told = env.runtime.resume_or_answer(late).err();
        assert!(matches!(&told, Some(Error::AnsweredBefore { .. })), "{told:?}");
        assert_eq!(env.ran(), 0);
    }
}

#[test]
fn whoever_names_no_question_is_told_what_they_answered() {
    let env = TestEnv::new();
    let id = paused(&env.runtime, &env.root());
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let into = std::sync::Arc::clone(&told);
    let runtime = env.elsewhere().telling(Notices::to(move |notice: &Notice| {
        if let Notice::Answered { gate, asked, .. } = notice {
            into.lock().unwrap().push((gate.clone(), asked.clone()));
        }
    }));
    let answer = Some(Given { gate: None, answer: Answer::from("approve") });
    let request = ResumeRequest { answer, ..env.resume(&id) };
    runtime.resume(request).unwrap().join().unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.contains("echo x >> made.txt"), "{told:?}");
}

/// A session that asked so many questions, of which the last one waits.
fn asked_often(well: &Stepwell, count: usize) -> SessionId {
    let id: SessionId = format!("often-{count}").parse().unwrap();
    let session = well.create(stepwell::Created::new(id.clone(), "ask")).unwrap();
    for n in 1..=count {
        session.append(stepwell::model::Gate::new(format!("call_{n}"), "May it?")).unwrap();
        if n < count {
            let answer = GateAnswered::new(format!("call_{n}"), Answer::ALLOW_ONCE, "ann@desk");
            well.answer(&id, answer).unwrap();
        }
    }
    id
}

#[test]
fn what_waits_is_found_with_as_many_reads_after_ten_questions_as_after_thousands() {
    let reads = |count: usize| {
        let counting = std::sync::Arc::new(crate::counting::Counting::default());
        let well = Stepwell::with(counting.clone(), stepwell::sessions::Deps::default());
        let id = asked_often(&well, count);
        counting.reset();
        let waiting = Gates::waiting(&**well.store(), &id).unwrap();
        assert_eq!(waiting.open().count(), 1);
        let name = waiting.open().next().unwrap().gate.id.clone();
        assert_eq!(Gates::named(&**well.store(), &id, &name).unwrap().open().count(), 1);
        let answer = GateAnswered::new(name, Answer::ALLOW_ONCE, "ann@desk");
        well.answer(&id, answer).unwrap();
        assert!(Gates::waiting(&**well.store(), &id).unwrap().asked.is_empty());
        counting.events()
    };
    let (few, many) = (reads(100), reads(3_000));
    assert_eq!(few, many);
    assert!(many < 100, "{many} events were read");
}
