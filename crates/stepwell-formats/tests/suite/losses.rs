//! What a form cannot say of a session is named, fact by fact.

use stepwell::model::{Edited, Elsewhere, Flow, Money, StatusChanged, Step, Usage};
use stepwell::{Created, Message, SessionId, Status, Stepwell, StopReason};
use stepwell_formats::{Destination, Existing, Format, Shape, export, write_to};

use crate::support::id;

/// A session that stopped at a limit, by an agent with a model, which cost something.
fn stopped(well: &Stepwell, flow: Option<Flow>) -> SessionId {
    let mut created = Created::new(id("20260223-143022-a1b2c3"), "bake the loaf")
        .with_agent("baker")
        .with_model("acme", "large-1");
    created.flow = flow;
    let session = well.create(created).unwrap();
    session.append(Message::user("something else")).unwrap();
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    let cost = Some(Money::from_picos(250_000_000_000));
    session.append(Message::assistant("half").spending(usage, cost)).unwrap();
    session.append(Step { lane: stepwell::Lane::main(), n: 1 }).unwrap();
    let (status, reason) = (Status::Partial, Some(StopReason::MaxSteps));
    session.append(StatusChanged { status, reason, error: Some("no more".to_owned()) }).unwrap();
    session.id().clone()
}

fn losses(well: &Stepwell, id: &SessionId, format: &str) -> String {
    let format: Format = format.parse().unwrap();
    let writer = format.writer().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let exported = match writer.shape() {
        Shape::File => export(well, id, format, &mut Vec::new()).unwrap(),
        Shape::Folder => write_to(
            &Destination::new(&folder.path().join("out"), Existing::Keep),
            writer,
            well,
            id,
        )
        .unwrap(),
    };
    exported.losses.to_string()
}

#[test]
fn each_fact_that_a_form_does_not_say_is_named() {
    let well = Stepwell::in_memory();
    let session = stopped(&well, None);
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            "strands-sdk",
            &[
                "status partial",
                "stop reason max_steps",
                "error",
                "model large-1",
                "cost $0.2500",
                "task",
            ],
            &["agent baker", "steps 1"],
        ),
        (
            "gaia",
            &["a status (1: partial, max_steps)", "$0.2500", "model large-1", "steps 1"],
            &["task"],
        ),
        (
            "m31a",
            &["a status (1: partial, max_steps)", "$0.2500", "baker", "task"],
            &["model", "steps 1"],
        ),
        (
            "architect",
            &["tokens of a message"],
            &["status", "model", "steps 1", "task", "cost", "baker"],
        ),
    ];
    for (format, named, held) in cases {
        let told = losses(&well, &session, format);
        for what in named {
            assert!(told.contains(what), "{format} loses {what}: {told}");
        }
        for what in held {
            assert!(!told.contains(what), "{format} holds {what}: {told}");
        }
    }
}

#[test]
fn steps_that_the_messages_do_not_tell_are_named() {
    let well = Stepwell::in_memory();
    let session = stopped(&well, None);
    let elsewhere = Some(Elsewhere { steps: 39, ..Elsewhere::default() });
    well.edit(&session, Edited { elsewhere, ..Edited::default() }).unwrap();
    assert_eq!(well.info(&session).unwrap().head.steps, 40);
    for format in ["m31a", "strands-sdk"] {
        let told = losses(&well, &session, format);
        assert!(told.contains("steps 40"), "{format}: {told}");
    }
}

#[test]
fn a_flow_on_its_way_to_strands_cli_names_what_stays_behind() {
    let well = Stepwell::in_memory();
    let spec = "name: loaf\npattern: {type: chain, config: {steps: [{agent: a}]}}\n";
    let flow = Flow {
        name: "loaf".to_owned(),
        pattern: "chain".to_owned(),
        spec: spec.to_owned(),
        hash: stepwell::model::SpecHash::of(spec.as_bytes()),
        variables: Default::default(),
    };
    let session = stopped(&well, Some(flow));
    let told = losses(&well, &session, "strands-cli");
    for what in
        ["status partial", "stop reason max_steps", "error", "cost $0.2500", "agent baker", "task"]
    {
        assert!(told.contains(what), "{what}: {told}");
    }
    assert!(!told.contains("model"), "{told}");
}

#[test]
fn what_was_done_before_a_session_came_here_is_named_by_what_it_is() {
    let well = Stepwell::in_memory();
    let session = stopped(&well, None);
    let usage = Usage { input: 1, output: 1, ..Usage::default() };
    let elsewhere =
        Elsewhere { steps: 3, cost: "0.5".parse().unwrap(), usage, ..Elsewhere::default() };
    well.edit(&session, Edited { elsewhere: Some(elsewhere), ..Edited::default() }).unwrap();
    let told = losses(&well, &session, "codex");
    assert!(!told.contains("elsewhere"), "{told}");
    for what in ["steps", "cost", "tokens"] {
        assert!(told.contains(what), "{what}: {told}");
    }
}
