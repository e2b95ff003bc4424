"""The saver under real graphs: what is kept, how little of it, and what survives."""

from __future__ import annotations

import operator
import random
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint, uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

import stepwell
from stepwell.langgraph import StepwellSaver


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    count: Annotated[int, operator.add]


def grow(left: list[str], writes: list[list[str]]) -> list[str]:
    return [*left, *(it for write in writes for it in write)]


class Delta(TypedDict):
    log: Annotated[list[str], DeltaChannel(grow, snapshot_frequency=7)]


def talker(saver: Any, **options: Any) -> Any:
    """A graph that answers each message."""

    def answer(state: State) -> Any:
        said = f"answer {len(state['messages'])}"
        return {"messages": [AIMessage(said)], "count": 1}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver, **options)


def config(thread: str, **named: Any) -> Any:
    return {"configurable": {"thread_id": thread, **named}}


def said(text: str) -> Any:
    return {"messages": [HumanMessage(text)], "count": 0}


def test_a_thread_goes_on_in_another_process_and_shows_as_a_conversation(folder: Path) -> None:
    with stepwell.open(folder) as well:
        talker(StepwellSaver(well)).invoke(said("hello graph"), config("1"))
    with stepwell.open(folder) as well:
        saver = StepwellSaver(well)
        state = talker(saver).invoke(said("again"), config("1"))
        assert [it.text for it in state["messages"]] == [
            "hello graph",
            "answer 1",
            "again",
            "answer 3",
        ]
        session = well.session("langgraph.1")
        assert [(it.role, it.text) for it in session.messages()] == [
            ("user", "hello graph"),
            ("assistant", "answer 1"),
            ("user", "again"),
            ("assistant", "answer 3"),
        ]
        info = session.info()
        assert (info.source, info.source_id, info.task) == ("langgraph", "1", "hello graph")
        assert [hit.session for hit in well.search("hello graph")] == [session.id]
        assert session.verify().sound


def test_a_long_conversation_is_written_once(folder: Path) -> None:
    with stepwell.open(folder) as well:
        saver = StepwellSaver(well, transcript=False)
        graph = talker(saver)
        for turn in range(50):
            graph.invoke(said(f"{turn} " + "word " * 100), config("long"))
        payload = sum(len(it.text) for it in graph.get_state(config("long")).values["messages"])
        # 150 checkpoints: kept whole, they would be 75 times the payload.
        assert well.session("langgraph.long").info().bytes < 12 * payload


def test_a_message_that_was_changed_in_place_is_kept_as_it_is_now(well: stepwell.Well) -> None:
    saver = StepwellSaver(well)
    first = HumanMessage("first", id="a", additional_kwargs={"tags": ["x"]})
    messages: list[Any] = [first, AIMessage("second", id="b")]
    at: Any = config("m", checkpoint_ns="")
    for change in (
        lambda: None,
        lambda: setattr(first, "content", "changed"),
        lambda: first.additional_kwargs["tags"].append("y"),
        lambda: setattr(first, "more", "a field that its class does not name"),
        lambda: object.__setattr__(first, "__dict__", {**vars(first), "name": "replaced"}),
        lambda: first.additional_kwargs.update(labels=first.additional_kwargs.pop("tags")),
        lambda: first.additional_kwargs["labels"].clear(),
        lambda: object.__setattr__(first, "__pydantic_extra__", {"more": "something else"}),
        lambda: HumanMessage.__init__(first, "made again", id="a"),
        lambda: first.response_metadata.update(empty="before"),
        lambda: messages.append(HumanMessage("third", id="c")),
        lambda: messages.pop(1),
        lambda: messages.insert(0, AIMessage("front", id="d")),
    ):
        change()
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6())
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": 1}
        at = saver.put(at, checkpoint, {}, {"messages": 1})
        fresh = StepwellSaver(well).get_tuple(at)
        assert fresh is not None
        assert fresh.checkpoint["channel_values"]["messages"] == messages


def test_a_change_is_kept_by_the_put_after_one_that_failed(folder: Path) -> None:
    first = HumanMessage("first", id="a")
    messages: list[Any] = [first, AIMessage("second", id="b")]

    def put(at: Any) -> Any:
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6())
        checkpoint["channel_values"] = {"messages": [*messages]}
        checkpoint["channel_versions"] = {"messages": 1}
        return saver.put(at, checkpoint, {}, {"messages": 1})

    with stepwell.open(folder) as well, stepwell.open(folder) as other:
        saver = StepwellSaver(well)
        at = put(config("f", checkpoint_ns=""))
        first.content = "changed"
        messages.append(HumanMessage("third", id="c"))
        with other.hold("langgraph.f"), pytest.raises(stepwell.BusyError):
            put(at)
        at = put(at)
        found = StepwellSaver(well).get_tuple(at)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages
        told = [it.text for it in well.session("langgraph.f").messages()]
        assert told == ["changed", "second", "third"]


def shares_texts(well: stepwell.Well) -> None:
    """Runs a graph with long texts, and reads what it said."""
    rng = random.Random(1)
    texts = ["".join(rng.choices("abcdefghijklmnop ", k=8000)) for _ in range(20)]
    graph = talker(StepwellSaver(well))
    for text in texts:
        graph.invoke(said(text), config("share"))
    session = well.session("langgraph.share")
    assert [it.text for it in session.messages()][::2] == texts
    assert [hit.session for hit in well.search(texts[3].split()[2])] == [session.id]
    assert session.verify().sound
    # What the messages say is in the blobs of the checkpoints.
    events, _, _ = well.core.disk_use()
    assert events < sum(map(len, texts))
    # It is still there when those are gone, but for the last.
    StepwellSaver(well).prune(["share"])
    assert [it.text for it in session.messages()][::2] == texts
    assert session.verify().sound


def test_a_transcript_and_the_state_share_their_texts(well: stepwell.Well) -> None:
    shares_texts(well)


def test_a_transcript_and_the_state_share_their_texts_on_a_server(server: str) -> None:
    with stepwell.open(server) as well:
        shares_texts(well)


def test_random_lists_read_as_they_were_put(well: stepwell.Well) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    saver, model = StepwellSaver(well), InMemorySaver()
    known: list[Any] = []
    values: list[Any] = []
    for step in range(150):
        parent = rng.choice(known[-3:]) if known and rng.random() < 0.3 else None
        at = parent or (known[-1] if known else config("p", checkpoint_ns=""))
        move = rng.random()
        if move < 0.6:
            values = [*values, {"n": step, "text": "x" * rng.randrange(200)}]
        elif move < 0.8 and values:
            values = values[: rng.randrange(len(values))]
        elif values:
            values = [*values]
            values[rng.randrange(len(values))] = {"n": -step}
        changed = rng.random() < 0.85
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6())
        versions: Any = {"list": step + 1, "other": 1}
        if not changed and known:
            versions["list"] = model.get_tuple(at).checkpoint["channel_versions"]["list"]  # type: ignore[union-attr]
            values = model.get_tuple(at).checkpoint["channel_values"].get("list", [])  # type: ignore[union-attr]
        checkpoint["channel_values"] = {"list": values, "other": "same"}
        checkpoint["channel_versions"] = versions
        new = {} if not changed and known else {"list": step + 1}
        if not known:
            new["other"] = 1
        for it in (saver, model):
            stored = it.put(at, checkpoint, {"step": step}, new)
        known.append(stored)
        # By one that remembers nothing, and by the one that put it.
        for place, by in (
            (stored, StepwellSaver(well)),
            (rng.choice(known), StepwellSaver(well)),
            (stored, saver),
            (rng.choice(known), saver),
        ):
            if by is saver and rng.random() < 0.5:
                continue
            mine = by.get_tuple(place)
            other = model.get_tuple(place)
            assert mine is not None
            assert other is not None
            assert mine.checkpoint["channel_values"] == other.checkpoint["channel_values"]
            assert mine.parent_config == other.parent_config
    mine = [it.config for it in saver.list(config("p"))]
    assert mine == [it.config for it in model.list(config("p"))]
    # What stays after a prune reads as before.
    newest = saver.get_tuple(config("p"))
    assert newest is not None
    saver.prune(["p"])
    left = list(StepwellSaver(well).list(config("p")))
    assert [it.checkpoint for it in left] == [newest.checkpoint]
    assert well.session("langgraph.p").verify().sound


def test_a_copy_is_a_fork_and_stands_on_its_own(well: stepwell.Well) -> None:
    saver = StepwellSaver(well)
    graph = talker(saver)
    graph.invoke(said("one"), config("from"))
    saver.copy_thread("from", "to")
    graph.invoke(said("two"), config("to"))
    assert len(graph.get_state(config("from")).values["messages"]) == 2
    assert len(graph.get_state(config("to")).values["messages"]) == 4
    before = [it.checkpoint for it in saver.list(config("to"))]
    saver.prune(["from"])
    assert [it.checkpoint for it in StepwellSaver(well).list(config("to"))] == before
    saver.delete_thread("from")
    assert [it.checkpoint for it in StepwellSaver(well).list(config("to"))] == before
    assert saver.get_tuple(config("from")) is None


def test_time_travel_takes_the_conversation_back(well: stepwell.Well) -> None:
    saver = StepwellSaver(well)
    graph = talker(saver)
    graph.invoke(said("one"), config("t"))
    early = graph.get_state(config("t")).config
    graph.invoke(said("two"), config("t"))
    graph.invoke(said("other two"), early)
    texts = [it.text for it in well.session("langgraph.t").messages()]
    assert texts == ["one", "answer 1", "other two", "answer 3"]
    assert [it.text for it in graph.get_state(config("t")).values["messages"]] == texts


def test_an_interrupt_is_a_question_that_the_session_waits_for(well: stepwell.Well) -> None:
    def ask(state: State) -> Any:
        return {"messages": [AIMessage(str(interrupt("May I?")))]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=StepwellSaver(well))
    graph.invoke(said("do it"), config("i"))
    session = well.session("langgraph.i")
    assert session.info().status == "paused"
    assert [it.id for it in well.sessions(source="langgraph", status="paused")] == [session.id]
    asked = [it for it in session.events() if it.kind == "gate"]
    assert [it.body["prompt"] for it in asked] == ["May I?"]
    state = graph.invoke(Command(resume="yes"), config("i"))
    assert state["messages"][-1].text == "yes"
    assert session.info().fields.get("open_gates", 0) == 0
    assert session.info().status == "idle"


def test_tool_calls_are_kept_as_calls(well: stepwell.Well) -> None:
    call = {"id": "c1", "name": "look", "args": {"q": 1}}

    def act(state: State) -> Any:
        return {
            "messages": [AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id="c1")]
        }

    builder = StateGraph(State)
    builder.add_node("act", act)
    builder.add_edge(START, "act")
    builder.compile(checkpointer=StepwellSaver(well)).invoke(said("go"), config("c"))
    shown = well.session("langgraph.c").messages()
    assert shown[1].calls == [{"id": "c1", "name": "look", "arguments": '{"q": 1}'}]
    assert shown[2].text == "found"


def test_many_threads_write_to_one_thread_of_a_graph(folder: Path) -> None:
    with stepwell.open(folder) as well:
        saver = StepwellSaver(well)
        first = empty_checkpoint()
        at = saver.put(config("w", checkpoint_ns=""), first, {}, {})
        failures: list[BaseException] = []

        def write(task: int) -> None:
            try:
                for n in range(10):
                    saver.put_writes(at, [("c", (task, n))], f"{task}-{n}", f"{task:02}")
            except BaseException as error:
                failures.append(error)

        tasks = [threading.Thread(target=write, args=(task,)) for task in range(8)]
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
        assert failures == []
        found = saver.get_tuple(at)
        assert found is not None
        assert len(found.pending_writes or ()) == 80


def test_deleted_runs_are_gone_and_the_rest_reads_as_before(well: stepwell.Well) -> None:
    saver = StepwellSaver(well)
    graph = talker(saver)
    for run in ("r1", "r2", "r3"):
        graph.invoke(said(run), {**config("d"), "metadata": {"run_id": run}})
    before = {it.config["configurable"]["checkpoint_id"]: it for it in saver.list(config("d"))}
    saver.delete_for_runs(["r2"])
    left = list(StepwellSaver(well).list(config("d")))
    assert {it.metadata.get("run_id") for it in left} == {"r1", "r3"}
    for it in left:
        was = before[it.config["configurable"]["checkpoint_id"]]
        assert it.checkpoint == was.checkpoint


def test_delta_history_is_the_same_after_a_prune(well: stepwell.Well) -> None:
    builder = StateGraph(Delta)
    builder.add_node("add", lambda state: {"log": [f"n{len(state['log'])}"]})
    builder.add_edge(START, "add")
    saver = StepwellSaver(well)
    graph = builder.compile(checkpointer=saver)
    for turn in range(9):
        graph.invoke({"log": [f"t{turn}"]}, config("x"))
    at = graph.get_state(config("x")).config
    before = saver.get_delta_channel_history(config=at, channels=["log"])
    values = graph.get_state(config("x")).values
    assert len(values["log"]) == 18
    saver.prune(["x"])
    fresh = StepwellSaver(well)
    assert len(list(fresh.list(config("x")))) == 1
    after = fresh.get_delta_channel_history(config=at, channels=["log"])
    assert repr(after) == repr(before)
    graph = builder.compile(checkpointer=fresh)
    assert graph.get_state(config("x")).values == values
    graph.invoke({"log": ["more"]}, config("x"))
    assert graph.get_state(config("x")).values["log"] == [*values["log"], "more", "n19"]


async def test_async_graphs_do_the_same(well: stepwell.Well) -> None:
    graph = talker(StepwellSaver(well))
    await graph.ainvoke(said("one"), config("a"))
    state = await graph.ainvoke(said("two"), config("a"))
    assert len(state["messages"]) == 4
    assert [it async for it in graph.aget_state_history(config("a"))]


def test_what_a_checkpoint_says_besides_its_values_is_no_blob_and_the_older_form_is_read(
    well: stepwell.Well, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graph_worker import graph

    from stepwell.langgraph import _writing
    from stepwell.langgraph._packing import unpacked

    kept: list[list[Any]] = []
    for thread, plain in (("new", True), ("old", False)):
        with monkeypatch.context() as patch:
            if not plain:
                patch.setattr(_writing, "plain_rest", lambda rest: None)
            config: Any = {"configurable": {"thread_id": thread}}
            graph(StepwellSaver(well)).invoke({"messages": [("user", "hi")]}, config)
        rows = well.core.records(
            f"langgraph.{thread}", "langgraph/checkpoint/", "langgraph/checkpoint0"
        )
        assert ("r" in unpacked(rows[0][2], rows[0][3])) == plain
        read = list(StepwellSaver(well).list(config))
        kept.append([set(it.checkpoint) for it in read])
        for it in read:
            checkpoint = it.checkpoint
            assert checkpoint["id"] == it.config["configurable"]["checkpoint_id"]
            assert checkpoint["channel_versions"].keys() >= checkpoint["channel_values"].keys()
    assert kept[0] == kept[1]


def test_a_saver_is_made_and_closed_as_langgraphs_own_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    with StepwellSaver.from_conn_string("~/store") as saver:
        talker(saver).invoke(said("one"), config("t"))
    assert (folder / "store").is_dir()
    with pytest.raises(stepwell.InvalidError, match="closed"):
        saver.get_tuple(config("t"))
    with stepwell.open(folder / "store") as well:
        with StepwellSaver(well) as borrowed:
            assert borrowed.get_tuple(config("t")) is not None
        assert borrowed.get_tuple(config("t")) is not None


async def test_a_saver_is_closed_by_an_async_block(folder: Path) -> None:
    async with StepwellSaver.from_conn_string(str(folder)) as saver:
        await talker(saver).ainvoke(said("one"), config("t"))
    with pytest.raises(stepwell.InvalidError, match="closed"):
        await saver.aget_tuple(config("t"))


def test_a_graph_that_raised_has_failed_until_it_goes_on(well: stepwell.Well) -> None:
    broken = [True]

    def work(state: State) -> Any:
        if broken[0]:
            raise ValueError("the pump is broken")
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    graph = builder.compile(checkpointer=StepwellSaver(well))
    with pytest.raises(ValueError, match="pump"):
        graph.invoke(said("do it"), config("f"))
    session = well.session("langgraph.f")
    assert session.info().status == "failed"
    assert session.info().task == "do it"
    broken[0] = False
    graph.invoke(None, config("f"))
    assert session.info().status == "idle"


def test_what_a_graph_would_not_see_is_refused(well: stepwell.Well) -> None:
    talker(StepwellSaver(well)).invoke(said("one"), config("t"))
    session = well.session("langgraph.t")
    with pytest.raises(stepwell.InvalidError, match="kept by langgraph, which would not see a rew"):
        session.rewind(2)
    with pytest.raises(stepwell.InvalidError, match="would not see messages"):
        session.append(stepwell.Message.user("two"))
    # A fork is nobody's.
    fork = session.fork()
    fork.append(stepwell.Message.user("two"))
    fork.rewind(2)


def test_a_history_that_leads_in_a_circle_ends(well: stepwell.Well) -> None:
    saver = StepwellSaver(well)
    ids = [str(uuid6()), str(uuid6())]
    for number, id in enumerate(ids):
        checkpoint = empty_checkpoint()
        checkpoint["id"] = id
        before = config("c", checkpoint_ns="", checkpoint_id=ids[1 - number])
        at = saver.put(before, checkpoint, {}, {})
        saver.put_writes(at, [("log", number)], f"task {number}")
    found = saver.get_delta_channel_history(config=at, channels=["log"])
    assert len(found["log"]["writes"]) == 2
