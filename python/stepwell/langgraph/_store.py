"""LangGraph's long-term memory in Stepwell."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from stepwell._async import run
from stepwell._names import escaped, joined, session_id, unescaped
from stepwell._well import Well, well_of
from stepwell.errors import AbsentError, InvalidError
from stepwell.types import JsonObject, record

SYSTEM = "langgraph-store"
_SEP = "\x1f"
_END = "\x1e"
_MOST_HITS = 10_000
_FIRST_PAGE, _LAST_PAGE = 32, 1024

Row = tuple[int, str, str, list[bytes]]
"""A record: its seq, key, data and blobs."""


class StepwellStore(BaseStore):
    """Keeps what graphs remember across threads: items under namespaces, with filters, words to
    search for, and a time to live. There are no vectors: a query finds items by their words.

    All items of one `name` are in one session of the store.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        name: str = "memory",
        ttl: TTLConfig | None = None,
        index: IndexConfig | None = None,
    ) -> None:
        if index is not None:
            raise InvalidError(
                "StepwellStore keeps no vectors: its queries find items by their words. Leave "
                "`index` out, or use a store with vectors for this"
            )
        self.well = well_of(store)
        self.name = name
        self.session = session_id(SYSTEM, name)
        self._scope = joined(SYSTEM, name)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Does several operations. What is put is put at once, all or none."""
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            if isinstance(op, GetOp):
                results.append(self._get(op))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            elif isinstance(op, PutOp):
                # Of two puts under one key the later one counts.
                puts.pop((op.namespace, op.key), None)
                puts[(op.namespace, op.key)] = op
                results.append(None)
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
        if puts:
            self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See `batch`."""
        return await run(self.batch, list(ops))

    def _put(self, puts: Sequence[PutOp]) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        events: list[JsonObject] = []
        replaced: list[int] = []
        for op in puts:
            rows = self._rows(key_of(op.namespace, op.key), exact=True)
            replaced += [seq for seq, _, data, _ in rows if data]
            if op.value is None:
                continue
            before = Stored.of(rows[-1]) if rows and rows[-1][2] else None
            created = before.created if before is not None and before.lives(now) else now
            stored = Stored(op.namespace, op.key, dict(op.value), created, now, op.ttl)
            stored.words = op.index
            events.append(stored.record())
        if events or replaced:
            self._write(events, replaced)

    def _write(self, events: list[JsonObject], replaced: list[int]) -> None:
        try:
            self.well.erase(self.session, replaced, events, "langgraph store")
        except AbsentError:
            fields = {"task": f"memory {self.name}", "scope": self._scope}
            self.well.ensure(self.session, SYSTEM, self.name, **fields)
            self.well.erase(self.session, replaced, events, "langgraph store")

    def _rows(self, key: str, *, exact: bool = False) -> list[Row]:
        end = key + "\0" if exact else behind(key)
        return self._between(key, end)

    def _between(self, first: str, end: str, limit: int | None = None) -> list[Row]:
        try:
            return self.well.core.records(self.session, first, end, limit=limit)
        except AbsentError:
            return []

    def _get(self, op: GetOp) -> Item | None:
        rows = self._rows(key_of(op.namespace, op.key), exact=True)
        if not rows or not rows[-1][2]:
            return None
        found = Stored.of(rows[-1])
        if not found.lives(datetime.datetime.now(datetime.timezone.utc)):
            return None
        if op.refresh_ttl:
            self._refresh([found])
        return Item(**found.fields())

    def _refresh(self, items: Sequence[Stored]) -> None:
        """Lets items live on from now."""
        now = datetime.datetime.now(datetime.timezone.utc)
        events = [item.renewed(now).record() for item in items if item.ttl is not None]
        replaced = [item.seq for item in items if item.ttl is not None]
        if events:
            self._write(events, replaced)

    def _living(self, prefix: tuple[str, ...] = ()) -> Iterator[Stored]:
        """The items below a namespace, in the order of their keys, as far as they are wanted."""
        now = datetime.datetime.now(datetime.timezone.utc)
        first, end = front_of(prefix), behind(front_of(prefix))
        size = _FIRST_PAGE
        while True:
            rows = self._between(first, end, size)
            # Of records with one key the last one counts; those of the last key may go on.
            whole = len(rows) < size
            last = {row[1]: row for row in rows}
            if not whole and len(last) > 1:
                first = rows[-1][1]
                last.pop(first)
            elif not whole:
                size *= 2
                continue
            for row in last.values():
                if (found := Stored.of(row)).lives(now):
                    yield found
            if whole:
                return
            size = min(2 * size, _LAST_PAGE)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = (
            self._hits(op) if op.query else ((it, None) for it in self._living(op.namespace_prefix))
        )
        fitting = ((it, score) for it, score in found if matches(it.value, op.filter))
        page = list(itertools.islice(fitting, op.offset, op.offset + op.limit))
        if op.refresh_ttl:
            self._refresh([item for item, _ in page])
        return [SearchItem(**item.fields(), score=score) for item, score in page]

    def _hits(self, op: SearchOp) -> Iterator[tuple[Stored, float | None]]:
        """The items below a namespace that hold the words of a query, the best first."""
        now = datetime.datetime.now(datetime.timezone.utc)
        front = front_of(op.namespace_prefix)
        hits = self.well.search(
            op.query or "", scope=self._scope, limit=_MOST_HITS, by_relevance=True
        )
        for rank, hit in enumerate(hits):
            for it in self.well.read_events(self.session, after=hit.seq - 1, to=hit.seq):
                path = f"{SYSTEM}/item/{it.body.get('key', '')}"
                if it.kind == "record" and it.body["data"] and path.startswith(front):
                    stored = Stored.of((it.seq, path, it.body["data"], []))
                    if stored.lives(now):
                        yield stored, 1 / (rank + 1)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {
            ns
            for ns in self._all_namespaces()
            if all(fits(ns, condition) for condition in conditions)
        }
        if op.max_depth is not None:
            found = {ns[: op.max_depth] for ns in found}
        return sorted(found)[op.offset : op.offset + op.limit]

    def _all_namespaces(self) -> Iterator[tuple[str, ...]]:
        """The namespaces that have a living item: one look for each, not one for each item."""
        now = datetime.datetime.now(datetime.timezone.utc)
        first, end = front_of(()), behind(front_of(()))
        while rows := self._between(first, end, 1):
            names = rows[0][1].split(_END, 1)[0] + _END
            items = (Stored.of(row) for row in self._between(rows[0][1], behind(names), 1))
            found = next(items, None)
            if found is not None and not found.lives(now):
                # The first one's time is over: look at the others.
                others = map(Stored.of, self._between(rows[0][1], behind(names)))
                found = next((it for it in others if it.lives(now)), None)
            if found is not None:
                yield found.namespace
            first = behind(names)

    def sweep_ttl(self) -> int:
        """Erases the items whose time is over. Returns how many."""
        now = datetime.datetime.now(datetime.timezone.utc)
        rows = self._rows(f"{SYSTEM}/item/")
        over = [row[0] for row in rows if row[2] and not Stored.of(row).lives(now)]
        if over:
            self._write([], over)
        return len(over)


class Stored:
    """An item as it is kept."""

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created: datetime.datetime,
        updated: datetime.datetime,
        ttl: float | None,
        read: datetime.datetime | None = None,
        seq: int = 0,
    ) -> None:
        self.namespace = namespace
        self.key = key
        self.value = value
        self.created = created
        self.updated = updated
        self.ttl = ttl
        self.read = read or updated
        self.seq = seq
        self.words: Literal[False] | list[str] | None = None
        """The fields that a query finds it by: all, if None."""

    @staticmethod
    def of(row: tuple[int, str, str, list[bytes]]) -> Stored:
        """The item that a record tells of."""
        seq, path, data, _ = row
        names, key = path.removeprefix(f"{SYSTEM}/item/").split(_END, 1)
        told = json.loads(data)
        when = datetime.datetime.fromisoformat
        return Stored(
            tuple(map(unescaped, names.split(_SEP)[:-1])),
            key,
            told["v"],
            when(told["c"]),
            when(told["u"]),
            told.get("t"),
            when(told["r"]) if "r" in told else None,
            seq,
        )._finding(told.get("i"))

    def _finding(self, words: Literal[False] | list[str] | None) -> Stored:
        self.words = words
        return self

    def lives(self, now: datetime.datetime) -> bool:
        """Is its time not over?"""
        return self.ttl is None or now < self.read + datetime.timedelta(minutes=self.ttl)

    def renewed(self, now: datetime.datetime) -> Stored:
        """The same item, read now."""
        return Stored(
            self.namespace, self.key, self.value, self.created, self.updated, self.ttl, now
        )._finding(self.words)

    def fields(self) -> JsonObject:
        """The item as LangGraph tells of it."""
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": self.value,
            "created_at": self.created,
            "updated_at": self.updated,
        }

    def record(self) -> JsonObject:
        """The record that keeps it."""
        told: JsonObject = {
            "v": self.value,
            "c": self.created.isoformat(),
            "u": self.updated.isoformat(),
        }
        if self.ttl is not None:
            told["t"] = self.ttl
            told["r"] = self.read.isoformat()
        if self.words is not None:
            told["i"] = self.words
        path = key_of(self.namespace, self.key).removeprefix(f"{SYSTEM}/item/")
        data = json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=plain)
        return record(SYSTEM, "item", path, data, text=self.text() or None)

    def text(self) -> str:
        """The words that a query finds it by."""
        if self.words is None:
            return text_of(self.value)
        found = [text_of(at_path(self.value, path)) for path in self.words or ()]
        return "\n".join(filter(None, found))


def key_of(namespace: tuple[str, ...], key: str) -> str:
    """What an item's record is found by."""
    return front_of(namespace) + _END + key


def front_of(namespace: tuple[str, ...]) -> str:
    """What the keys of all items below a namespace begin with."""
    return f"{SYSTEM}/item/" + "".join(escaped(part) + _SEP for part in namespace)


def behind(front: str) -> str:
    """The least key behind all that begin so."""
    return front[:-1] + chr(ord(front[-1]) + 1)


def plain(value: Any) -> Any:
    """A value that JSON does not have, as LangGraph's own stores keep it."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise InvalidError(f"an item holds {type(value).__name__}, which JSON does not have")


def at_path(value: Any, path: str) -> Any:
    """What a value holds under a name, or under names with dots between them."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_of(value: Any) -> str:
    """The words of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(filter(None, map(text_of, value.values())))
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(text_of, value)))
    return "" if value is None or isinstance(value, bool) else str(value)


def fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Does a namespace begin or end as a condition says?"""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", name) for name, wanted in zip(part, path, strict=True))


def matches(value: Any, wanted: dict[str, Any] | None) -> bool:
    """Does an item have what a filter asks for?"""
    return all(compares(at_path(value, name), it) for name, it in (wanted or {}).items())


def compares(value: Any, wanted: Any) -> bool:
    """Is a value as a condition says: equal, or related by operators?"""
    if not isinstance(wanted, dict):
        if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
            return len(value) == len(wanted) and all(map(compares, value, wanted))
        return bool(value == wanted)
    if any(name.startswith("$") for name in wanted):
        return all(_operate(name, value, operand) for name, operand in wanted.items())
    return isinstance(value, dict) and all(
        compares(value.get(name), condition) for name, condition in wanted.items()
    )


def _operate(name: str, value: Any, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {name}")
    if value is None:
        return False
    left, right = float(value), float(operand)
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right}.get(
        name, left <= right
    )
