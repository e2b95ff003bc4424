"""Strands SDK's own code at work: it loads sessions that were written here, and writes some.

    load FOLDER SESSION AGENT MANAGER   restores an agent, goes on with it, and prints what it says
    make FOLDER                         writes sessions as the SDK does
    snap FOLDER                         writes sessions as snapshots, and prints what they hold
    group FOLDER                        writes graphs and a swarm, in both forms
"""

import base64
import json
import sys

from strands import Agent, tool
from strands.agent.conversation_manager import (
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager


class Canned(Model):
    """A model that gives the answers it was given, in order."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = None

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *args, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, *args, **kwargs):
        self.asked = plain(messages)
        answer = self.answers.pop(0) if self.answers else "no more"
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, dict):
            start = {"toolUseId": answer["id"], "name": answer["name"]}
            yield {"contentBlockStart": {"start": {"toolUse": start}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(answer["input"])}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(answer, dict) else "end_turn"}}
        usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


@tool
def weigh(flour: int, water: int) -> str:
    """Weighs a dough."""
    return str(flour + water)


def plain(value):
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: plain(it) for key, it in value.items()}
    return [plain(it) for it in value] if isinstance(value, list) else value


def load(folder, session, agent, manager):
    managers = {
        "sliding": SlidingWindowConversationManager,
        "summarizing": SummarizingConversationManager,
    }
    manager_of = FileSessionManager(session_id=session, storage_dir=folder)
    model = Canned(["gone on"])
    restored = Agent(
        agent_id=agent,
        model=model,
        tools=[weigh],
        session_manager=manager_of,
        conversation_manager=managers[manager](),
        callback_handler=None,
    )
    before = plain(restored.messages)
    restored("go on")
    found = {"restored": before, "asked": model.asked, "after": plain(restored.messages)}
    print(json.dumps({**found, "state": restored.state.get()}))


def make(folder):
    def agent(session, answers, **kwargs):
        manager = FileSessionManager(session_id=session, storage_dir=folder)
        kwargs.setdefault("agent_id", "worker")
        return Agent(
            model=Canned(answers), tools=[weigh], session_manager=manager, callback_handler=None, **kwargs
        )

    one = agent("made-tools", [{"id": "w1", "name": "weigh", "input": {"flour": 4, "water": 5}}, "it is 9 ☕"])
    one.state.set("scales", {"drift": [7, None]})
    one([{"text": "weigh 4 and 5"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n"}}}])

    window = SlidingWindowConversationManager(window_size=4, should_truncate_results=False)
    two = agent("made-sliding", [f"r{n}" for n in range(6)], conversation_manager=window)
    for n in range(6):
        two(f"m{n}")

    summaries = SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2)
    three = agent("made-summary", [f"r{n}" for n in range(4)] + ["the sum of it"], conversation_manager=summaries)
    for n in range(4):
        three(f"m{n}")
    summaries.reduce_context(three)
    three._session_manager.sync_agent(three)

    four = agent("made-redacted", ["fine"])
    four("my secret")
    redacted = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    four._session_manager.redact_latest_message(redacted, four)


def snap(folder):
    from strands.session import SnapshotSessionManager
    from strands.storage import LocalFileStorage

    def agent(answers):
        manager = SnapshotSessionManager(
            "snapped", storage=LocalFileStorage(folder), snapshot_trigger=lambda **_: True
        )
        return Agent(
            agent_id="worker", model=Canned(answers), tools=[weigh], session_manager=manager, callback_handler=None
        )

    one = agent([{"id": "w1", "name": "weigh", "input": {"flour": 4, "water": 5}}, "it is 9 ☕"])
    one.state.set("scales", {"drift": [7, None]})
    one([{"text": "weigh 4 and 5"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n"}}}])
    agent(["ten"])("once more")
    print(json.dumps(plain(agent([]).messages)))


def group(folder):
    from strands.multiagent import GraphBuilder, Swarm
    from strands.session import SnapshotSessionManager
    from strands.storage import LocalFileStorage

    class Cold(Canned):
        async def stream(self, *args, **kwargs):
            raise RuntimeError("the oven is cold")
            yield

    def graph(manager, second):
        builder = GraphBuilder()
        builder.add_node(Agent(name="plan", model=Canned(["rye"]), callback_handler=None), "plan")
        builder.add_node(Agent(name="work", model=second, callback_handler=None), "work")
        builder.add_edge("plan", "work")
        builder.set_entry_point("plan")
        builder.set_graph_id("g")
        builder.set_session_manager(manager)
        return builder.build()

    graph(FileSessionManager("graph", storage_dir=folder), Canned(["baked"]))("bake a loaf")
    snapshots = SnapshotSessionManager("graph-snapped", storage=LocalFileStorage(folder))
    graph(snapshots, Canned(["baked"]))("bake a loaf")
    try:
        graph(FileSessionManager("graph-cold", storage_dir=folder), Cold([]))("bake a loaf")
    except RuntimeError:
        pass
    solo = Agent(name="solo", model=Canned(["swum"]), callback_handler=None)
    Swarm([solo], session_manager=FileSessionManager("swarm", storage_dir=folder))("swim")


if __name__ == "__main__":
    {"load": load, "make": make, "snap": snap, "group": group}[sys.argv[1]](*sys.argv[2:])
