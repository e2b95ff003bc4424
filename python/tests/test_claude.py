"""Transcripts of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk")
from claude_agent_sdk.testing import run_session_store_conformance

import stepwell
from stepwell.claude import StepwellSessionStore

KEY: Any = {"project_key": "proj", "session_id": "11111111-2222-4333-8444-555555555555"}


async def test_every_contract_holds(tmp_path: Path) -> None:
    numbers = itertools.count()
    await run_session_store_conformance(
        lambda: StepwellSessionStore(tmp_path / f"store-{next(numbers)}")
    )


async def test_every_contract_holds_in_memory() -> None:
    await run_session_store_conformance(lambda: StepwellSessionStore(stepwell.memory()))


def line(n: int, role: str, content: Any) -> Any:
    return {
        "type": role,
        "uuid": f"u{n}",
        "timestamp": "2026-11-16T00:00:00Z",
        "message": {"role": role, "content": content},
    }


async def test_a_transcript_shows_as_a_conversation(well: stepwell.Well) -> None:
    store = StepwellSessionStore(well)
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}
    lines = [
        line(1, "user", "read the file that is named here"),
        line(2, "assistant", [{"type": "text", "text": "I read."}, use]),
        line(3, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "print(1)"}]),
        {"type": "custom-title", "title": "x"},
    ]
    await store.append(KEY, lines)
    assert await store.load(KEY) == lines
    shown = store.session(KEY).messages()
    assert [it.role for it in shown] == ["user", "assistant", "tool"]
    assert store.session(KEY).info().task == "read the file that is named here"
    assert len(well.search("named here")) == 1
    sub: Any = {**KEY, "subpath": "subagents/agent-1"}
    await store.append(sub, [line(9, "assistant", "from below")])
    assert await store.list_subkeys(KEY) == ["subagents/agent-1"]
    await store.delete(KEY)
    assert await store.load(sub) is None
    assert well.sessions(system="claude") == []


async def test_concurrent_appends_lose_nothing_and_repeat_nothing(folder: Path) -> None:
    with stepwell.open(folder) as one, stepwell.open(folder) as other:
        stores = [StepwellSessionStore(one), StepwellSessionStore(other)]
        batches = [[line(n, "user", f"said {n}") for n in range(i, i + 5)] for i in range(0, 40, 2)]
        await asyncio.gather(*(stores[n % 2].append(KEY, batch) for n, batch in enumerate(batches)))
        found = await stores[0].load(KEY)
        assert found is not None
        assert sorted(it["uuid"] for it in found) == sorted(f"u{n}" for n in range(43))
        (summary,) = await stores[1].list_session_summaries("proj")
        (listed,) = await stores[1].list_sessions("proj")
        assert summary["mtime"] == listed["mtime"]
