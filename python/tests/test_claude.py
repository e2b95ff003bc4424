"""Transcripts of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk")
from claude_agent_sdk.testing import run_session_store_conformance
from test_import import imported, run

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


@pytest.mark.on_a_server
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
    assert well.sessions(source="claude") == []


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


def transcript(folder: Path, lines: list[Any], name: str) -> Path:
    """The file that Claude Code writes of the same session."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def full(n: int, role: str, content: Any, **more: Any) -> Any:
    parent = f"00000000-0000-4000-8000-{n - 1:012}" if n else None
    return {
        **line(n, role, content),
        "uuid": f"00000000-0000-4000-8000-{n:012}",
        "parentUuid": parent,
        "sessionId": KEY["session_id"],
        "isSidechain": False,
        "cwd": "/somewhere",
        **more,
    }


async def test_what_the_sdk_keeps_and_its_file_imported_are_one_session(tmp_path: Path) -> None:
    lines = [full(0, "user", "look at the harbour"), full(1, "assistant", "I look.")]
    told = [full(0, "user", "inside", isSidechain=True, agentId="a1")]
    with stepwell.open(tmp_path / ".stepwell") as well:
        store = StepwellSessionStore(well)
        await store.append(KEY, lines)
        sub: Any = {**KEY, "subpath": "subagents/agent-a1"}
        await store.append(sub, told)
        assert store.session(KEY).id == KEY["session_id"]
    name = KEY["session_id"]
    file = transcript(tmp_path / "projects", lines, name)
    transcript(tmp_path / "projects" / name / "subagents", told, "agent-a1")
    assert imported(tmp_path, file) == (0, 2)
    assert len(run(tmp_path, "sessions")) == 1
    # What Claude Code went on with without the store comes over, and the SDK goes on from there.
    more = [full(2, "user", "and the ships?"), full(3, "assistant", "Three of them.")]
    transcript(tmp_path / "projects", lines + more, name)
    told_of = [it["imported"] for it in run(tmp_path, "import", str(file))]
    assert sorted(told_of) == ["unchanged", "updated"]
    assert imported(tmp_path, file) == (0, 2)
    with stepwell.open(tmp_path / ".stepwell") as well:
        store = StepwellSessionStore(well)
        assert await store.load(KEY) == lines + more
        await store.append(KEY, [*more, full(4, "user", "good")])
        found = await store.load(KEY)
        assert found == [*lines, *more, full(4, "user", "good")]
        said = [it.text for it in store.session(KEY).messages()]
        assert said[-3:] == ["and the ships?", "Three of them.", "good"]
        assert await store.list_sessions("proj")
        assert await store.list_subkeys(KEY) == ["subagents/agent-a1"]
        assert store.session(KEY).verify().sound


async def test_a_session_that_was_imported_before_keeps_its_name(tmp_path: Path) -> None:
    lines = [full(0, "user", "look at the harbour"), full(1, "assistant", "I look.")]
    file = transcript(tmp_path / "projects", lines, KEY["session_id"])
    assert imported(tmp_path, file) == (1, 0)
    with stepwell.open(tmp_path / ".stepwell") as well:
        store = StepwellSessionStore(well)
        assert await store.load(KEY) is None
        await store.append(KEY, lines)
        assert store.session(KEY).id != KEY["session_id"]
        assert await store.load(KEY) == lines
    assert imported(tmp_path, file) == (0, 1)


async def test_one_name_in_two_projects_is_two_sessions(well: stepwell.Well) -> None:
    store = StepwellSessionStore(well)
    other: Any = {**KEY, "project_key": "other"}
    await store.append(KEY, [line(1, "user", "here")])
    await store.append(other, [line(2, "user", "there")])
    for fresh in (store, StepwellSessionStore(well)):
        assert [it["uuid"] for it in await fresh.load(KEY) or ()] == ["u1"]
        assert [it["uuid"] for it in await fresh.load(other) or ()] == ["u2"]
