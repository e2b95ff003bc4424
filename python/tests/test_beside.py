"""Pruning, deleting and copying beside graphs that run in other processes.

STEPWELL_PYTHON_ROUNDS says how often: `./check` tries a few times, the long form 200.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from beside_worker import FORMS, graph_of, told

import stepwell
from stepwell.langgraph import StepwellSaver

ROUNDS = int(os.environ.get("STEPWELL_PYTHON_ROUNDS", "10"))
WORKER = str(Path(__file__).with_name("beside_worker.py"))


class Worker:
    """A process that runs a graph on one thread after the other."""

    def __init__(self, store: str, form: str, rounds: int, folder: Path) -> None:
        self.form = form
        command = [sys.executable, WORKER, store, form, str(rounds)]
        # Files, so that it never waits for a reader.
        self.out, self.err = Path(f"{folder}/{form}.out"), Path(f"{folder}/{form}.err")
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)

    def said(self) -> list[dict[str, Any]]:
        """What every checkpoint of each thread held, as the process that put it knew it."""
        ended = self.process.wait(300)
        assert ended == 0, self.err.read_text()[-3000:]
        return [json.loads(line) for line in self.out.read_text().splitlines()]


def erase_at_random(saver: StepwellSaver, rng: random.Random) -> list[str]:
    """Prunes, deletes or copies a thread that a graph may be working on. Returns the copy."""
    threads = [it.source_id or "" for it in saver.well.sessions(source="langgraph", limit=6)]
    threads = [it for it in threads if "copy" not in it]
    if not threads:
        return []
    thread = rng.choice(threads)
    match rng.randrange(3):
        case 0:
            saver.prune([thread])
        case 1:
            # A run that has ended, not the one that goes on.
            config: Any = {"configurable": {"thread_id": thread}}
            runs = sorted({str(it.metadata.get("run_id")) for it in saver.list(config)})
            if len(runs) > 2:
                saver.delete_for_runs([rng.choice(runs[:-2])])
        case _:
            copy = f"{thread}.copy{rng.randrange(2)}"
            saver.copy_thread(thread, copy)
            if rng.random() < 0.3:
                saver.prune([copy])
            return [copy]
    return []


def beside(store: str, rounds: int, folder: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    stepwell.open(store).close()
    workers = [Worker(store, form, rounds, folder) for form in FORMS]
    with stepwell.open(store) as well:
        copies: set[str] = set()
        saver = StepwellSaver(well)
        while any(worker.process.poll() is None for worker in workers):
            copies.update(erase_at_random(saver, rng))
        for worker in workers:
            for known in worker.said():
                fresh = graph_of(worker.form, StepwellSaver(well))
                thread = known["thread"]
                for kept in [thread, *sorted(it for it in copies if it.startswith(f"{thread}."))]:
                    config: Any = {"configurable": {"thread_id": kept}}
                    states = list(fresh.get_state_history(config))
                    for found in states:
                        id = found.config["configurable"]["checkpoint_id"]
                        assert told(found.values) == known["states"][id], (kept, id)
                head = fresh.get_state({"configurable": {"thread_id": thread}})
                assert told(head.values) == known["head"], thread
        for info in well.sessions(source="langgraph"):
            assert well.session(info.id).verify().sound


def test_a_thread_that_is_pruned_beside_a_graph_equals_one_that_never_was(tmp_path: Path) -> None:
    beside(str(tmp_path / "store"), ROUNDS, tmp_path)


def test_the_same_on_a_server(server: str, tmp_path: Path) -> None:
    # Each step is some round trips here.
    beside(server, max(ROUNDS // 5, 2), tmp_path)
