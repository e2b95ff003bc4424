"""Writing a checkpoint: what is new in it, in one append."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint

from stepwell._types import JsonObject, event, record
from stepwell.langgraph._reading import SEPARATOR, Reading, place
from stepwell.langgraph._site import Site
from stepwell.langgraph._transcript import spoken, task_of
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


class Writing:
    """Writes one checkpoint."""

    def __init__(self, site: Site, config: RunnableConfig, state: Namespace) -> None:
        self.site = site
        self.thread, self.ns, self.parent = place(config)
        self.last = state
        self.attachments = Attachments()
        self.known: dict[str, int] = {}
        """How many elements at the front of a list are those of the last state."""

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
        said = self.transcript(values)
        events = [*said, *self.run(metadata)]
        kept = self.attachments.record("checkpoint", f"{self.ns}{SEPARATOR}{id}", data)
        task = task_of(values) if not self.parent else ""
        base = self.last.record or None
        blobs = self.attachments.blobs
        _, seq = site.append(self.thread, [*events, kept], blobs, task, intact=base)
        refs = {name: ref for name, (_, ref) in told.items() if ref is not None}
        state = Namespace(
            checkpoint=id,
            seq=seq,
            record=seq,
            is_newest=True,
            versions=dict(checkpoint["channel_versions"]),
            refs=refs,
            lists=lists,
            spoken=self.last.spoken,
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

    def transcript(self, values: Mapping[str, Any]) -> list[JsonObject]:
        """The messages that are new, and a rewind if an earlier checkpoint is gone on from."""
        if not self.site.transcript:
            return []
        events: list[JsonObject] = []
        if not self.ns and self.last.seq and not self.last.is_newest:
            newest = Reading(self.site, self.thread, "").newest()
            if newest is not None and newest.seq > self.last.seq:
                events.append(event("rewound", {"to": self.last.seq, "scope": "chat"}))
        said = spoken(values, self.ns, self.last.spoken, self.known)
        for it in said:
            self.attachments.share(it)
        return events + said
