"""Processes that are killed while a graph runs, and several on one thread.

STEPWELL_PYTHON_KILLS says how often: `./check` kills a few times, the long form 200.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")

import stepwell
from stepwell.langgraph import StepwellSaver

KILLS = int(os.environ.get("STEPWELL_PYTHON_KILLS", "3"))
WORKER = str(Path(__file__).with_name("graph_worker.py"))


def kill_again_and_again(store: str) -> None:
    from graph_worker import graph

    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    config: Any = {"configurable": {"thread_id": "t"}}
    acknowledged = 0
    for _ in range(KILLS):
        command = [sys.executable, WORKER, store, "t", "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            for _ in range(rng.randrange(1, 4)):
                acknowledged = int(worker.stdout.readline())
            worker.kill()
            # What it said before it died counts, too.
            acknowledged = max([acknowledged, *map(int, worker.stdout.read().split())])
        with stepwell.open(store) as well:
            saver = StepwellSaver(well)
            found = saver.get_tuple(config)
            assert found is not None
            messages = found.checkpoint["channel_values"]["messages"]
            assert len(messages) >= acknowledged
            # It goes on where it stopped: what a killed turn left undone is done.
            state = graph(saver).invoke(None, config)
            acknowledged = len(state["messages"])
            assert [it.id for it in state["messages"]][: len(messages)] == [
                it.id for it in messages
            ]
            assert well.session("langgraph.t").verify().sound


def test_nothing_acknowledged_is_lost_in_a_folder(folder: Path) -> None:
    kill_again_and_again(str(folder))


def test_nothing_acknowledged_is_lost_on_a_server(server: str) -> None:
    kill_again_and_again(server)


def test_four_processes_on_one_thread_corrupt_nothing(folder: Path) -> None:
    command = [sys.executable, WORKER, str(folder), "shared", "5"]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for worker in workers:
        _, told = worker.communicate(timeout=300)
        # LangGraph has no lock between processes: each turn is whole, the last one counts.
        assert worker.returncode == 0, told
    with stepwell.open(folder) as well:
        saver = StepwellSaver(well)
        config: Any = {"configurable": {"thread_id": "shared"}}
        rows = list(saver.list(config))
        assert len(rows) == 4 * 5 * 4
        by_id = {it.config["configurable"]["checkpoint_id"]: it for it in rows}
        for it in rows:
            if it.parent_config is not None:
                assert it.parent_config["configurable"]["checkpoint_id"] in by_id
        assert well.session("langgraph.shared").verify().sound


def test_a_graph_is_told_who_holds_its_session(folder: Path) -> None:
    from graph_worker import graph

    with stepwell.open(folder) as well:
        config: Any = {"configurable": {"thread_id": "held"}}
        graph(StepwellSaver(well)).invoke({"messages": [("user", "one")]}, config)
        with (
            stepwell.open(folder) as other,
            other.hold("langgraph.held"),
            pytest.raises(stepwell.BusyError, match="in use by process"),
        ):
            graph(StepwellSaver(well)).invoke({"messages": [("user", "two")]}, config)


def test_a_hold_does_not_lock_out_its_own_holder(folder: Path) -> None:
    from graph_worker import graph

    with stepwell.open(folder) as well, stepwell.open(folder) as other:
        config: Any = {"configurable": {"thread_id": "held"}}
        graph(StepwellSaver(well)).invoke({"messages": [("user", "one")]}, config)
        with well.hold("langgraph.held"):
            state = graph(StepwellSaver(well)).invoke({"messages": [("user", "two")]}, config)
            assert len(state["messages"]) == 6
            with pytest.raises(stepwell.BusyError, match="in use by process"):
                graph(StepwellSaver(other)).invoke({"messages": [("user", "no")]}, config)
            StepwellSaver(well).prune(["held"])
        graph(StepwellSaver(other)).invoke({"messages": [("user", "three")]}, config)
