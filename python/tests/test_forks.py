"""A saver that several threads use, and whose process forks meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langgraph.checkpoint.base import empty_checkpoint, uuid6
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import stepwell
from stepwell.langgraph import StepwellSaver, StepwellStore

PATIENCE = 60


def put(saver: StepwellSaver, thread: str, text: str) -> None:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = str(uuid6())
    checkpoint["channel_values"] = {"said": [text]}
    checkpoint["channel_versions"] = {"said": 1}
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    saver.put(config, checkpoint, {}, {"said": 1})


def in_child(work: Callable[[], None]) -> int | None:
    """Forks and works in the child. Returns how it ended; None, if it did not."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.shared_memory
def test_a_child_works_that_was_forked_while_others_put(folder: Path) -> None:
    with stepwell.open(folder) as well:
        stop = threading.Event()
        store = StepwellStore(well)

        def write(number: int) -> None:
            saver = StepwellSaver(well)
            while not stop.is_set():
                put(saver, f"t{number}", "from the parent")
                store.put(("a",), f"{number}", {"n": number})

        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for writer in writers:
            writer.start()

        def work() -> None:
            saver = StepwellSaver(well)
            for number in range(3):
                put(saver, f"t{number}", "from the child")
                found = saver.get_tuple({"configurable": {"thread_id": f"t{number}"}})
                assert found is not None
            store.put(("a",), "child", {})

        try:
            assert [in_child(work) for _ in range(10)] == [0] * 10
        finally:
            stop.set()
            for writer in writers:
                writer.join()


def test_a_put_waits_for_none_of_another_thread(folder: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    class Waiting(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            if obj == ["slow"]:
                reached.set()
                assert go_on.wait(PATIENCE)
            return super().dumps_typed(obj)

    with stepwell.open(folder) as well:
        saver = StepwellSaver(well, serde=Waiting())
        slow = threading.Thread(target=put, args=(saver, "slow", "slow"))
        slow.start()
        assert reached.wait(PATIENCE)
        quick = threading.Thread(target=put, args=(saver, "quick", "quick"))
        quick.start()
        quick.join(PATIENCE / 6)
        waited = quick.is_alive()
        go_on.set()
        slow.join()
        quick.join()
        assert not waited
