"""Two ids of a framework's never meet in one session, and two names never in one key."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import stepwell
from stepwell._names import escaped, joined, session_id, unescaped

ODD = [
    "",
    "a",
    "a b",
    "a-b",
    ".a",
    "a.",
    "..",
    "\x1f",
    "a\x1f",
    "\x1fa",
    "a\x1f\x1fb",
    "ü",
    "%",
    "%1F",
]
ODD += ["x" * 200, "\ud800", "a/b", "%2F"]


def test_no_two_ids_have_one_session() -> None:
    ids = {(part,) for part in ODD} | set(itertools.product(ODD, repeat=2))
    # A thread may have the name of another thread's session.
    ids |= {(session_id("s", *parts).removeprefix("s."),) for parts in ids}
    ids |= {(session_id("s", *parts).removeprefix("s.."),) for parts in ids}
    names = [session_id("s", *parts) for parts in ids]
    assert len(set(names)) == len(ids)
    with stepwell.memory() as well:
        for name in names[:: len(names) // 40]:
            well.create("t", id=name)


def test_names_are_told_apart_and_come_back() -> None:
    pairs = [pair for pair in itertools.product(ODD, repeat=2) if "\ud800" not in "".join(pair)]
    assert len({joined(*pair) for pair in pairs}) == len(pairs)
    assert [unescaped(escaped(part)) for part in ODD] == ODD
    assert not any({"\x1e", "\x1f"} & set(escaped(part)) for part in ODD)


def test_a_thread_that_is_named_like_a_session_is_another_thread(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.base import empty_checkpoint

    from stepwell.langgraph import StepwellSaver

    saver = StepwellSaver(well)
    secret: Any = {"configurable": {"thread_id": "user 1", "checkpoint_ns": ""}}
    saver.put(secret, empty_checkpoint(), {}, {})
    named = saver.session_of("user 1")
    for front in ("langgraph.", "langgraph.."):
        other: Any = {"configurable": {"thread_id": named.removeprefix(front)}}
        assert saver.get_tuple(other) is None


def test_a_search_finds_nothing_of_another_store(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from stepwell.langgraph import StepwellStore

    one, other = StepwellStore(well, name="team"), StepwellStore(well, name="team2")
    for number in range(5):
        other.put(("n",), f"{number}", {"text": "the cistern"})
    one.put(("n",), "0", {"text": "nothing of that"})
    one.put(("n",), "1", {"text": "a cistern"})
    assert [it.key for it in one.search(("n",), query="cistern")] == ["1"]


def test_odd_namespaces_stay_apart(well: stepwell.Well) -> None:
    pytest.importorskip("langgraph")
    from stepwell.langgraph import StepwellStore

    store = StepwellStore(well)
    store.put(("a\x1fb",), "k", {"n": 1})
    store.put(("a", "b"), "k", {"n": 2})
    store.put(("a",), "b\x1e", {"n": 3})
    found = [(it.namespace, it.key, it.value["n"]) for it in store.search(("a",))]
    assert sorted(found) == [(("a",), "b\x1e", 3), (("a", "b"), "k", 2)]
    assert ("a\x1fb",) in store.list_namespaces()


async def test_a_name_that_holds_a_separator_has_versions_of_its_own(well: stepwell.Well) -> None:
    pytest.importorskip("google.adk")
    from google.genai import types

    from stepwell.adk import StepwellArtifactService

    service = StepwellArtifactService(well)
    place: Any = {"app_name": "app", "user_id": "u", "session_id": "s"}
    for name in ("f", "f\x1fg"):
        await service.save_artifact(filename=name, artifact=types.Part(text=name), **place)
    assert await service.list_versions(filename="f", **place) == [0]
    assert await service.list_artifact_keys(**place) == ["f", "f\x1fg"]
