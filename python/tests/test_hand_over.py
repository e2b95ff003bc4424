"""A conversation goes on in another framework, whichever began it."""

from __future__ import annotations

from typing import Any

import pytest

import stepwell
from stepwell import Message

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
