"""Microsoft Agent Framework: histories and checkpoints."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

pytest.importorskip("agent_framework")
from agent_framework import Content, Message, WorkflowCheckpoint, WorkflowCheckpointException

import stepwell
from stepwell.agent_framework import StepwellCheckpointStorage, StepwellHistoryProvider


@pytest.mark.on_a_server
async def test_a_history_comes_back_and_shows_as_a_conversation(well: stepwell.Well) -> None:
    history = StepwellHistoryProvider(well)
    said = [
        Message("user", ["please look at the file that I named"]),
        Message("assistant", [Content.from_function_call("c1", "look", arguments='{"a": 1}')]),
        Message("tool", [Content.from_function_result("c1", result="found it")]),
        Message("assistant", ["done"], additional_properties={"n": 1}),
    ]
    await history.save_messages("s", said[:1])
    await history.save_messages("s", said[1:])
    await history.save_messages("s", [])
    found = await StepwellHistoryProvider(well).get_messages("s")
    assert [it.to_dict() for it in found] == [it.to_dict() for it in said]
    assert await history.get_messages("other") == []
    shown = history.session("s").messages()
    assert [it.role for it in shown] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.on_a_server
async def test_checkpoints_are_kept_listed_and_deleted(well: stepwell.Well) -> None:
    storage = StepwellCheckpointStorage(well)
    made = [
        WorkflowCheckpoint(
            workflow_name="flow" if n < 3 else "other",
            graph_signature_hash="h",
            state={
                "n": n,
                "when": datetime(2026, 1, n + 1, tzinfo=timezone.utc),
                "log": ["x" * 9000],
            },
        )
        for n in range(4)
    ]
    for it in made:
        assert await storage.save(it) == it.checkpoint_id
    fresh = StepwellCheckpointStorage(well)
    assert await fresh.load(made[1].checkpoint_id) == made[1]
    assert await fresh.list_checkpoints(workflow_name="flow") == made[:3]
    assert await fresh.list_checkpoint_ids(workflow_name="other") == [made[3].checkpoint_id]
    assert await fresh.get_latest(workflow_name="flow") == made[2]
    assert await fresh.get_latest(workflow_name="none") is None
    assert await fresh.delete(made[2].checkpoint_id)
    assert not await fresh.delete(made[2].checkpoint_id)
    with pytest.raises(WorkflowCheckpointException):
        await fresh.load(made[2].checkpoint_id)
    assert await fresh.get_latest(workflow_name="flow") == made[1]
