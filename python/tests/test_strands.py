"""Strands: sessions, agents, messages, and snapshots."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")
from strands.types.exceptions import SessionException, StorageError
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import stepwell
from stepwell.strands import StepwellRepository, StepwellStorage


def message(index: int, text: str, role: Any = "user") -> SessionMessage:
    return SessionMessage.from_message({"role": role, "content": [{"text": text}]}, index)


def repository(well: stepwell.Well) -> StepwellRepository:
    made = StepwellRepository(well)
    made.create_session(Session("s", SessionType.AGENT))
    made.create_agent("s", SessionAgent("default", {"k": b"\x00"}, {}))
    return made


@pytest.mark.on_a_server
def test_what_is_kept_comes_back(well: stepwell.Well) -> None:
    kept = repository(well)
    with pytest.raises(SessionException):
        kept.create_session(Session("s", SessionType.AGENT))
    assert kept.read_session("none") is None
    agent = kept.read_agent("s", "default")
    assert agent is not None
    assert agent.state == {"k": b"\x00"}
    picture: Any = {"image": {"format": "png", "source": {"bytes": b"\x00\xff" * 40}}}
    first = SessionMessage.from_message({"role": "user", "content": [picture, {"text": "see"}]}, 0)
    said = [
        first,
        *(message(n, f"{n} a text that is long enough to be named") for n in range(1, 12)),
    ]
    for it in said:
        kept.create_message("s", "default", it)
    assert kept.list_messages("s", "default") == said
    assert kept.list_messages("s", "default", limit=2, offset=3) == said[3:5]
    assert kept.read_message("s", "default", 7) == said[7]
    assert kept.read_message("s", "default", 99) is None
    with pytest.raises(SessionException):
        kept.list_messages("s", "nobody")
    assert len(well.session("strands.s").messages()) == 12


def test_a_redacted_message_is_erased(folder: Path) -> None:
    with stepwell.open(folder) as well:
        kept = repository(well)
        first = message(0, "something that must not stay here")
        kept.create_message("s", "default", first)
        changed = message(0, "something that must not stay here")
        changed.message = {"role": "user", "content": [{"text": "redacted"}]}
        kept.update_message("s", "default", changed)
        found = kept.read_message("s", "default", 0)
        assert found is not None
        assert found.created_at == first.created_at
        session = well.session("strands.s")
        assert "must not stay" not in session.export("jsonl").decode()
        assert session.verify().sound
        assert [it.text for it in session.messages()] == ["redacted"]
        assert well.search("must not stay") == []


def test_state_is_replaced_and_keeps_its_birth(well: stepwell.Well) -> None:
    kept = repository(well)
    before = kept.read_agent("s", "default")
    assert before is not None
    kept.update_agent("s", SessionAgent("default", {"n": 2}, {}, created_at="never"))
    after = kept.read_agent("s", "default")
    assert after is not None
    assert (after.state, after.created_at) == ({"n": 2}, before.created_at)
    with pytest.raises(SessionException):
        kept.update_agent("s", SessionAgent("nobody", {}, {}))


async def test_a_growing_snapshot_is_stored_about_once(folder: Path) -> None:
    with stepwell.open(folder) as well:
        storage = StepwellStorage(well)
        rng = random.Random(7)
        turns: list[str] = []
        for _ in range(60):
            turns.append("".join(rng.choices("abcdefghij ", k=2000)))
            value = json.dumps({"messages": turns}).encode()
            await storage.write("scopes/s/snapshot.json", value)
        assert await storage.read("scopes/s/snapshot.json") == value
        blobs = well.core.disk_use()[1]
        assert blobs < 4 * len(value), (blobs, len(value))


async def test_keys_are_listed_deleted_and_scoped(well: stepwell.Well) -> None:
    storage = StepwellStorage(well)
    scoped = storage.namespace("a").namespace("b")
    await scoped.write("x", b"refund policy")
    await storage.write("a/c", b"")
    assert await storage.list() == ["a/b/x", "a/c"]
    assert await storage.list("a/b") == ["a/b/x"]
    assert await scoped.list() == ["x"]
    assert await storage.read("a/c") == b""
    assert [it.key for it in await scoped.search("refund")] == ["x"]
    await scoped.delete("x")
    await scoped.delete("x")
    assert await scoped.read("x") is None
    with pytest.raises(StorageError):
        await storage.write("../x", b"")
