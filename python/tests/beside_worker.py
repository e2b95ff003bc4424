"""A process that runs a graph on one thread after the other, and says what each checkpoint held.

    beside_worker.py STORE FORM ROUNDS

Each round has a thread of its own, `FORM.ROUND`. The checkpoints are kept a second time, in
memory, where nobody prunes them.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from stepwell.langgraph import StepwellSaver

FORMS = ("growing", "window", "delta")


def joined(state: list[Any], writes: Any) -> list[Any]:
    return [*state, *(it for write in writes for it in write)]


class Growing(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    fixed: str


class Delta(TypedDict):
    messages: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=7)]
    fixed: str


def graph_of(form: str, saver: BaseCheckpointSaver[Any]) -> Any:
    """Two nodes; the first adds, the second adds, and of a window takes away."""

    def first(state: Any) -> Any:
        text = f"first {len(state['messages'])} " + "long " * 30
        return {"messages": [text if form == "delta" else AIMessage(text)]}

    def second(state: Any) -> Any:
        if form == "delta":
            return {"messages": [f"second {len(state['messages'])}"]}
        some: list[Any] = [AIMessage(f"second {len(state['messages'])}")]
        if form == "window":
            some += [RemoveMessage(id=str(it.id)) for it in state["messages"][1:-6]]
        return {"messages": some}

    builder = StateGraph(Delta if form == "delta" else Growing)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=saver)


def told(values: Any) -> Any:
    """A state as JSON tells it."""
    messages = [it if isinstance(it, str) else [it.id, it.text] for it in values["messages"]]
    return {"messages": messages, "fixed": values.get("fixed")}


class Twice(InMemorySaver):
    """Keeps everything in memory as well, under the same ids."""

    def __init__(self, kept: StepwellSaver) -> None:
        super().__init__()
        self.kept = kept

    def get_tuple(self, config: Any) -> Any:
        return self.kept.get_tuple(config)

    def get_delta_channel_history(self, *, config: Any, channels: Any) -> Any:
        return self.kept.get_delta_channel_history(config=config, channels=channels)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        super().put(config, checkpoint, metadata, new_versions)
        return self.kept.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        self.kept.put_writes(config, writes, task_id, task_path)

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.kept.get_next_version(current, channel)


def main(store: str, form: str, rounds: int) -> None:
    twice = Twice(StepwellSaver(store))
    graph = graph_of(form, twice)
    for number in range(rounds):
        thread = f"{form}.{number}"
        for turn in range(6 + number % 5):
            said: Any = f"turn {turn}" if form == "delta" else ("user", f"turn {turn}")
            given = {"messages": [said], **({} if turn else {"fixed": "x" * 600})}
            config: Any = {"configurable": {"thread_id": thread, "run_id": f"{thread}.{turn:03}"}}
            graph.invoke(given, config, durability="sync")
    alone = InMemorySaver()
    alone.storage, alone.writes, alone.blobs = twice.storage, twice.writes, twice.blobs
    known = graph_of(form, alone)
    for number in range(rounds):
        config = {"configurable": {"thread_id": f"{form}.{number}"}}
        states = {
            it.config["configurable"]["checkpoint_id"]: told(it.values)
            for it in known.get_state_history(config)
        }
        head = told(known.get_state(config).values)
        print(json.dumps({"thread": f"{form}.{number}", "head": head, "states": states}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
