"""A conversation goes on in another framework, whichever began it."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import stepwell
from stepwell import Message
from stepwell._continue import alternating

BEGUN = [
    Message.system("only for the one who began it"),
    Message.user("what is the weather?"),
    Message.assistant("I look.", [("c1", "weather", '{"city": "Oslo"}')]),
    Message.tool_result("c1", "rain"),
    Message.assistant("It rains."),
]
SAID = [("user", "what is the weather?"), ("assistant", "I look."), ("tool", "rain")]


def begun(well: stepwell.Well) -> stepwell.Session:
    return well.create("weather", messages=BEGUN)


def said(session: stepwell.Session) -> list[tuple[str, str]]:
    return [(it.role, it.text) for it in session.messages()]


def whole(session: stepwell.Session) -> None:
    # Some write an answer and its calls as two messages.
    assert [it for it in said(session) if it[1]] == [*SAID, ("assistant", "It rains.")]
    assert [call["name"] for it in session.messages() for call in it.calls] == ["weather"]


async def test_in_openai_agents(well: stepwell.Well) -> None:
    pytest.importorskip("agents")
    from stepwell.openai import StepwellSession

    made = StepwellSession.continuing(begun(well), "next")
    assert len(await made.get_items()) == 5
    whole(made.session)


def test_in_langgraph(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from langgraph.graph import START, MessagesState, StateGraph

    from stepwell.langgraph import StepwellSaver

    saver = StepwellSaver(well)
    builder = StateGraph(MessagesState)
    builder.add_node("nothing", lambda state: {"messages": []})
    builder.add_edge(START, "nothing")
    graph: Any = builder.compile(checkpointer=saver)
    at: Any = {"configurable": {"thread_id": "next"}}
    graph.invoke({"messages": list(saver.continuing(begun(well)))}, at)
    whole(well.session("langgraph.next"))


async def test_in_the_claude_agent_sdk(well: stepwell.Well) -> None:
    pytest.importorskip("claude_agent_sdk")
    from stepwell.claude import StepwellSessionStore

    store = StepwellSessionStore(well)
    key = store.continuing(begun(well), {"project_key": "p", "session_id": "s"})
    assert len(await store.load(key) or ()) == 4
    whole(store.session(key))


def test_in_strands(well: stepwell.Well) -> None:
    pytest.importorskip("strands")
    from stepwell.strands import StepwellSessionManager

    made = StepwellSessionManager.continuing(begun(well), "next")
    assert len(made.repository.list_messages("next", "default")) == 4
    whole(well.session("strands.next"))


async def test_in_adk(well: stepwell.Well) -> None:
    pytest.importorskip("google.adk")
    from stepwell.adk import StepwellSessionService

    service = StepwellSessionService(well)
    made = await service.continuing(begun(well), app_name="a", user_id="u", session_id="next")
    assert len(made.events) == 4
    texts = [text for _, text in said(service.session("a", "u", "next"))]
    assert texts[0] == "what is the weather?"
    assert texts[-1] == "It rains."


async def test_in_pydantic_ai(well: stepwell.Well) -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from stepwell.pydantic_ai import StepwellConversationStore

    store = StepwellConversationStore(well)
    made = await store.continuing(begun(well), "next")
    assert len(made.messages) == 4
    whole(store.session("next"))


async def test_in_agent_framework(well: stepwell.Well) -> None:
    pytest.importorskip("agent_framework")
    from stepwell.agent_framework import StepwellHistoryProvider

    history = StepwellHistoryProvider(well)
    await history.continuing(begun(well), "next")
    assert len(await history.get_messages("next")) == 4
    whole(history.session("next"))


Handing = Callable[[stepwell.Session], Awaitable[stepwell.Session]]
"""Hands a session over; returns the one of the store that goes on with it."""

OWN = {"role": "user", "content": "of my own"}


async def to_openai(source: stepwell.Session) -> stepwell.Session:
    from stepwell.openai import StepwellSession

    return StepwellSession.continuing(source, "next").session


async def to_langgraph(source: stepwell.Session) -> stepwell.Session:
    from langgraph.graph import START, MessagesState, StateGraph

    from stepwell.langgraph import StepwellSaver

    saver = StepwellSaver(source.well)
    builder = StateGraph(MessagesState)
    builder.add_node("nothing", lambda state: {"messages": []})
    builder.add_edge(START, "nothing")
    graph: Any = builder.compile(checkpointer=saver)
    given: Any = {"messages": list(saver.continuing(source, "next"))}
    if given["messages"]:
        graph.invoke(given, {"configurable": {"thread_id": "next"}})
    return source.well.session("langgraph.next")


async def to_claude(source: stepwell.Session) -> stepwell.Session:
    from stepwell.claude import StepwellSessionStore

    store = StepwellSessionStore(source.well)
    return store.session(store.continuing(source, {"project_key": "p", "session_id": "s"}))


async def to_strands(source: stepwell.Session) -> stepwell.Session:
    from stepwell.strands import StepwellSessionManager

    StepwellSessionManager.continuing(source, "next")
    return source.well.session("strands.next")


async def to_adk(source: stepwell.Session) -> stepwell.Session:
    from stepwell.adk import StepwellSessionService

    service = StepwellSessionService(source.well)
    await service.continuing(source, app_name="a", user_id="u", session_id="next")
    return service.session("a", "u", "next")


async def to_pydantic_ai(source: stepwell.Session) -> stepwell.Session:
    from stepwell.pydantic_ai import StepwellConversationStore

    store = StepwellConversationStore(source.well)
    await store.continuing(source, "next")
    return store.session("next")


async def to_agent_framework(source: stepwell.Session) -> stepwell.Session:
    from stepwell.agent_framework import StepwellHistoryProvider

    history = StepwellHistoryProvider(source.well)
    await history.continuing(source, "next")
    return history.session("next")


EACH = pytest.mark.parametrize(
    ("framework", "handing"),
    [
        ("agents", to_openai),
        ("langgraph", to_langgraph),
        ("claude_agent_sdk", to_claude),
        ("strands", to_strands),
        ("google.adk", to_adk),
        ("pydantic_ai.conversation_store", to_pydantic_ai),
        ("agent_framework", to_agent_framework),
    ],
)


@EACH
@pytest.mark.on_a_server
async def test_a_second_hand_over_adds_what_came_since(
    well: stepwell.Well, framework: str, handing: Handing
) -> None:
    pytest.importorskip(framework)
    source = begun(well)
    made = await handing(source)
    texts = [text for _, text in said(made) if text]
    assert (len(texts), texts[0], texts[-1]) == (4, "what is the weather?", "It rains.")
    (first,) = made.continues()
    assert (first.session, first.seq) == (source.id, source.messages()[-1].seq)
    assert made.info().fields["metadata"] == {"continues": f"{source.id}@{first.seq}"}
    with pytest.warns(stepwell.NothingNewWarning, match=f"has all messages of {source.id}"):
        assert [text for _, text in said(await handing(source)) if text] == texts
    source.append(Message.user("and tomorrow?"), Message.assistant("Sun."))
    with warnings.catch_warnings():
        warnings.simplefilter("error", stepwell.NothingNewWarning)
        made = await handing(source)
    assert [text for _, text in said(made) if text] == [*texts, "and tomorrow?", "Sun."]
    assert [it.seq for it in made.continues()][-1] == source.messages()[-1].seq
    assert made.verify().sound


@EACH
async def test_a_session_with_messages_of_its_own_takes_nothing_over(
    well: stepwell.Well, framework: str, handing: Handing
) -> None:
    pytest.importorskip(framework)
    other = well.create("other", messages=[Message.user("of my own")])
    made = await handing(other)
    with pytest.raises(stepwell.ConflictError, match="messages already, which are not those of"):
        await handing(begun(well))
    assert [text for _, text in said(made)] == ["of my own"]
    empty = well.create("nothing said")
    with pytest.raises(stepwell.InvalidError, match="no conversation to go on with"):
        await handing(empty)


async def test_two_that_both_went_on_are_not_mixed(well: stepwell.Well) -> None:
    pytest.importorskip("agents")
    from stepwell.openai import StepwellSession

    source = begun(well)
    made = StepwellSession.continuing(source, "next")
    await made.add_items([OWN])
    # With nothing new in the one, the other simply goes on.
    with pytest.warns(stepwell.NothingNewWarning):
        StepwellSession.continuing(source, "next")
    source.append(Message.user("and tomorrow?"))
    with pytest.raises(stepwell.ConflictError, match="both went on"):
        StepwellSession.continuing(source, "next")


def test_a_graph_that_ended_before_its_first_step_gets_all_of_it_again(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from stepwell.langgraph import StepwellSaver

    saver, source = StepwellSaver(well), begun(well)
    given = [it.id for it in saver.continuing(source, "next")]
    assert [it.id for it in saver.continuing(source, "next")] == given
    assert len(set(given)) == 4
    assert len(well.session("langgraph.next").continues()) == 1


def test_the_model_and_the_others_speak_in_turns() -> None:
    odd = [
        Message.assistant("hello"),
        Message.user("one"),
        Message.user("two"),
        Message.assistant("I look."),
        Message.assistant("", [("c", "look", "{}")]),
        Message.tool_result("c", "seen"),
        Message.user("go on"),
    ]
    turns = alternating(odd)
    assert [it.role == "assistant" for it in turns] == [False, True, False, True, False]
    assert [part for it in turns[1:] for part in it.parts] == [p for it in odd for p in it.parts]
    assert alternating([]) == []


@pytest.mark.parametrize("framework", ["claude_agent_sdk", "strands"])
async def test_frameworks_that_want_turns_get_them(well: stepwell.Well, framework: str) -> None:
    pytest.importorskip(framework)
    source = well.create("odd", messages=[Message.user("one"), Message.user("two")])
    source.append(Message.assistant("three"), Message.assistant("four"))
    made = await (to_strands if framework == "strands" else to_claude)(source)
    assert said(made) == [("user", "one\ntwo"), ("assistant", "three\nfour")]
