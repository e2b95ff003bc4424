"""Erasing checkpoints, so that those that stay read as before.

A checkpoint that stays may build on one that goes: a list that it only added to, or a delta
channel that is replayed from its ancestors' writes. What it needs is written into its own
record first, and the same append erases the rest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from langgraph.checkpoint.base import DeltaChannelHistory

from stepwell._types import JsonObject, record
from stepwell._well import dumps
from stepwell.errors import AbsentError
from stepwell.langgraph._values import Ref, named

if TYPE_CHECKING:
    from stepwell.langgraph._saver import Found, Reading, StepwellSaver

SYSTEM = "langgraph"


class History(TypedDict, total=False):
    """What a delta channel is built of, as references."""

    seed: Ref
    writes: list[tuple[str, str, Ref]]


def history(reading: Reading, target: Found | None, channels: Sequence[str]) -> dict[str, History]:
    """What each channel was built of: the nearest stored value along the parents, and what was
    written from there on."""
    found: dict[str, History] = {name: {"writes": []} for name in channels}
    remaining = set(channels)
    at = target
    while at is not None and remaining:
        left = residue(reading, at.id)
        for name in sorted(remaining & left.keys()):
            found[name]["writes"] += reversed([(w[0], w[1], w[2]) for w in left[name]["writes"]])
            if "seed" in left[name]:
                found[name]["seed"] = left[name]["seed"]
            remaining.discard(name)
        parent = at.data.get("p")
        at = reading.checkpoint(parent) if parent and remaining else None
        if at is None:
            break
        for task, channel, ref in reversed(reading.writes(at.id)):
            if channel in remaining:
                found[channel]["writes"].append((task, channel, ref))
        for name in sorted(remaining):
            ref = at.data["v"].get(name, (None, None))[1]
            if ref is not None:
                found[name]["seed"] = whole(reading, ref, name, at.id)
                remaining.discard(name)
    for told in found.values():
        told["writes"].reverse()
    return found


def loaded(reading: Reading, told: History) -> DeltaChannelHistory:
    """The same with its values."""
    wanted = [name for write in told["writes"] for name in named(write[2])]
    reading.blobs.fetch(wanted + (named(told["seed"]) if "seed" in told else []))
    made: DeltaChannelHistory = {
        "writes": [(task, channel, reading.value(ref)) for task, channel, ref in told["writes"]]
    }
    if "seed" in told:
        made["seed"] = reading.value(told["seed"])
    return made


def residue(reading: Reading, checkpoint: str) -> dict[str, Any]:
    """What a prune left of a checkpoint's ancestors."""
    from stepwell.langgraph._saver import after, key_of

    key = key_of("residue", reading.ns, checkpoint)
    try:
        rows = reading.core.records(reading.session, key, after(key), newest=True, limit=1)
    except AbsentError:
        return {}
    return json.loads(rows[0][2]) if rows and rows[0][2] else {}


def whole(reading: Reading, ref: Ref, channel: str, at: str) -> Ref:
    """A reference that names no other checkpoint."""
    segments = reading.segments(ref, channel, at)
    return ref if segments is None else {"n": ref["n"], "s": segments}


def rewritten(reading: Reading, found: Found) -> JsonObject:
    """A checkpoint's record that stands on its own."""
    data = dict(found.data)
    data["v"] = {
        name: [version, whole(reading, ref, name, found.id) if ref is not None else None]
        for name, (version, ref) in found.data["v"].items()
    }
    data["q"] = found.seq
    refs = [ref for _, ref in data["v"].values() if ref is not None]
    blobs = blobs_of([*refs, data.get("c", {}), data["m"]])
    return record(SYSTEM, "checkpoint", f"{found.ns}\x1f{found.id}", dumps(data), blobs=blobs)


def blobs_of(refs: Iterable[Ref]) -> list[bytes]:
    """The blobs that some references name, each once."""
    names = dict.fromkeys(name for ref in refs for name in named(ref))
    return [base64.b64decode(name) for name in names]


def delta_channels(reading: Reading, found: Found) -> dict[str, History]:
    """The channels that are replayed from what ancestors wrote, and that."""
    from langgraph.checkpoint.serde.types import _DeltaSnapshot

    counters = set(reading.metadata(found).get("counters_since_delta_snapshot") or {})
    empty = [name for name, (_, ref) in found.data["v"].items() if ref is None]
    told = history(reading, found, sorted({*empty, *(counters - found.data["v"].keys())}))
    kept: dict[str, History] = {}
    for name, channel in told.items():
        seed = "seed" in channel
        if name in counters or (
            seed and isinstance(loaded(reading, channel).get("seed"), _DeltaSnapshot)
        ):
            kept[name] = channel
    return kept


def keep_latest(saver: StepwellSaver, thread: str) -> None:
    """Erases all but the newest checkpoint of each namespace."""
    from stepwell.langgraph._saver import Reading

    newest: dict[str, Found] = {}
    gone: list[tuple[str, str]] = []
    for found in Reading(saver, thread, "").all_namespaces():
        best = newest.get(found.ns)
        if best is None:
            newest[found.ns] = found
        elif found.id > best.id:
            gone.append((best.ns, best.id))
            newest[found.ns] = found
        else:
            gone.append((found.ns, found.id))
    root = newest.get("")
    events: list[JsonObject] = []
    for ns, found in newest.items():
        reading = Reading(saver, thread, ns)
        parents = reading.metadata(found).get("parents") or {}
        began = parents.get("")
        # A call of a subgraph goes with the checkpoint that it was made at.
        if ":" in ns.rsplit("|", 1)[-1] and began and (root is None or began != root.id):
            gone.append((ns, found.id))
            continue
        left = delta_channels(reading, found)
        kept = rewritten(reading, found)
        data = json.loads(kept["body"]["data"])
        data.pop("p", None)
        kept["body"]["data"] = dumps(data)
        events.append(kept)
        if left:
            refs = [write[2] for told in left.values() for write in told["writes"]]
            refs += [told["seed"] for told in left.values() if "seed" in told]
            key = f"{ns}\x1f{found.id}"
            events.append(record(SYSTEM, "residue", key, dumps(left), blobs=blobs_of(refs)))
    kept_ids = {(ns, found.id) for ns, found in newest.items()} - set(gone)
    erase(saver, thread, events, kept_ids)


def delete_runs(saver: StepwellSaver, thread: str, runs: set[str]) -> None:
    """Erases the checkpoints of some runs."""
    from stepwell.langgraph._saver import Reading

    readings: dict[str, Reading] = {}
    kept: list[Found] = []
    gone: set[tuple[str, str]] = set()
    for found in Reading(saver, thread, "").all_namespaces():
        reading = readings.setdefault(found.ns, Reading(saver, thread, found.ns))
        if str(reading.metadata(found).get("run_id")) in runs:
            gone.add((found.ns, found.id))
        else:
            kept.append(found)
    # What stays may tell of its lists by what goes.
    events = [
        rewritten(readings[found.ns], found)
        for found in kept
        if any(ref is not None and "b" in ref for _, ref in found.data["v"].values())
    ]
    erase(saver, thread, events, {(found.ns, found.id) for found in kept}, runs)


def erase(
    saver: StepwellSaver,
    thread: str,
    events: list[JsonObject],
    kept: set[tuple[str, str]],
    runs: Iterable[str] = (),
) -> None:
    """Records what stays and erases every record of a checkpoint that does not."""
    session = saver.session_of(thread)
    rewritten = {f"{SYSTEM}/{it['body']['topic']}/{it['body']['key']}" for it in events}
    names = {f"{ns}\x1f{id}" for ns, id in kept}
    gone = {f"{SYSTEM}/run/{run}" for run in runs}
    seqs: list[int] = []
    for seq, key, data, _ in saver.well.core.records(session, f"{SYSTEM}/", f"{SYSTEM}0"):
        _, topic, name = key.split("/", 2)
        lasting = name in names if topic != "run" else key not in gone
        if data and (key in rewritten or not lasting):
            seqs.append(seq)
    saver.well.erase(session, seqs, events, "langgraph prune")
