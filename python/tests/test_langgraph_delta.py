"""What a delta channel was built of: the claims that LangGraph makes about a saver's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

pytest.importorskip("langgraph")
from langgraph.checkpoint.base import empty_checkpoint, uuid6
from langgraph.checkpoint.serde.types import _DeltaSnapshot

import stepwell
from stepwell.langgraph import StepwellSaver


class Step(NamedTuple):
    """A checkpoint: the values that it stores, and what tasks wrote at it."""

    stored: dict[str, Any]
    written: Sequence[tuple[str, Any]]


class Thread:
    """A thread that grows step by step."""

    def __init__(self, well: stepwell.Well, *steps: Step) -> None:
        self.saver = StepwellSaver(well)
        self.at: list[Any] = []
        for number, step in enumerate(steps):
            before = self.at[-1] if self.at else {"configurable": {"thread_id": "d"}}
            versions = {name: f"{number + 1:032}.0" for name in step.stored}
            checkpoint = empty_checkpoint()
            checkpoint["id"] = str(uuid6())
            checkpoint["channel_values"] = step.stored
            checkpoint["channel_versions"] = versions
            self.at.append(self.saver.put(before, checkpoint, {"step": number}, versions))
            for name, value in step.written:
                self.saver.put_writes(self.at[-1], [(name, value)], f"task-{number}-{name}")

    async def history(self, *channels: str) -> dict[str, Any]:
        """What the last checkpoint's channels were built of; the same for sync and async."""
        found = self.saver.get_delta_channel_history(config=self.at[-1], channels=channels)
        again = await self.saver.aget_delta_channel_history(config=self.at[-1], channels=channels)
        assert repr(found) == repr(again)
        return dict(found)


def snapshot(value: Any, name: str = "log") -> Step:
    return Step({name: _DeltaSnapshot(value)}, [(name, value)])


def writes(*values: Any) -> Step:
    return Step({}, [("log", value) for value in values])


def values_of(history: Any) -> list[Any]:
    return [value for _, _, value in history["writes"]]


@pytest.mark.on_a_server
async def test_writes_come_oldest_first(well: stepwell.Well) -> None:
    thread = Thread(well, snapshot("a"), writes("b"), writes("c"), writes("d"), writes("e"))
    assert values_of((await thread.history("log"))["log"])[-3:] == ["b", "c", "d"]


async def test_the_seed_is_the_nearest_snapshot(well: stepwell.Well) -> None:
    thread = Thread(well, snapshot("old"), writes("x"), snapshot("new"), writes("y"), writes("z"))
    found = (await thread.history("log"))["log"]
    assert found["seed"] == _DeltaSnapshot("new")
    assert values_of(found) == ["new", "y"]


async def test_what_is_pending_at_the_target_is_no_history(well: stepwell.Well) -> None:
    thread = Thread(well, snapshot("a"), writes("b"), writes("pending"))
    assert "pending" not in values_of((await thread.history("log"))["log"])


async def test_each_channel_goes_back_to_its_own_seed(well: stepwell.Well) -> None:
    both = [("left", 1), ("right", 2)]
    thread = Thread(
        well,
        Step({}, both),
        Step({"left": _DeltaSnapshot("l")}, both),
        Step({}, both),
        Step({"right": _DeltaSnapshot("r")}, both),
        Step({}, both),
    )
    found = await thread.history("left", "right")
    assert (found["left"]["seed"], values_of(found["left"])) == (_DeltaSnapshot("l"), [1] * 3)
    assert (found["right"]["seed"], values_of(found["right"])) == (_DeltaSnapshot("r"), [2])


async def test_no_channels_have_no_history(well: stepwell.Well) -> None:
    assert await Thread(well, snapshot("a"), writes("b")).history() == {}


async def test_without_a_snapshot_there_is_no_seed(well: stepwell.Well) -> None:
    found = (await Thread(well, writes("a"), writes("b"), writes("c")).history("log"))["log"]
    assert "seed" not in found
    assert values_of(found) == ["a", "b"]


async def test_a_plain_value_from_before_is_a_seed(well: stepwell.Well) -> None:
    before = Step({"log": ["one", "two"]}, [])
    thread = Thread(well, writes("older"), before, writes("three"), writes("four"))
    found = (await thread.history("log"))["log"]
    assert found["seed"] == ["one", "two"]
    assert values_of(found) == ["three"]


async def test_what_was_written_at_the_seed_comes_after_it(well: stepwell.Well) -> None:
    first, second = Step({"log": [1]}, [("log", "older")]), Step({"log": [1, 2]}, [("log", "at")])
    thread = Thread(well, first, second, writes("behind"), writes("pending"))
    found = (await thread.history("log"))["log"]
    assert found["seed"] == [1, 2]
    assert values_of(found) == ["at", "behind"]


async def test_parallel_tasks_are_replayed_by_their_path(well: stepwell.Well) -> None:
    thread = Thread(well, Step({"log": _DeltaSnapshot(0)}, []), Step({}, []))
    for task, path in (("a", "~pull, 2"), ("z", "~pull, 1"), ("m", "~pull, 3")):
        thread.saver.put_writes(thread.at[0], [("log", path[-1])], task, path)
    assert values_of((await thread.history("log"))["log"]) == ["1", "2", "3"]


async def test_what_has_no_path_is_replayed_first(well: stepwell.Well) -> None:
    thread = Thread(well, Step({"log": _DeltaSnapshot(0)}, []), Step({}, []))
    thread.saver.put_writes(thread.at[0], [("log", "node")], "a", "~pull, node")
    thread.saver.put_writes(thread.at[0], [("log", "input")], "z")
    assert values_of((await thread.history("log"))["log"]) == ["input", "node"]
