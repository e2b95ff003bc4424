"""Agents that report the phases of their work."""

from __future__ import annotations

import asyncio

import pytest

import stepwell
from stepwell import Message


def planner(well: stepwell.Well) -> stepwell.AgentSession:
    """An agent that waits for its plan to be approved."""
    agent = well.create_agent("architect", "migrate the database", metadata={"task_id": "T1"})
    agent.update(phase="planning")
    agent.append(Message.user("plan it"), Message.assistant("first the schema"))
    agent.update(phase="approval", metadata={"plan": "plan.txt"})
    return agent


@pytest.mark.on_a_server
def test_an_agent_is_resumed_where_it_waited_and_ends_once(well: stepwell.Well) -> None:
    agent = planner(well)
    assert [it["to_phase"] for it in agent.phases()] == ["planning", "approval"]
    decision = agent.should_resume()
    assert decision
    assert decision.reason == "resumable"
    known = agent.resume_metadata(turns=1)
    assert known["previous_phase"] == "approval"
    assert known["session_metadata"] == {"task_id": "T1", "plan": "plan.txt"}
    assert [turn["text"] for turn in known["turns"]] == ["first the schema"]
    agent.update(phase="executing")
    assert agent.should_resume().reason == "not_ready"
    assert agent.finalize("completed", summary="migrated")
    assert not agent.finalize("completed")
    state = agent.state()
    assert (state["phase"], state["status"], state["summary"]) == (
        "completed",
        "success",
        "migrated",
    )
    with pytest.raises(stepwell.StepwellError):
        agent.finalize("failed")
    with pytest.raises(stepwell.InvalidError, match="no outcome"):
        agent.finalize("done")
    with pytest.raises(stepwell.StepwellError):
        agent.update(phase="planning")


def test_what_keeps_an_agent_from_being_resumed_is_named(well: stepwell.Well) -> None:
    agent = planner(well)
    assert agent.should_resume(timeout=0).reason == "timed_out"
    for _ in range(3):
        agent.update(error="the server is gone")
    assert agent.should_resume().reason == "too_many_errors"
    assert agent.should_resume(max_errors=4)
    agent.update(ready=False)
    assert not agent.should_resume(max_errors=4)


def test_sessions_that_can_be_resumed_now_are_listed(well: stepwell.Well) -> None:
    waiting = planner(well)
    busy = planner(well)
    busy.update(phase="executing")
    assert [it.id for it in well.sessions(ready=True)] == [waiting.id]
    assert well.agent(waiting.id).state()["agent_name"] == "architect"


def test_a_cleanup_takes_agents_that_were_silent_for_long(well: stepwell.Well) -> None:
    agent = planner(well)
    agent.finalize("abandoned")
    assert well.cleanup(hours=1) == []
    assert well.cleanup(hours=0) == [agent.id]
    assert well.sessions() == []
    agent.restore()
    assert [it.id for it in well.sessions()] == [agent.id]


def test_a_session_names_the_files_that_it_changed(well: stepwell.Well) -> None:
    session = well.create("write")
    for path in ("b.txt", "a.txt", "b.txt"):
        state = {"path": path, "before": "absent", "after": "absent"}
        session.append({"kind": "file", "body": state})
    assert session.session_files() == ["b.txt", "a.txt"]


async def an_agents_life() -> str:
    """The same by asyncio."""
    well = stepwell.AsyncWell(stepwell.memory())
    agent = await well.create_agent("architect", "migrate")
    await agent.update(phase="planning")
    assert await agent.should_resume()
    assert (await agent.resume_metadata())["previous_phase"] == "planning"
    assert await agent.finalize("completed")
    assert len(await agent.phases()) == 2
    assert await well.cleanup(hours=0) == [agent.id]
    return agent.id


def test_the_same_without_blocking_an_event_loop() -> None:
    assert asyncio.run(an_agents_life())
