"""What a save and a read cost, beside each framework's own store.

    python bench/python/bench.py [PART…]

Parts: langgraph, graph, openai, strands, adk, claude, list. Both sides flush each save (SQLite in
WAL mode, synchronous=FULL), but for Strands' files, which are not flushed. The two are measured
in turns; what is printed are medians, and ours divided by theirs.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import stepwell

SAMPLES = 15


def median(times: list[float]) -> float:
    return statistics.median(times) * 1000


def show(
    what: str,
    ours: float,
    theirs: float | None = None,
    unit: str = "ms",
    goal: float | None = None,
) -> None:
    """Prints a figure; `goal` is the most that it may be, or that its ratio may be."""
    line = f"{what:<62} {ours:>10.3f} {unit:<2}"
    line += (
        " " * 28
        if theirs is None
        else f"  theirs {theirs:>9.3f} {unit:<2} {ours / theirs:>6.2f}x"
    )
    if goal is not None:
        found = ours if theirs is None else ours / theirs
        line += f"  goal {goal:g}: {'met' if found <= goal else 'MISSED'}"
    print(line.rstrip(), flush=True)


def in_turns(
    ours: Callable[[], Any], theirs: Callable[[], Any], samples: int = SAMPLES
) -> tuple[float, float]:
    """Medians of two calls, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(samples):
        for call, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return median(times[0]), median(times[1])


async def in_turns_async(
    ours: Callable[[], Awaitable[Any]],
    theirs: Callable[[], Awaitable[Any]],
    samples: int = SAMPLES,
) -> tuple[float, float]:
    """The same for coroutines."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(samples):
        for call, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            await call()
            taken.append(time.perf_counter() - start)
    return median(times[0]), median(times[1])


def alone(call: Callable[[], Any], samples: int = SAMPLES) -> float:
    """The median of a call, with nothing in between."""
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def size_of(folder: Path, name: str) -> int:
    """Bytes of a SQLite file, its log written back."""
    connection = sqlite3.connect(folder / name)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return (folder / name).stat().st_size


def langgraph(folder: Path) -> None:
    """Saving and reading a state of many messages, of which one is new each time."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    from stepwell.langgraph import StepwellSaver

    puts: dict[int, float] = {}
    for count in (10, 100, 1000, 5000):
        with (
            stepwell.open(folder / f"lg-{count}") as well,
            stepwell.open(folder / f"short-{count}") as other,
        ):
            connection = sqlite3.connect(
                folder / f"lg-{count}.db", check_same_thread=False
            )
            ours = Putting(StepwellSaver(well, transcript=False), 10)
            theirs = Putting(SqliteSaver(connection), 10)
            # As a thread grows: message by message on our side, which is what is read then.
            while len(ours.messages) < count:
                ours.put()
            if count == 5000:
                # A put of theirs in between takes its whole state through the caches.
                what = "LangGraph put at 5,000, beside put at 10 – 25"
                short = Putting(StepwellSaver(other, transcript=False), 10)
                short.put()
                show(what, *in_turns(ours.put, short.put), goal=3)
            theirs.messages = list(ours.messages)
            theirs.put()
            goal = 0.1 if count == 5000 else None
            puts[count], other_put = in_turns(ours.put, theirs.put, 40)
            show(f"LangGraph put at {count}", puts[count], other_put, goal=goal)
            reads(ours, theirs, well, count)
            connection.close()
    what = "LangGraph put at 5,000, beside put at 10, each after a put of theirs"
    show(what, puts[5000], puts[10])
    size(folder)


def reads(ours: Putting, theirs: Putting, well: stepwell.Well, count: int) -> None:
    """Reading a state that this process put, and by a saver that remembers nothing."""
    what = f"LangGraph get_tuple at {count}"
    show(what, *in_turns(ours.get, theirs.get, 21), goal=1.1)
    # What nobody holds any more is given out again: here the last answer is held.
    held = in_turns(ours.get_and_hold, theirs.get_and_hold, 21)
    show(f"{what}, the last one held", *held, goal=1.1)
    made = functools.partial(Putting.by_new_saver, ours, well)
    show(f"{what}, by a new saver", *in_turns(made, theirs.get, 21), goal=1.1)
    # As by a process that has not seen the thread.
    cold = functools.partial(Putting.unseen, ours, well)
    show(f"{what}, never seen", *in_turns(cold, theirs.get, 21), goal=1.1)


class Putting:
    """Puts a state again and again, with one more message each time."""

    def __init__(self, saver: Any, count: int) -> None:
        from langchain_core.messages import HumanMessage
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        self.make = HumanMessage
        self.saver = saver
        self.text = "word " * 200
        self.messages = [
            HumanMessage(f"{n} {self.text}", id=f"m{n}") for n in range(count)
        ]
        self.at: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        self.version = 0
        self.other = type("Other", (JsonPlusSerializer,), {})()
        self.held: Any = None

    def put(self) -> None:
        from langgraph.checkpoint.base import empty_checkpoint, uuid6

        self.version += 1
        new = self.make(f"new {self.version} {self.text}", id=f"n{self.version}")
        self.messages = [*self.messages, new]
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6())
        checkpoint["channel_values"] = {"messages": self.messages}
        checkpoint["channel_versions"] = {"messages": self.version}
        self.at = self.saver.put(
            self.at, checkpoint, {"step": 1}, {"messages": self.version}
        )

    def by_new_saver(self, well: stepwell.Well, serde: Any = None) -> None:
        """Reads by another saver of the same store."""
        made = copy.copy(self)
        made.saver = type(self.saver)(well, transcript=False, serde=serde)
        made.get()

    def unseen(self, well: stepwell.Well) -> None:
        """Reads by a saver that remembers nothing, and whose memory ends with it: one whose
        serializer is not LangGraph's shares nothing."""
        self.by_new_saver(well, self.other)

    def get(self) -> None:
        assert self.saver.get_tuple({"configurable": {"thread_id": "t"}}) is not None

    def get_and_hold(self) -> None:
        self.held = self.saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert self.held is not None


def letters(rng: random.Random) -> str:
    """1,000 random letters and spaces: the least that compression can do."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz     ", k=1000))


def prose(rng: random.Random) -> str:
    """1,000 characters of sentences: lines of the project's own pages, in no order."""
    return " ".join(rng.choices(LINES, k=40))[:1000]


DOCS = Path(__file__).parents[2] / "docs"
LINES = [
    line for page in sorted(DOCS.glob("*.md")) for line in page.read_text().splitlines()
]


def size(folder: Path) -> None:
    """Bytes kept for each byte of payload, after 1,000 saves with what tasks wrote."""
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint, uuid6

    from stepwell.langgraph import StepwellSaver

    for text in (letters, prose):
        place = folder / f"size-{text.__name__}"
        with stepwell.open(place) as well:
            saver, messages, payload = StepwellSaver(well, transcript=False), [], 0
            at: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
            rng = random.Random(1)
            for n in range(1000):
                messages = [*messages, HumanMessage(text(rng), id=f"m{n}")]
                payload += len(messages[-1].text.encode())
                checkpoint = empty_checkpoint()
                checkpoint["id"] = str(uuid6())
                checkpoint["channel_values"] = {"messages": messages}
                checkpoint["channel_versions"] = {"messages": n + 1}
                at = saver.put(at, checkpoint, {"step": n}, {"messages": n + 1})
                saver.put_writes(at, [("messages", [messages[-1]])], f"t{n}")
        kept = size_of(place, "stepwell.db") / payload
        show(
            f"LangGraph 1,000 puts + writes of {text.__name__}, bytes / payload",
            kept,
            unit="x",
            goal=2.5,
        )


def graph(folder: Path) -> None:
    """A real graph: 200 turns, 400 messages, with its transcript."""
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph

    from stepwell.langgraph import StepwellSaver

    def run(saver: Any, text: Callable[[random.Random], str]) -> tuple[float, int]:
        rng = random.Random(1)
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage(text(rng))]})
        builder.add_edge(START, "answer")
        made: Any = builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        taken, payload = [], 0
        for _ in range(200):
            asked = text(rng)
            start = time.process_time()
            state = made.invoke({"messages": [("user", asked)]}, config)
            taken.append(time.process_time() - start)
            payload += sum(len(it.text.encode()) for it in state["messages"][-2:])
        return statistics.median(taken[-20:]) * 1000, payload

    for text in (prose, letters):
        name = f"graph-{text.__name__}"
        with stepwell.open(folder / f"{name}-alone") as well:
            _, payload = run(StepwellSaver(well, transcript=False), text)
        alone = size_of(folder / f"{name}-alone", "stepwell.db") / payload
        what = f"LangGraph real graph of {text.__name__}, no transcript"
        show(f"{what}, bytes / payload", alone, unit="x", goal=4)
        with stepwell.open(folder / name) as well:
            ours, payload = run(StepwellSaver(well), text)
        connection = sqlite3.connect(folder / f"{name}.db", check_same_thread=False)
        theirs, _ = run(SqliteSaver(connection), text)
        connection.close()
        show(f"LangGraph a turn at 400 messages of {text.__name__}, CPU", ours, theirs)
        mine = size_of(folder / name, "stepwell.db") / payload
        kept = size_of(folder, f"{name}.db") / payload
        what = f"LangGraph real graph of {text.__name__}, bytes / payload"
        show(f"{what} (theirs {kept:.0f})", mine, unit="x", goal=4)


async def openai(folder: Path) -> None:
    """Adding and reading items."""
    from agents import SQLiteSession

    from stepwell.openai import StepwellSession

    well = stepwell.open(folder / "openai")
    ours, theirs = StepwellSession("s", well), SQLiteSession("s", folder / "openai.db")
    item: Any = {"role": "user", "content": "word " * 200}
    for _ in range(200):
        await ours.add_items([item])
        await theirs.add_items([item])
    show(
        "OpenAI add_items",
        *await in_turns_async(
            lambda: ours.add_items([item]), lambda: theirs.add_items([item]), 60
        ),
        goal=1,
    )
    show(
        "OpenAI get_items(20)",
        *await in_turns_async(
            lambda: ours.get_items(20), lambda: theirs.get_items(20), 60
        ),
    )
    show("OpenAI get_items()", *await in_turns_async(ours.get_items, theirs.get_items))
    well.close()


def strands(folder: Path) -> None:
    """Adding a message."""
    from strands.session.file_session_manager import FileSessionManager
    from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

    from stepwell.strands import StepwellRepository

    well = stepwell.open(folder / "strands")
    ours: Any = StepwellRepository(well)
    theirs: Any = FileSessionManager("s", storage_dir=str(folder / "strands-files"))
    ours.create_session(Session("s", SessionType.AGENT))
    for it in (ours, theirs):
        it.create_agent("s", SessionAgent("default", {}, {}))
    numbers = {id(ours): 0, id(theirs): 0}

    def add(it: Any) -> None:
        numbers[id(it)] += 1
        message: Any = {"role": "user", "content": [{"text": "word " * 200}]}
        it.create_message(
            "s", "default", SessionMessage.from_message(message, numbers[id(it)])
        )

    show(
        "Strands create_message (files: not flushed)",
        *in_turns(lambda: add(ours), lambda: add(theirs), 60),
    )
    show(
        "Strands list_messages of 60",
        *in_turns(
            lambda: ours.list_messages("s", "default"),
            lambda: theirs.list_messages("s", "default"),
        ),
    )
    well.close()


async def adk(folder: Path) -> None:
    """Appending an event, reading a session."""
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import GetSessionConfig
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types

    from stepwell.adk import StepwellSessionService

    well = stepwell.open(folder / "adk")
    services: list[Any] = [
        StepwellSessionService(well),
        SqliteSessionService(str(folder / "adk.db")),
    ]
    who: Any = {"app_name": "a", "user_id": "u"}
    sessions = [await it.create_session(**who, session_id="s") for it in services]

    def event() -> Event:
        return Event(
            author="user",
            content=types.Content(role="user", parts=[types.Part(text="word " * 200)]),
        )

    show(
        "ADK append_event",
        *await in_turns_async(
            lambda: services[0].append_event(sessions[0], event()),
            lambda: services[1].append_event(sessions[1], event()),
            60,
        ),
        goal=1,
    )
    config = GetSessionConfig(num_recent_events=20)
    show(
        "ADK get_session(20)",
        *await in_turns_async(
            lambda: services[0].get_session(**who, session_id="s", config=config),
            lambda: services[1].get_session(**who, session_id="s", config=config),
        ),
    )
    well.close()


async def claude(folder: Path) -> None:
    """Batches of 20 lines; nobody else ships a durable store."""
    from stepwell.claude import StepwellSessionStore

    well = stepwell.open(folder / "claude")
    store = StepwellSessionStore(well)
    key: Any = {"project_key": "p", "session_id": "s"}
    taken = []
    for n in range(40):
        message = {"role": "user", "content": "word " * 100}
        batch: Any = [
            {"type": "user", "uuid": f"{n}-{i}", "message": message} for i in range(20)
        ]
        start = time.perf_counter()
        await store.append(key, batch)
        taken.append(time.perf_counter() - start)
    show("Claude append of 20 lines", median(taken))
    start = time.perf_counter()
    await store.load(key)
    show("Claude load of 800 lines", (time.perf_counter() - start) * 1000)
    well.close()


def listing(folder: Path) -> None:
    """The newest 50 of 10,000 sessions."""
    with stepwell.open(folder / "list") as well:
        import json

        for n in range(0, 10_000, 500):
            writes = [
                {
                    "create": {
                        "created": {
                            "id": f"langgraph.t{i}",
                            "task": "x",
                            "driver": "external",
                            "source": {"system": "langgraph", "id": f"t{i}"},
                        }
                    }
                }
                for i in range(n, n + 500)
            ]
            well.core.batch(json.dumps(writes))
        taken = []
        for _ in range(30):
            start = time.perf_counter()
            assert len(well.sessions(source="langgraph", limit=50)) == 50
            taken.append(time.perf_counter() - start)
        show("newest 50 of 10,000 sessions", median(taken), goal=1)


PARTS: dict[str, Callable[[Path], Any]] = {
    "langgraph": langgraph,
    "graph": graph,
    "openai": openai,
    "strands": strands,
    "adk": adk,
    "claude": claude,
    "list": listing,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory(dir=".") as scratch:
            done = PARTS[name](Path(scratch))
            if done is not None:
                asyncio.run(done)
