"""Moving over from another saver."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from stepwell.langgraph._saver import StepwellSaver


def copy_checkpoints(
    source: BaseCheckpointSaver[Any], target: StepwellSaver, thread_id: str | None = None
) -> int:
    """Copies the checkpoints of a thread, or of all, from another saver: `SqliteSaver`,
    `PostgresSaver`, or any other. Graphs go on from them. Threads that the target has are left.

    Returns how many checkpoints were copied.
    """
    config: RunnableConfig | None = None
    if thread_id is not None:
        config = {"configurable": {"thread_id": thread_id}}
    threads: dict[str, list[CheckpointTuple]] = defaultdict(list)
    for found in source.list(config):
        threads[str(found.config["configurable"]["thread_id"])].append(found)
    copied = 0
    for thread, checkpoints in threads.items():
        if target.well.has(target.session_of(thread)):
            continue
        for found in sorted(checkpoints, key=lambda it: it.checkpoint["id"]):
            _copy(found, target)
            copied += 1
    return copied


def _copy(found: CheckpointTuple, target: StepwellSaver) -> None:
    named = found.config["configurable"]
    at: RunnableConfig = {
        "configurable": {
            "thread_id": str(named["thread_id"]),
            "checkpoint_ns": named.get("checkpoint_ns", ""),
        }
    }
    if found.parent_config is not None:
        parent = found.parent_config["configurable"]["checkpoint_id"]
        at["configurable"]["checkpoint_id"] = parent
    # Every value is new here. What an earlier checkpoint has, too, is stored once all the same.
    versions = found.checkpoint["channel_versions"]
    put = target.put(at, found.checkpoint, found.metadata, versions)
    by_task: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for task, channel, value in found.pending_writes or ():
        by_task[task].append((channel, value))
    for task, writes in by_task.items():
        target.put_writes(put, writes, task)
