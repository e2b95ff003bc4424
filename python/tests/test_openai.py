"""Sessions of OpenAI Agents."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")
from agents import SQLiteSession

import stepwell
from stepwell.openai import StepwellSession

LONG = "a text that is long enough to be worth naming"
CONVERSATION: list[Any] = [
    {"role": "user", "content": LONG},
    {
        "type": "reasoning",
        "id": "r1",
        "summary": [{"type": "summary_text", "text": "I think " + LONG}],
    },
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"q": "refund"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "found: " + LONG},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is " + LONG, "annotations": []}],
    },
    {"type": "item_reference", "id": "x"},
]


@pytest.mark.on_a_server
async def test_items_come_back_as_they_were_and_show_as_a_conversation(well: stepwell.Well) -> None:
    session = StepwellSession("user-1", well)
    await session.add_items(CONVERSATION)
    assert await session.get_items() == CONVERSATION
    assert await session.get_items(limit=2) == CONVERSATION[-2:]
    assert await session.get_items(limit=0) == []
    assert [it.role for it in session.session.messages()] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [hit.session for hit in well.search('"found a text"')] == ["openai.user-1"]
    plain = StepwellSession("user-2", well, transcript=False)
    await plain.add_items(CONVERSATION)
    assert await plain.get_items() == CONVERSATION
    assert plain.session.messages() == []


async def test_a_text_is_stored_once(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = StepwellSession("once", well)
        before = 0
        for n in range(20):
            await session.add_items([{"role": "user", "content": f"{n} " + "words " * 500}])
        size = session.session.info().bytes - before
        assert size < 1.3 * 20 * 3000


async def test_pop_and_clear_can_be_undone(well: stepwell.Well) -> None:
    session = StepwellSession("p", well)
    assert await session.pop_item() is None
    await session.add_items(CONVERSATION)
    assert await session.pop_item() == CONVERSATION[-1]
    assert await session.pop_item() == CONVERSATION[-2]
    assert await session.get_items() == CONVERSATION[:-2]
    await session.add_items([{"role": "user", "content": "other"}])
    assert (await session.get_items())[-1] == {"role": "user", "content": "other"}
    await session.clear_session()
    assert await session.get_items() == []
    session.session.undo()
    assert len(await session.get_items()) == len(CONVERSATION) - 1
    erasing = StepwellSession("p", well, erase_on_clear=True)
    await erasing.clear_session()
    assert not well.has("openai.p")


async def test_random_operations_do_what_sqlite_does(well: stepwell.Well, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    ours = StepwellSession("r", well)
    theirs = SQLiteSession("r", tmp_path / "theirs.db")
    for step in range(60):
        move = rng.random()
        if move < 0.6:
            items = [
                {"role": "user", "content": f"{step}.{n} " + "x" * rng.randrange(60)}
                for n in range(rng.randrange(4))
            ]
            await ours.add_items(items)
            await theirs.add_items(items)  # type: ignore[arg-type]
        elif move < 0.9:
            assert await ours.pop_item() == await theirs.pop_item()
        elif move < 0.95:
            await ours.clear_session()
            await theirs.clear_session()
        limit = rng.choice([None, 0, 1, 3, -1])
        assert await ours.get_items(limit) == await theirs.get_items(limit)
    theirs.close()


async def test_concurrent_pops_take_each_item_once(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = StepwellSession("c", well)
        await session.add_items([{"role": "user", "content": str(n)} for n in range(12)])
        popped = await asyncio.gather(*(session.pop_item() for _ in range(15)))
        assert sorted(int(it["content"]) for it in popped if it) == list(range(12))


async def test_a_compaction_replaces_at_once_or_not_at_all(well: stepwell.Well) -> None:
    session = StepwellSession("k", well)
    await session.add_items(CONVERSATION)
    taken = await session._get_compaction_snapshot(4)
    assert taken is not None
    assert (taken.items, taken.complete) == (CONVERSATION[-4:], False)
    assert await taken.replace_suffix(1, [{"role": "assistant", "content": "summary"}])  # type: ignore[list-item]
    assert await session.get_items() == [
        *CONVERSATION[:3],
        {"role": "assistant", "content": "summary"},
    ]
    late = await session._get_compaction_snapshot(4)
    assert late is not None
    await session.add_items([{"role": "user", "content": "between"}])
    assert not await late.replace_suffix(0, [])
