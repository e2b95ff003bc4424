"""Long-term memory: items, namespaces, filters, words, time to live."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base")
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import stepwell
from stepwell.langgraph import StepwellStore


def names(found: Any) -> list[tuple[Any, ...]]:
    """What was found, in an order of its own."""
    return sorted((it.namespace, it.key, str(it.value)) for it in found)


@pytest.mark.on_a_server
def test_items_are_put_read_replaced_and_deleted(well: stepwell.Well) -> None:
    store = StepwellStore(well)
    store.put(("users", "ann"), "likes", {"food": "curry", "stars": 5})
    found = store.get(("users", "ann"), "likes")
    assert found is not None
    assert found.value == {"food": "curry", "stars": 5}
    store.put(("users", "ann"), "likes", {"food": "pasta"})
    again = store.get(("users", "ann"), "likes")
    assert again is not None
    assert (again.value, again.created_at) == ({"food": "pasta"}, found.created_at)
    assert again.updated_at > found.updated_at
    store.delete(("users", "ann"), "likes")
    assert store.get(("users", "ann"), "likes") is None
    assert StepwellStore(well, name="other").get(("users", "ann"), "likes") is None


@pytest.mark.on_a_server
def test_a_query_finds_items_by_their_words(well: stepwell.Well) -> None:
    store = StepwellStore(well)
    store.put(("docs",), "a", {"text": "the refund policy is thirty days"})
    store.put(("docs",), "b", {"text": "shipping takes a week"})
    assert [it.key for it in store.search(("docs",), query="refund policy")] == ["a"]
    store.put(("docs",), "a", {"text": "no more refunds"})
    assert store.search(("docs",), query="thirty days") == []


def test_an_item_ends_with_its_time(folder: Path) -> None:
    with stepwell.open(folder) as well:
        store = StepwellStore(well)
        store.put(("t",), "short", {"x": 1}, ttl=0)
        store.put(("t",), "long", {"x": 1}, ttl=60)
        assert store.get(("t",), "short") is None
        assert [it.key for it in store.search(("t",))] == ["long"]
        assert store.sweep_ttl() == 1


@pytest.mark.on_a_server
def test_random_operations_do_what_the_store_in_memory_does(well: stepwell.Well) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    ours, theirs = StepwellStore(well), InMemoryStore()
    spaces = [("a",), ("a", "b"), ("a", "c"), ("d", "b")]
    for _ in range(120):
        ns, key = rng.choice(spaces), rng.choice("xyz")
        value = {"n": rng.randrange(5), "s": rng.choice(["p", "q"])}
        ops = [
            PutOp(ns, key, value if rng.random() < 0.7 else None),
            GetOp(ns, rng.choice("xyz")),
            SearchOp(
                rng.choice([(), ("a",), ("d",)]), filter={"n": {"$gte": rng.randrange(5)}}, limit=99
            ),
            ListNamespacesOp(
                match_conditions=(MatchCondition("suffix", ("b",)),),
                max_depth=rng.choice([1, None]),
            ),
        ]
        for op in ops:
            (mine,), (other,) = ours.batch([op]), theirs.batch([op])
            if isinstance(op, ListNamespacesOp):
                # The store in memory also tells of namespaces that are empty again.
                assert set(mine) <= set(other)  # type: ignore[arg-type]
            elif isinstance(op, SearchOp):
                assert names(mine) == names(other)
            elif isinstance(op, GetOp):
                assert (mine and mine.value) == (other and other.value)  # type: ignore[union-attr]


async def test_the_async_form_does_the_same(well: stepwell.Well) -> None:
    store = StepwellStore(well)
    await store.aput(("u",), "k", {"v": 1})
    found = await store.aget(("u",), "k")
    assert found is not None
    assert found.value == {"v": 1}
    assert [it.key for it in await store.asearch(("u",), filter={"v": 1})] == ["k"]


def counted(well: stepwell.Well, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each look at the store gave."""
    seen: list[int] = []
    records = well.core.records

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(core, name)

        def records(self, *args: Any, **options: Any) -> Any:
            found = records(*args, **options)
            seen.append(len(found))
            return found

    core = well.core
    monkeypatch.setattr(well, "core", Counting())
    return seen


def test_no_look_takes_all_items(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stepwell.open(folder) as well:
        store = StepwellStore(well)
        puts = [
            PutOp(("many", f"n{n % 5}"), f"{n:05}", {"n": n, "text": f"word{n}x"})
            for n in range(2000)
        ]
        store.batch(puts)
        seen = counted(well, monkeypatch)
        assert [it.value["n"] for it in store.search(("many", "n0"), limit=3)] == [0, 5, 10]
        assert len(store.list_namespaces()) == 5
        assert [it.key for it in store.search(("many",), query="word77x")] == ["00077"]
        assert sum(seen) < 100
        # All of them are found, page by page, in the order of their keys.
        found = store.search(("many",), limit=5000)
        assert [it.value["n"] for it in found] == [n for r in range(5) for n in range(r, 2000, 5)]
        assert len(store.search((), limit=10, offset=1995)) == 5


@pytest.mark.on_a_server
def test_filters_reach_into_values_and_dates_are_kept(well: stepwell.Well) -> None:
    store = StepwellStore(well)
    when = datetime.datetime(2026, 11, 18, tzinfo=datetime.timezone.utc)
    store.put(("f",), "a", {"user": {"name": "ann", "age": 40}, "when": when})
    store.put(("f",), "b", {"user": {"name": "bob", "age": 20}, "a.b": 1})
    assert [it.key for it in store.search(("f",), filter={"user.name": "ann"})] == ["a"]
    assert [it.key for it in store.search(("f",), filter={"user.age": {"$lt": 30}})] == ["b"]
    assert [it.key for it in store.search(("f",), filter={"a.b": 1})] == ["b"]
    found = store.get(("f",), "a")
    assert found is not None
    assert found.value["when"] == when.isoformat()
    with pytest.raises(stepwell.InvalidError, match="holds object"):
        store.put(("f",), "c", {"what": object()})


def test_a_query_finds_what_an_item_is_found_by(well: stepwell.Well) -> None:
    store = StepwellStore(well)
    store.put(("i",), "hidden", {"text": "cistern"}, index=False)
    store.put(("i",), "part", {"title": "cistern", "text": "pump"}, index=["title"])
    store.put(("i",), "all", {"title": "well", "text": "cistern"})
    assert sorted(it.key for it in store.search(("i",), query="cistern")) == ["all", "part"]
    assert store.search(("i",), query="pump") == []
    assert [it.key for it in store.search(("i",), filter={"text": "cistern"})] == ["all", "hidden"]
    with pytest.raises(stepwell.InvalidError, match="keeps no vectors"):
        StepwellStore(well, index={"dims": 2, "embed": lambda texts: [[0.0, 1.0] for _ in texts]})
