"""Interrupts as questions: each answer goes to its own."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import stepwell
from stepwell.langgraph import StepwellSaver

ROUNDS = 10


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def node(*questions: str) -> Any:
    return lambda state: {"said": [str(interrupt(question)) for question in questions]}


def parallel(saver: StepwellSaver) -> Any:
    """Two nodes that ask at once, then one that asks twice."""
    builder = StateGraph(State)
    builder.add_node("a", node("A?"))
    builder.add_node("b", node("B?"))
    builder.add_node("c", node("first?", "second?"))
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge(["a", "b"], "c")
    return builder.compile(checkpointer=saver)


def nested(saver: StepwellSaver) -> Any:
    """A graph within a graph, which asks."""
    inner = StateGraph(State)
    inner.add_node("ask", node("inner?"))
    inner.add_edge(START, "ask")
    builder = StateGraph(State)
    builder.add_node("below", inner.compile())
    builder.add_edge(START, "below")
    return builder.compile(checkpointer=saver)


def recorded(well: stepwell.Well, thread: str) -> list[tuple[str, str]]:
    """The questions of a thread with their answers, in the order in which they were answered."""
    events = well.session(f"langgraph.{thread}").events()
    prompts = {it.body["id"]: it.body["prompt"] for it in events if it.kind == "gate"}
    answers = [it.body for it in events if it.kind == "gate_answered"]
    return [(prompts[it["id"]], it["answer"]) for it in answers]


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.on_a_server
def test_each_answer_goes_to_its_own_question(well: stepwell.Well, durability: Any) -> None:
    for number in range(ROUNDS):
        thread = f"t{number}"
        graph, config = parallel(StepwellSaver(well)), config_of(thread)
        state = graph.invoke({"said": []}, config, durability=durability)
        ids = {it.value: it.id for it in state["__interrupt__"]}
        session = well.session(f"langgraph.{thread}")
        assert session.info().status == "paused"
        graph.invoke(
            Command(resume={ids["A?"]: "yes", ids["B?"]: "no"}), config, durability=durability
        )
        assert sorted(recorded(well, thread)) == [("A?", "yes"), ("B?", "no")]
        assert session.info().status == "paused"
        graph.invoke(Command(resume="one"), config, durability=durability)
        assert recorded(well, thread)[2:] == [("first?", "one")]
        state = graph.invoke(Command(resume={"deep": 2}), config, durability=durability)
        assert recorded(well, thread)[3:] == [("second?", '{"deep": 2}')]
        assert state["said"] == ["yes", "no", "one", "{'deep': 2}"]
        assert (session.info().status, session.info().fields.get("open_gates", 0)) == ("idle", 0)


async def test_each_answer_goes_to_its_own_question_async(well: stepwell.Well) -> None:
    graph, config = parallel(StepwellSaver(well)), config_of("t")
    state = await graph.ainvoke({"said": []}, config)
    ids = {it.value: it.id for it in state["__interrupt__"]}
    # One of two is answered: the other one stays open.
    await graph.ainvoke(Command(resume={ids["B?"]: "no"}), config)
    assert recorded(well, "t") == [("B?", "no")]
    assert well.session("langgraph.t").info().status == "paused"
    await graph.ainvoke(Command(resume={ids["A?"]: "yes"}), config)
    assert recorded(well, "t") == [("B?", "no"), ("A?", "yes")]


def test_a_question_of_a_graph_within_a_graph_is_asked_once(well: stepwell.Well) -> None:
    graph, config = nested(StepwellSaver(well)), config_of("n")
    graph.invoke({"said": []}, config)
    session = well.session("langgraph.n")
    assert session.info().fields["open_gates"] == 1
    graph.invoke(Command(resume="fine"), config)
    assert recorded(well, "n") == [("inner?", "fine")]
    assert session.info().status == "idle"


def test_what_was_answered_at_the_end_of_a_run_is_closed(well: stepwell.Well) -> None:
    graph, config = parallel(StepwellSaver(well)), config_of("e")
    state = graph.invoke({"said": []}, config, durability="exit")
    ids = {it.value: it.id for it in state["__interrupt__"]}
    resume = Command(resume={ids["A?"]: "yes", ids["B?"]: "no"})
    graph.invoke(resume, config, durability="exit")
    # Such a run keeps no answers: none is made up.
    answers = recorded(well, "e")
    assert sorted(prompt for prompt, _ in answers) == ["A?", "B?"]
    assert all("not recorded" in answer for _, answer in answers)
    graph.invoke(Command(resume="one"), config, durability="exit")
    assert recorded(well, "e")[2:] == [("first?", "one")]
    assert well.session("langgraph.e").info().status == "paused"
    graph.invoke(Command(resume="two"), config, durability="exit")
    session = well.session("langgraph.e")
    assert (session.info().status, session.info().fields.get("open_gates", 0)) == ("idle", 0)


def test_a_question_that_is_asked_again_waits_again(well: stepwell.Well) -> None:
    graph, config = nested(StepwellSaver(well)), config_of("r")
    graph.invoke({"said": []}, config)
    asking = graph.get_state(config).config
    graph.invoke(Command(resume="one"), config)
    graph.invoke(None, asking)
    assert well.session("langgraph.r").info().status == "paused"


def test_an_answer_that_the_graph_would_not_hear_is_refused(well: stepwell.Well) -> None:
    graph, config = parallel(StepwellSaver(well)), config_of("a")
    state = graph.invoke({"said": []}, config)
    session = well.session("langgraph.a")
    with pytest.raises(stepwell.InvalidError, match="resume the graph"):
        session.answer(state["__interrupt__"][0].id, "yes")
    assert session.info().fields["open_gates"] == 2
