"""Moving over from what people have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepwell


def test_a_graph_goes_on_from_another_savers_checkpoints(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from graph_worker import graph
    from langgraph.checkpoint.memory import InMemorySaver

    from stepwell.langgraph import StepwellSaver, copy_checkpoints

    old: Any = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    for turn in range(3):
        graph(old).invoke({"messages": [("user", f"turn {turn}")]}, config)
    saver = StepwellSaver(well)
    assert copy_checkpoints(old, saver) == 12
    assert copy_checkpoints(old, saver) == 0
    fresh = StepwellSaver(well)
    before = [(it.checkpoint, it.metadata, it.parent_config) for it in old.list(config)]
    assert [(it.checkpoint, it.metadata, it.parent_config) for it in fresh.list(config)] == before
    state = graph(fresh).invoke({"messages": [("user", "more")]}, config)
    assert len(state["messages"]) == 12
    assert len(well.session("langgraph.t").messages()) == 12


async def test_files_of_sqlite_sessions_come_over(well: stepwell.Well, tmp_path: Path) -> None:
    pytest.importorskip("agents")
    from agents import SQLiteSession

    from stepwell.openai import StepwellSession, copy_sqlite_sessions

    items: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    for id in ("one", "two"):
        old = SQLiteSession(id, tmp_path / "old.db")
        await old.add_items(items)
        old.close()
    assert copy_sqlite_sessions(tmp_path / "old.db", well) == 2
    assert copy_sqlite_sessions(tmp_path / "old.db", well) == 0
    assert await StepwellSession("two", well).get_items() == items


async def test_an_apps_sessions_come_over(well: stepwell.Well) -> None:
    pytest.importorskip("google.adk")
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    from stepwell.adk import StepwellSessionService, copy_sessions

    old = InMemorySessionService()
    session = await old.create_session(
        app_name="a", user_id="u", session_id="s", state={"k": 1, "user:n": 2}
    )
    actions = EventActions(state_delta={"k": 3, "app:x": True})
    await old.append_event(session, Event(author="agent", actions=actions))
    service = StepwellSessionService(well)
    assert await copy_sessions(old, service, "a") == 1
    assert await copy_sessions(old, service, "a") == 0
    who: Any = {"app_name": "a", "user_id": "u", "session_id": "s"}
    mine, theirs = await service.get_session(**who), await old.get_session(**who)
    assert mine is not None
    assert theirs is not None
    assert mine.model_dump() == theirs.model_dump()
