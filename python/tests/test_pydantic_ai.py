"""Pydantic AI's conversations, by random operations beside its own store in memory."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.conversation_store")
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel

import stepwell
from stepwell.pydantic_ai import StepwellConversationStore

WHEN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def asked(text: str) -> Any:
    return ModelRequest(parts=[UserPromptPart(text, timestamp=WHEN)])


def answered(text: str) -> Any:
    return ModelResponse(parts=[TextPart(text)], timestamp=WHEN)


async def outcome(call: Any) -> Any:
    """What an operation gives, in words that two stores can share."""
    try:
        found = await call
    except (UserError, LookupError) as error:
        return type(error).__name__
    if isinstance(found, Conversation):
        return found.messages
    if isinstance(found, list):
        return [getattr(it, "message", None) or it.conversation_id for it in found]
    return found


@pytest.mark.on_a_server
async def test_random_operations_do_what_the_store_in_memory_does(well: stepwell.Well) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    stores = [StepwellConversationStore(well), InMemoryConversationStore()]
    ids = ["a", "b", "c"]
    for step in range(80):
        id, other, kind = rng.choice(ids), rng.choice(ids), rng.random()
        keep, trim, scope = rng.randrange(5), rng.random() < 0.3, rng.choice([None, "s"])
        text = f"{step} a text that is long enough to be named"
        results = []
        for store in stores:
            if kind < 0.5:
                found = await store.load(id)
                conversation = found or Conversation(conversation_id=id)
                if trim and found:
                    # A history that was rewritten branches off.
                    del conversation.messages[keep:]
                    conversation.new_message_index = None
                conversation.messages += [asked(text), answered(text + "!")]
                results.append(await outcome(store.save(conversation)))
            elif kind < 0.65:
                record = await store.read_record(id)
                revision = record.revision if record else "none"
                results.append(await outcome(store.branch(id, at=keep, expected_revision=revision)))
            elif kind < 0.8:
                results.append(
                    await outcome(store.fork(id, at=keep, new_conversation_id=other, scope=scope))
                )
            elif kind < 0.9:
                results.append(await outcome(store.delete(id)))
            else:
                results.append(await outcome(store.load(id, limit=keep)))
        assert results[0] == results[1]
        for name in ids:
            mine, theirs = [await outcome(store.load_entries(name)) for store in stores]
            assert mine == theirs
        listed = [
            [it.conversation_id for it in await store.list_conversations()] for store in stores
        ]
        assert sorted(listed[0]) == sorted(listed[1])
    for info in well.sessions():
        assert well.session(info.id).verify().sound


async def test_an_agents_run_is_kept_and_shows_as_a_conversation(well: stepwell.Well) -> None:
    store = StepwellConversationStore(well)
    agent = Agent(TestModel(custom_output_text="the answer"), system_prompt="be brief")
    result = await agent.run("the question", conversation=Conversation(conversation_id="c"))
    await store.save(result, scope="ann")
    shown = store.session("c").messages()
    assert [(it.role, it.text) for it in shown][-2:] == [
        ("user", "the question"),
        ("assistant", "the answer"),
    ]
    loaded = await StepwellConversationStore(well).load("c", scope="ann")
    assert loaded is not None
    again = await agent.run("more", conversation=loaded)
    await store.save(again)
    assert len(store.session("c").messages()) == len(shown) + 2
    assert await store.load("c", scope="bob") is None
    assert [it.conversation_id for it in await store.list_conversations(scope="ann")] == ["c"]


async def test_one_of_two_writers_is_told(folder: Path) -> None:
    with stepwell.open(folder) as one, stepwell.open(folder) as other:
        stores = [StepwellConversationStore(one), StepwellConversationStore(other)]
        await stores[0].save(Conversation(conversation_id="c", messages=[asked("first")]))
        loaded = [await store.load("c") for store in stores]
        for n, it in enumerate(loaded):
            assert it is not None
            it.messages.append(answered(str(n)))
        results = await asyncio.gather(
            *(store.save(it) for store, it in zip(stores, loaded, strict=True)),  # type: ignore[arg-type]
            return_exceptions=True,
        )
        assert sum(isinstance(it, ConversationConflict) for it in results) == 1


async def test_a_fork_outlives_what_it_was_forked_from(folder: Path) -> None:
    with stepwell.open(folder) as well:
        store = StepwellConversationStore(well)
        messages = [asked("one"), answered("two"), asked("three")]
        await store.save(Conversation(conversation_id="a", messages=messages))
        await store.fork("a", at=2, new_conversation_id="b")
        await store.delete("a")
        left = await StepwellConversationStore(well).load("b")
        assert left is not None
        assert left.messages == messages[:2]
        assert [it.text for it in store.session("b").messages()] == ["one", "two"]
