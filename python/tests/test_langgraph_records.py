"""What the saver's records say, and that those from before are still read."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint, uuid6
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import stepwell
from stepwell._core import KnownElements
from stepwell.langgraph import StepwellSaver
from stepwell.langgraph._packing import DICTIONARIES, name_of, packed, unpacked
from stepwell.langgraph._values import Blobs, cut_out
from stepwell.types import record

BEFORE = Path(__file__).parent / "data" / "langgraph-records-plain.json"
"""36 checkpoints of a thread as plain JSON, as the first version wrote them."""


def said(n: int) -> Any:
    kind = AIMessage if n % 2 else HumanMessage
    return kind(f"{n} said before" + " and on" * (n % 3 * 20), id=f"m{n}")


def at(n: int) -> Any:
    id = f"1f1e1f13-0000-6000-8000-{n:012}"
    named = {"thread_id": "old", "checkpoint_ns": "", "checkpoint_id": id}
    return {"configurable": named}


@pytest.fixture
def old(well: stepwell.Well) -> StepwellSaver:
    """A saver whose store was written before records were packed."""
    kept = json.loads(BEFORE.read_text())
    well.ensure("langgraph.old", "langgraph", "old")
    blobs = [base64.b64decode(it) for it in kept["blobs"]]
    digests = well.core.put_blobs(blobs)
    assert digests
    for it in kept["records"]:
        names = [base64.b64decode(name) for name in it["blobs"]]
        event = record("langgraph", it["topic"], it["key"], it["data"], blobs=names)
        well.append("langgraph.old", [event])
    return StepwellSaver(well, transcript=False)


def put(saver: StepwellSaver, parent: Any, values: dict[str, Any]) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = str(uuid6())
    checkpoint["channel_values"] = values
    versions: Any = {name: 1000 for name in values}
    checkpoint["channel_versions"] = versions
    return saver.put(parent, checkpoint, {"step": 1}, versions)


@pytest.mark.parametrize("n", [0, 1, 31, 33, 35])
def test_a_checkpoint_from_before_reads_as_it_was_put(old: StepwellSaver, n: int) -> None:
    found = old.get_tuple(at(n))
    assert found is not None
    assert found.checkpoint["channel_values"] == {
        "messages": [said(i) for i in range(n + 1)],
        "count": n,
        "note": "x" * 100,
    }
    assert found.metadata == {"step": n, "source": "loop"}
    assert found.pending_writes == [
        (f"task-{n}", "messages", [said(n)]),
        (f"task-{n}", "count", n),
    ]


def test_a_thread_from_before_goes_on(old: StepwellSaver) -> None:
    found = old.get_tuple(at(35))
    assert found is not None
    messages = found.checkpoint["channel_values"]["messages"]
    parent = found.config
    for n in range(36, 80):
        messages = [*messages, said(n)]
        parent = put(old, parent, {"messages": messages})
    for saver in (old, StepwellSaver(old.well)):
        newest = saver.get_tuple({"configurable": {"thread_id": "old"}})
        assert newest is not None
        assert newest.checkpoint["channel_values"]["messages"] == [said(n) for n in range(80)]
    assert old.well.session("langgraph.old").verify().sound


def test_a_prune_keeps_what_a_thread_from_before_needs(old: StepwellSaver) -> None:
    old.prune(["old"])
    found = [it.checkpoint["channel_values"] for it in StepwellSaver(old.well).list(None)]
    assert [len(it["messages"]) for it in found] == [36]
    assert found[0]["messages"] == [said(n) for n in range(36)]


def test_packed_data_reads_as_it_was() -> None:
    rng = random.Random(7)
    digests = [b"\x1e" + rng.randbytes(32) for _ in range(12)]
    names = [name_of(digest) for digest in digests]
    data: dict[str, Any] = {
        # A name that is not among the record's own, a text with what JSON escapes, and all bytes.
        "other": name_of(b"\x1e" + rng.randbytes(32)),
        "escaped": "\x000\x00 \x1f \\u0000 \U0001f600 é",
        "bytes": bytes(range(256)).decode("latin-1"),
        "refs": [{"t": "msgpack", "d": name} for name in [*names, *names]],
    }
    text = packed(data, names)
    assert not any(name in text for name in names)
    assert unpacked(text, digests) == data


def test_long_texts_are_cut_out_of_what_is_around_them() -> None:
    text = b"t" * 1000
    assert cut_out(b"ab\xda\x03\xe8" + text + b"cd") == [b"ab\xda\x03\xe8", text, b"cd"]
    large = b"u" * 70_000
    assert cut_out(b"\xdb\x00\x01\x11\x70" + large) == [b"\xdb\x00\x01\x11\x70", large, b""]
    # Nothing long, more around than inside, or many: one blob is better.
    for plain in (b"\xda\x00\x05hello", b"z" * 5000 + b"\xda\x03\xe8" + text):
        assert cut_out(plain) is None
    assert cut_out((b"\xda\x03\xe8" + text) * 9) is None
    rng = random.Random(3)
    for _ in range(300):
        data = bytes(rng.choices([0xDA, 0xDB, 0, 2, 0xFF, 65], k=rng.randrange(3000)))
        pieces = cut_out(data)
        assert pieces is None or b"".join(pieces) == data


def test_the_dictionaries_are_what_they_were() -> None:
    # Records are read with the dictionary that they were written with. One may be added.
    assert [hashlib.sha256(it).hexdigest()[:16] for it in DICTIONARIES] == ["ab7577a16d12841e"]


def test_a_record_says_each_thing_once(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    parent: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages: list[Any] = []
    rng = random.Random(1)
    for n in range(20):
        text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=1000))
        messages = [*messages, HumanMessage(text, id=f"m{n}")]
        parent = put(saver, parent, {"messages": messages})
        saver.put_writes(parent, [("messages", [messages[-1]])], f"t{n}")
    rows = well.core.records("langgraph.t", "langgraph/", "langgraph0")
    assert max(len(data) for _, _, data, _ in rows) < 300
    # A message is a blob, which the checkpoint and the write both name.
    assert {len(blobs) for _, _, _, blobs in rows} == {1}
    assert len({blobs[0] for _, _, _, blobs in rows}) == 20


def put_run(saver: StepwellSaver, parent: Any, run: str, values: Any, new: list[str]) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["id"] = str(uuid6())
    checkpoint["channel_values"] = values
    versions: Any = {name: f"{run}-{name}" if name in new else "first" for name in values}
    checkpoint["channel_versions"] = versions
    metadata: Any = {"run_id": run}
    return saver.put(parent, checkpoint, metadata, {name: versions[name] for name in new})


def test_what_a_deleted_run_wrote_stays_where_a_later_one_needs_it(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    parent: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    values: dict[str, Any] = {"note": "n" * 2000, "messages": []}
    expected: list[Any] = []
    for n in range(100):
        said = HumanMessage(f"{n} " * 400, id=f"m{n}")
        values = {**values, "messages": [*values["messages"], said]}
        new = ["messages", "note"] if n == 0 else ["messages"]
        versions = "first" if n == 0 else f"run{n}"
        parent = put_run(saver, parent, versions, values, new)
        expected.append(values)
    for gone in (["first", *(f"run{n}" for n in range(1, 40))], ["run41", "run98"]):
        saver.delete_for_runs(gone)
        for reader in (saver, StepwellSaver(well)):
            kept = [it.checkpoint["channel_values"] for it in reader.list(None)]
            kept.reverse()
            left = [
                it
                for it in expected[40:]
                if gone[0] == "first" or len(it["messages"]) not in (42, 99)
            ]
            assert kept == left
    assert well.session("langgraph.t").verify().sound
    # All that nobody needs is gone with a prune.
    saver.prune(["t"])
    (only,) = StepwellSaver(well).list(None)
    assert only.checkpoint["channel_values"] == expected[-1]
    topics = [
        key.split("/")[1]
        for _, key, data, _ in well.core.records("langgraph.t", "langgraph/", "langgraph0")
        if data
    ]
    assert topics == ["checkpoint"]


def test_a_long_list_is_told_in_few_words(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    parent: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages: list[Any] = []
    for n in range(1500):
        messages = [*messages, HumanMessage(f"{n} short", id=f"m{n}")]
        parent = put(saver, parent, {"messages": messages})
    rows = well.core.records("langgraph.t", "langgraph/", "langgraph0")
    assert max(len(data) for _, _, data, _ in rows) < 4000
    # A change far back keeps what is before it.
    messages = [*messages[:700], HumanMessage("changed", id="m700"), *messages[701:]]
    parent = put(saver, parent, {"messages": messages})
    found = StepwellSaver(well).get_tuple(parent)
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == messages


def test_a_list_of_many_parts_is_read_while_it_is_loaded(well: stepwell.Well) -> None:
    messages: list[Any] = []
    config: Any = {"configurable": {"thread_id": "many", "checkpoint_ns": ""}}
    saver, parent = StepwellSaver(well, transcript=False), config
    for n in range(400):
        messages = [*messages, said(n)]
        parent = put(saver, parent, {"messages": messages})
    found = StepwellSaver(well, transcript=False).get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == messages

    class Failing:
        """Loads the first elements, and no more."""

        loaded = 0

        def dumps_typed(self, value: Any) -> tuple[str, bytes]:
            return saver.serde.dumps_typed(value)

        def loads_typed(self, typed: tuple[str, bytes]) -> Any:
            self.loaded += 1
            if self.loaded > 1:
                raise RuntimeError("no more of it")
            return saver.serde.loads_typed(typed)

    broken = StepwellSaver(well, serde=Failing(), transcript=False)
    with pytest.raises(RuntimeError, match="no more of it"):
        broken.get_tuple(config)
    # What was under way ended with it: the store can be closed, and is read again.
    again = StepwellSaver(well, transcript=False).get_tuple(parent)
    assert again is not None
    assert len(again.checkpoint["channel_values"]["messages"]) == 400


def test_what_checkpoints_say_of_a_list_is_read_at_once(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    parent: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "a"}}
    messages: list[Any] = []
    ids: list[str] = []
    for n in range(20):
        # Short ones are in the record, long ones are blobs, which a record tells by their places.
        messages = [*messages, HumanMessage(f"{n} " + "said \x00 " * (n % 3 * 100), id=f"m{n}")]
        parent = put(saver, parent, {"messages": messages})
        ids.append(parent["configurable"]["checkpoint_id"])
    front = "langgraph/checkpoint/a\x1f"
    rows = well.core.records("langgraph.t", front, front + ids[-1])
    told = [unpacked(data, blobs)["v"]["messages"][1] for _, _, data, blobs in rows]
    assert [it.get("b") for it in told] == [None, *ids[:-2]]

    def chains(count: int, *asked: tuple[str, str]) -> list[Any]:
        found = well.core.list_chains(
            "langgraph.t", front, front + ids[-1], count, list(asked), list(DICTIONARIES)
        )
        return [None if it is None else json.loads(it) for it in found]

    whole = ("messages", ids[-2])
    assert chains(19, whole, whole, ("other", ids[-2])) == [told[::-1], told[::-1], None]
    assert chains(18, whole, ("messages", "none")) == [None, None]
    with pytest.raises(stepwell.StepwellError, match="names no dictionary"):
        well.core.list_chains("langgraph.t", front, front + ids[-1], 19, [whole], [])


class Counting(JsonPlusSerializer):
    """Counts the bytes that are loaded."""

    loaded = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.loaded += len(data[1])
        return super().loads_typed(data)


def put_many(saver: StepwellSaver, count: int) -> Any:
    """Puts a list that grows message by message. Returns where."""
    parent: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages: list[Any] = []
    for n in range(count):
        kind = AIMessage if n % 2 else HumanMessage
        said = kind(f"{n} " * 300, id=f"m{n}", additional_kwargs={"tags": [f"{n}", {"deep": n}]})
        messages = [*messages, said]
        parent = put(saver, parent, {"messages": messages})
    return parent


def messages_at(saver: StepwellSaver, at: Any) -> list[Any]:
    found = saver.get_tuple(at)
    assert found is not None
    messages: list[Any] = found.checkpoint["channel_values"]["messages"]
    return messages


def test_what_nobody_holds_any_more_is_not_loaded_again(well: stepwell.Well) -> None:
    serde = Counting()
    saver = StepwellSaver(well, serde=serde, transcript=False)
    at = put_many(saver, 40)
    whole = serde.dumps_typed(messages_at(saver, at))[1]
    serde.loaded = 0
    expected = messages_at(StepwellSaver(well, transcript=False), at)
    assert messages_at(saver, at) == expected
    assert serde.loaded < len(whole) / 20
    # What a step adds was never loaded: that alone is.
    more = HumanMessage("more " * 300, id="more")
    at = put(saver, at, {"messages": [*messages_at(saver, at), more]})
    serde.loaded = 0
    assert messages_at(saver, at) == [*expected, more]
    assert len(whole) / 40 < serde.loaded < len(whole) / 20


def test_what_somebody_holds_is_loaded_again(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    at = put_many(saver, 12)
    expected = messages_at(StepwellSaver(well, transcript=False), at)
    holds: list[Any] = [
        lambda read: read[3],
        lambda read: vars(read[3]),
        lambda read: read[3].additional_kwargs,
        lambda read: read[3].additional_kwargs["tags"],
        lambda read: read[3].additional_kwargs["tags"][1],
        lambda read: read[4].response_metadata,
        lambda read: read[5].tool_calls,
        lambda read: read[5].__pydantic_extra__,
        lambda read: read[5].__pydantic_fields_set__,
    ]
    for hold in holds:
        read = messages_at(saver, at)
        held = hold(read)
        del read
        again = messages_at(saver, at)
        assert again == expected
        assert id(held) not in {id(it) for it in parts_of(again)}
        del held
    read = messages_at(saver, at)
    again = messages_at(saver, at)
    assert again == read == expected
    assert not {id(it) for it in parts_of(read)} & {id(it) for it in parts_of(again)}


def parts_of(messages: list[Any]) -> list[Any]:
    """Everything in messages that can be changed."""
    found: list[Any] = []
    for it in messages:
        found += [it, vars(it), it.additional_kwargs, it.response_metadata]
        found += [it.__pydantic_extra__, it.__pydantic_fields_set__]
        found += [it.additional_kwargs["tags"], it.additional_kwargs["tags"][1]]
        found += [it.tool_calls] if isinstance(it, AIMessage) else []
    return found


def test_what_was_changed_and_let_go_is_read_as_it_was_put(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    at = put_many(saver, 12)
    expected = messages_at(StepwellSaver(well, transcript=False), at)
    changes: list[Any] = [
        lambda read: setattr(read[3], "content", "changed"),
        lambda read: read[3].additional_kwargs.update(more=1),
        lambda read: read[3].additional_kwargs["tags"].append("more"),
        lambda read: read[3].additional_kwargs["tags"][1].update(deep=None),
        lambda read: read[4].response_metadata.update(more=1),
        lambda read: setattr(read[5], "name", None),
        lambda read: object.__setattr__(read[5], "__dict__", {**vars(read[5]), "name": "other"}),
        lambda read: object.__setattr__(read[5], "__pydantic_private__", {"_of": "somebody"}),
        lambda read: read.pop(2),
        lambda read: read.reverse(),
    ]
    for change in changes:
        read = messages_at(saver, at)
        change(read)
        del read
        again = messages_at(saver, at)
        assert again == expected
        for it, other in zip(again, expected, strict=True):
            assert it.model_fields_set == other.model_fields_set


class Readers:
    """Readers of one thread who change what they were given, hold on to parts of it, and let go."""

    def __init__(self, well: stepwell.Well, seed: int) -> None:
        self.well, self.rng, self.serde = well, random.Random(seed), Counting()
        self.saver = StepwellSaver(well, serde=self.serde, transcript=False)
        self.at = put_many(self.saver, 6)
        self.expected = [it.model_copy(deep=True) for it in messages_at(self.saver, self.at)]
        self.held: list[list[Any]] = []
        self.given_again = 0

    def read(self) -> None:
        before = self.serde.loaded
        read = messages_at(self.saver, self.at)
        self.given_again += self.serde.loaded - before < 100
        assert read == self.expected
        known = {id(part) for kept in self.held for it in kept for part in changeable(it)}
        assert not known & {id(part) for it in read for part in changeable(it)}
        self.held.append(read)

    def change(self) -> None:
        it = self.rng.choice(self.rng.choice(self.held))
        for part in changeable(it)[-1:]:
            part["changed"] = self.rng.random()
        if not isinstance(it, dict):
            it.content = self.rng.choice([it.content, "changed"])

    def hold_a_part(self) -> None:
        one = self.rng.choice(self.held.pop(self.rng.randrange(len(self.held))))
        self.held.append([self.rng.choice(changeable(one)[::2])])

    def let_go(self) -> None:
        self.held.pop(self.rng.randrange(len(self.held)))

    def put(self) -> None:
        read = messages_at(self.saver, self.at)
        if self.rng.random() < 0.5:
            self.rng.choice(read).content = f"changed {self.rng.random()}"
        read.append(AIMessage("said", id=f"s{len(read)}"))
        self.at = put(self.saver, self.at, {"messages": read})
        self.expected = [it.model_copy(deep=True) for it in read]


def changeable(it: Any) -> list[Any]:
    return [it] if isinstance(it, dict) else [it, vars(it), it.additional_kwargs]


@pytest.mark.parametrize("seed", range(4))
def test_readers_that_change_what_they_hold_do_not_see_each_other(
    well: stepwell.Well, seed: int
) -> None:
    readers = Readers(well, seed)
    for _ in range(300):
        act = readers.rng.choice(["read", "read", "let_go", "let_go", "change", "hold_a_part"])
        act = "put" if readers.rng.random() < 0.05 else act
        if readers.held or act in ("read", "put"):
            getattr(readers, act)()
    assert messages_at(StepwellSaver(well, transcript=False), readers.at) == readers.expected
    assert readers.given_again > 5


def test_only_what_can_be_counted_is_given_out_again() -> None:
    def taken(make: Any) -> int:
        known, value = KnownElements(), make()
        known.remember_read(value, 0)
        del value
        return len(known.take_unheld()[1])

    assert taken(lambda: [{"a": [1]}, [2], "three", HumanMessage("four")]) == 4
    # Whoever holds a tuple holds what is in it, and that is not counted.
    assert taken(lambda: [{"a": [1]}, (1, [1]), "three"]) == 1
    assert taken(lambda: [{"a": [1]}, {"b": {1, 2}}, "three"]) == 1
    # What was put, and not read.
    known, value = KnownElements(), [{"a": 1}]
    known.remember(value, 0)
    value.append({"b": 1})
    known.remember_read(value, 1)
    del value
    assert len(known.take_unheld()[1]) == 0
    assert len(known) == 0


@pytest.mark.shared_memory
def test_savers_of_one_store_remember_together(
    well: stepwell.Well, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = put_many(StepwellSaver(well, transcript=False), 40)
    expected = messages_at(StepwellSaver(well, transcript=False, cache=2), at)

    def read_list(*_: Any) -> Any:
        raise AssertionError("it is remembered")

    monkeypatch.setattr(Blobs, "read_list", read_list)
    assert messages_at(StepwellSaver(well, transcript=False), at) == expected
    # Not what was spoken if no transcript is kept, nor what another serializer made.
    for other in (StepwellSaver(well), StepwellSaver(well, serde=Counting(), transcript=False)):
        with pytest.raises(AssertionError, match="it is remembered"):
            messages_at(other, at)


def test_what_another_process_writes_is_read(tmp_path: Path) -> None:
    """A reader that knows the newest checkpoint asks whether anything was written since."""
    thread: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with stepwell.open(tmp_path / "s") as well, stepwell.open(tmp_path / "s") as other:
        reader, writer = (StepwellSaver(it, transcript=False) for it in (well, other))
        at = put(writer, thread, {"messages": [said(1)]})
        for _ in range(2):
            found = reader.get_tuple(thread)
            assert found is not None
            assert (found.config, found.pending_writes) == (at, [])
        writer.put_writes(at, [("messages", [said(2)])], "task")
        for _ in range(2):
            found = reader.get_tuple(thread)
            assert found is not None
            assert found.pending_writes == [("task", "messages", [said(2)])]
        writer.delete_thread("t")
        assert reader.get_tuple(thread) is None
        # As many events as before, and others.
        at = put(writer, thread, {"messages": [said(3)]})
        writer.put_writes(at, [("messages", [said(4)])], "task")
        found = reader.get_tuple(thread)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"messages": [said(3)]}
        assert found.pending_writes == [("task", "messages", [said(4)])]


def test_what_is_known_of_the_newest_checkpoint_is_nobodys_to_change(well: stepwell.Well) -> None:
    saver = StepwellSaver(well, transcript=False)
    thread: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    at = put(saver, thread, {"messages": [said(1)], "note": {"a": [1]}})
    saver.put_writes(at, [("messages", [said(2)])], "task")
    first = saver.get_tuple(thread)
    for _ in range(2):
        found: Any = saver.get_tuple(thread)
        assert found == first
        found.checkpoint["versions_seen"]["node"] = {"messages": 7}
        found.checkpoint["channel_versions"]["messages"] = 7
        found.checkpoint["channel_values"]["note"]["a"].append(2)
        found.metadata["step"] = 7
        found.pending_writes[0][2].append(said(3))
        found.pending_writes.clear()
        found.config["configurable"]["thread_id"] = "other"


def test_the_newest_checkpoint_of_a_long_thread_is_found_without_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stepwell.open(folder) as well:
        saver = StepwellSaver(well)
        for ns in ("", "sub:1"):
            at: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": ns}}
            for _ in range(300):
                checkpoint = empty_checkpoint()
                checkpoint["id"] = str(uuid6())
                at = saver.put(at, checkpoint, {}, {})
        seen: list[int] = []
        core = well.core

        class Counting:
            def __getattr__(self, name: str) -> Any:
                return getattr(core, name)

            def records(self, *args: Any, **options: Any) -> Any:
                found = core.records(*args, **options)
                seen.append(len(found))
                return found

        monkeypatch.setattr(well, "core", Counting())
        anywhere: Any = {"configurable": {"thread_id": "long"}}
        (newest,) = saver.list(anywhere, limit=1)
        assert newest.config == at
        assert sum(seen) < 200
        ids = [it.config["configurable"]["checkpoint_id"] for it in saver.list(None)]
        assert len(ids) == 600
        assert ids == sorted(ids, reverse=True)


def test_what_a_task_writes_before_its_checkpoint_is_there_outlives_a_prune(
    well: stepwell.Well,
) -> None:
    saver = StepwellSaver(well, transcript=False)
    thread: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = put(saver, thread, {"messages": ["one"]})
    second = put(saver, first, {"messages": ["one", "two"]})
    coming = empty_checkpoint()
    coming["id"] = str(uuid6())
    config: Any = {"configurable": {**thread["configurable"], "checkpoint_id": coming["id"]}}
    # LangGraph keeps a checkpoint and what its first tasks write at the same time.
    saver.put_writes(config, [("messages", ["three"])], "task")
    saver.put_writes(first, [("messages", ["late"])], "task")
    saver.prune(["t"])
    saver.prune(["t"])
    coming["channel_values"] = {"messages": ["one", "two"]}
    saver.put(second, coming, {"step": 2}, {"messages": 1001})
    found = StepwellSaver(well).get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "messages", ["three"])]
    # What was written at a checkpoint that is gone goes with the next prune.
    saver.prune(["t"])
    kept = well.core.records("langgraph.t", "langgraph/writes/", "langgraph/writes0")
    assert [key.rsplit("\x1f")[-1] for _, key, data, _ in kept if data] == [coming["id"]]
