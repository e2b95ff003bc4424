"""Writing a checkpoint: what is new in it, in one append."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from stepwell.langgraph._prune import history, loaded, whole
from stepwell.langgraph._questions import went_on
from stepwell.langgraph._reading import SEPARATOR, Reading, place
from stepwell.langgraph._site import Site
from stepwell.langgraph._transcript import (
    Change,
    Said,
    Transcript,
    lists_of,
    message_of,
    task_of,
)
from stepwell.langgraph._values import (
    SYSTEM,
    Attachments,
    Blobs,
    ListState,
    Namespace,
    Ref,
    plain_rest,
    put_list,
)
from stepwell.types import JsonObject, event, record


class Writing:
    """Writes one checkpoint."""

    def __init__(self, site: Site, config: RunnableConfig, state: Namespace) -> None:
        self.site = site
        self.thread, self.ns, self.parent = place(config)
        self.last = state
        self.attachments = Attachments()
        self.known: dict[str, int] = {}
        """How many elements at the front of a list are those of the last state."""
        self.replayed: dict[str, list[Any]] = {}

    def write(
        self, checkpoint: Checkpoint, metadata: Mapping[str, Any], new: ChannelVersions
    ) -> None:
        """Writes it, with what it says and the run that it belongs to, in one append."""
        site, id = self.site, checkpoint["id"]
        rest: dict[str, Any] = {**checkpoint}
        values: dict[str, Any] = rest.pop("channel_values")
        lists: dict[str, ListState] = {}
        told: dict[str, list[Any]] = {
            name: [version, self.channel(name, version, values, new, id, lists)]
            for name, version in checkpoint["channel_versions"].items()
        }
        for name in values.keys() - told.keys():
            told[name] = [None, self.changed(name, values[name], id, lists)]
        data: JsonObject = {"v": told}
        typed, plain = site.serde.dumps_typed(rest), plain_rest(rest)
        # What a serializer encrypts is not to be read.
        if plain is not None and typed[0] == "msgpack":
            data["r"] = plain
        else:
            data["c"] = self.attachments.value(typed)
        data["m"] = self.attachments.value(site.serde.dumps_typed(metadata))
        if self.parent:
            data["p"] = self.parent
        rewinds, change = self.transcript(values, metadata)
        said = change.events() if change is not None else []
        for it in said:
            self.attachments.share(it)
        events = [*rewinds, *said, *self.run(metadata)]
        kept = self.attachments.record("checkpoint", f"{self.ns}{SEPARATOR}{id}", data)
        task = task_of(values) if not self.parent else ""
        base = self.last.record or None
        blobs = self.attachments.blobs
        first, seq = site.append(self.thread, [*events, kept], blobs, task, intact=base)
        refs = {name: ref for name, (_, ref) in told.items() if ref is not None}
        state = Namespace(
            checkpoint=id,
            seq=seq,
            record=seq,
            is_newest=True,
            versions=dict(checkpoint["channel_versions"]),
            refs=refs,
            lists=lists,
            said=change.done(first + len(rewinds)) if change is not None else None,
            replayed=self.replayed,
        )
        site.memory.remember(self.thread, self.ns, state)

    def channel(
        self,
        name: str,
        version: Any,
        values: Mapping[str, Any],
        new: ChannelVersions,
        id: str,
        lists: dict[str, ListState],
    ) -> Ref | None:
        """What a channel holds; of one that did not change, what it held before."""
        if name not in new and self.last.versions.get(name) == version:
            ref = self.last.refs.get(name)
            if type(values.get(name)) is list:
                self.known[name] = len(values[name])
            if name in self.last.lists:
                lists[name] = self.last.lists[name]
            if ref is None or "t" in ref or not ref.get("a", True):
                return ref
            # The checkpoint that told of the list is named, however often it is passed on.
            chain = ref.get("c", 1) + 1
            return {"n": ref["n"], "b": self.last.checkpoint, "k": ref["n"], "a": [], "c": chain}
        return self.changed(name, values[name], id, lists) if name in values else None

    def changed(self, name: str, value: Any, id: str, lists: dict[str, ListState]) -> Ref:
        """A value that is new here."""
        serde = self.site.serde
        if type(value) is not list or not value:
            return self.attachments.value(serde.dumps_typed(value))
        ref, lists[name] = put_list(
            value,
            self.last.lists.get(name),
            (id, self.attachments, serde),
            Blobs(self.site.well.core).expand,
        )
        self.known[name] = lists[name].unchanged
        return ref

    def run(self, metadata: Mapping[str, Any]) -> list[JsonObject]:
        """Says that a run wrote to this thread, once."""
        run_id = metadata.get("run_id")
        if not run_id or (self.thread, str(run_id)) in self.site.memory.runs:
            return []
        self.site.memory.runs.add((self.thread, str(run_id)))
        return [record(SYSTEM, "run", str(run_id))]

    def transcript(
        self, values: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> tuple[list[JsonObject], Change | None]:
        """A rewind, if an earlier checkpoint is gone on from, and how the conversation becomes the
        one that the state has."""
        if not self.site.transcript:
            return [], None
        rewinds: list[JsonObject] = [*went_on(self.last)]
        if not self.ns and self.last.seq and not self.last.is_newest:
            newest = Reading(self.site, self.thread, "").newest()
            if newest is not None and newest.seq > self.last.seq:
                rewinds.append(event("rewound", {"to": self.last.seq, "scope": "chat"}))
        said: Said = self.last.said or Said()
        lists, known = lists_of(values), dict(self.known)
        edited = any(
            known.get(name, 0) < state.length
            for name, state in self.last.lists.items()
            if name in said.channels
        )
        snapshots = {name for name, it in values.items() if isinstance(it, _DeltaSnapshot)}
        counted = set(metadata.get("counters_since_delta_snapshot") or ())
        deltas = (counted | self.last.replayed.keys() | snapshots) - (values.keys() - snapshots)
        for name in sorted(deltas):
            before = self.before(name)
            after = plain(values[name]) if name in snapshots else self.after(name, before)
            pairs = enumerate(zip(before, after, strict=False))
            known[name] = next((n for n, (one, two) in pairs if one != two), len(before))
            edited |= known[name] < len(before) or len(after) < len(before)
            lists[name] = self.replayed[name] = after
        transcript = Transcript(self.site.well.core, self.site.session_of(self.thread), self.ns)
        at = self.last.seq if any(it["kind"] == "rewound" for it in rewinds) else None
        if edited or said.channels - lists.keys():
            return rewinds, transcript.edited(lists, said, at)
        return rewinds, transcript.grown(lists, known, said if at is None else said.unplaced())

    def before(self, name: str) -> list[Any]:
        """A delta channel's messages in the last state."""
        if name in self.last.replayed or not self.parent:
            return self.last.replayed.get(name, [])
        reading = Reading(self.site, self.thread, self.ns)
        parent = reading.checkpoint(self.parent)
        if parent is None:
            return []
        kept = parent.data["v"].get(name, (None, None))[1]
        if kept is not None:
            return plain(reading.value(whole(reading, kept, name, parent.id)))
        told = loaded(reading, history(reading, parent, [name], gaps=True)[name])
        return reduced(plain(told.get("seed", [])), [value for _, _, value in told["writes"]])

    def after(self, name: str, before: list[Any]) -> list[Any]:
        """A delta channel's messages with what was written since."""
        if not self.parent:
            return before
        reading = Reading(self.site, self.thread, self.ns)
        written = [ref for _, channel, ref in reading.writes(self.parent) if channel == name]
        return reduced(before, [reading.value(ref) for ref in written])


def plain(value: Any) -> list[Any]:
    """The messages that a delta channel was kept as; none, if it holds something else."""
    value = value.value if isinstance(value, _DeltaSnapshot) else value
    are_messages = isinstance(value, list) and all(message_of(it) is not None for it in value)
    return list(value) if are_messages else []


def reduced(messages: list[Any], writes: Sequence[Any]) -> list[Any]:
    """A delta channel's messages after some writes; none, if it holds something else."""
    lists = [write if isinstance(write, list) else [write] for write in writes]
    if any(message_of(it) is None for items in lists for it in items):
        return []
    from langgraph.graph.message import _messages_delta_reducer

    made: list[Any] = _messages_delta_reducer(messages, lists)
    return made
