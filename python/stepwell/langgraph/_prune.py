"""Erasing checkpoints, so that those that stay read as before.

A checkpoint that stays may build on one that goes: a list that it only added to, or a delta
channel that is replayed from its ancestors' writes. What it needs is written into its own
record first, and the same append erases the rest.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from langgraph.checkpoint.base import DeltaChannelHistory

from stepwell._types import JsonObject, digest_text, record
from stepwell.errors import AbsentError
from stepwell.langgraph._packing import name_of, packed, unpacked
from stepwell.langgraph._reading import Found, Reading, after, key_of
from stepwell.langgraph._site import Site
from stepwell.langgraph._values import CHAIN, NODE, SYSTEM, Part, Ref, Segment, named, named_by


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
    key = key_of("residue", reading.ns, checkpoint)
    try:
        rows = reading.core.records(reading.session, key, after(key), newest=True, limit=1)
    except AbsentError:
        return {}
    return unpacked(rows[0][2], rows[0][3]) if rows and rows[0][2] else {}


def whole(reading: Reading, ref: Ref, channel: str, at: str) -> Ref:
    """A reference that names no other checkpoint."""
    segments = reading.segments(ref, channel, at)
    return ref if segments is None else {"n": ref["n"], "s": segments}


def compact(reading: Reading, ref: Ref) -> Ref:
    """A reference that names all of its blobs itself. The elements of a list are put together by
    the dozen, since what named each of them goes."""
    if "s" not in ref:
        return ref
    runs: list[list[Part]] = []
    for part in reading.blobs.parts(ref["s"]):
        joins = runs and part[1] == "msgpack" and runs[-1][-1][1] == "msgpack"
        if joins and sum(it[0] for it in runs[-1]) + part[0] <= CHAIN:
            runs[-1].append(part)
        else:
            runs.append([part])
    digests = reading.core.put_blobs([b"".join(part[2] for part in run) for run in runs])
    made: list[Segment] = [
        [sum(part[0] for part in run), run[0][1], "d", name_of(digest)]
        for run, digest in zip(runs, digests, strict=True)
    ]
    return {"n": ref["n"], "s": made}


def rewritten(reading: Reading, found: Found) -> JsonObject:
    """A checkpoint's record that builds on no other."""
    data = dict(found.data)
    data["v"] = {
        name: [version, whole(reading, ref, name, found.id) if ref is not None else None]
        for name, (version, ref) in found.data["v"].items()
    }
    data["q"] = found.seq
    return checkpoint_record(found, data)


def alone(reading: Reading, found: Found) -> JsonObject:
    """The record of a checkpoint of which no other is left: it has no parent, and names all
    that it needs."""
    data = dict(found.data)
    data["v"] = {
        name: [
            version,
            compact(reading, whole(reading, ref, name, found.id)) if ref is not None else None,
        ]
        for name, (version, ref) in found.data["v"].items()
    }
    data["q"] = found.seq
    data.pop("p", None)
    return checkpoint_record(found, data)


def checkpoint_record(found: Found, data: JsonObject) -> JsonObject:
    """A checkpoint's record with other data."""
    refs = [ref for _, ref in data["v"].values() if ref is not None]
    refs += [data.get("c", {}), data["m"]]
    return record_of("checkpoint", f"{found.ns}\x1f{found.id}", data, refs)


def record_of(topic: str, key: str, data: JsonObject, refs: Iterable[Ref]) -> JsonObject:
    """A record whose references name blobs that are there."""
    names = list(dict.fromkeys(name for ref in refs for name in named(ref)))
    blobs = [base64.b64decode(name) for name in names]
    return record(SYSTEM, topic, key, packed(data, names), blobs=blobs)


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


def keep_latest(site: Site, thread: str) -> None:
    """Erases all but the newest checkpoint of each namespace."""
    newest: dict[str, Found] = {}
    gone: list[tuple[str, str]] = []
    for found in Reading(site, thread, "").all_namespaces():
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
        reading = Reading(site, thread, ns)
        parents = reading.metadata(found).get("parents") or {}
        began = parents.get("")
        # A call of a subgraph goes with the checkpoint that it was made at.
        if ":" in ns.rsplit("|", 1)[-1] and began and (root is None or began != root.id):
            gone.append((ns, found.id))
            continue
        left = delta_channels(reading, found)
        events.append(alone(reading, found))
        if left:
            for told in left.values():
                if "seed" in told:
                    told["seed"] = compact(reading, told["seed"])
            refs = [write[2] for told in left.values() for write in told["writes"]]
            refs += [told["seed"] for told in left.values() if "seed" in told]
            events.append(record_of("residue", f"{ns}\x1f{found.id}", {**left}, refs))
    kept_ids = {(ns, found.id) for ns, found in newest.items()} - set(gone)
    erase(site, thread, events, kept_ids)


def delete_runs(site: Site, thread: str, runs: set[str]) -> None:
    """Erases the checkpoints of some runs."""
    readings: dict[str, Reading] = {}
    kept: list[Found] = []
    gone: set[tuple[str, str]] = set()
    for found in Reading(site, thread, "").all_namespaces():
        reading = readings.setdefault(found.ns, Reading(site, thread, found.ns))
        if str(reading.metadata(found).get("run_id")) in runs:
            gone.add((found.ns, found.id))
        else:
            kept.append(found)
    # What stays may tell of its lists by what goes, and name blobs that only what goes holds.
    events: list[JsonObject] = []
    needed: set[str] = set()
    for found in kept:
        reading = readings[found.ns]
        refs = [ref for _, ref in found.data["v"].values() if ref is not None]
        if any((found.ns, ref.get("b")) in gone for ref in refs):
            events.append(rewritten(reading, found))
        needed |= reachable(reading, found)
    erase(site, thread, events, {(found.ns, found.id) for found in kept}, runs, needed)


def reachable(reading: Reading, found: Found) -> set[str]:
    """The blobs that a checkpoint is made of."""
    data = found.data
    names = {*named(data.get("c", {})), *named(data["m"])}
    for ref, segments in reading.refs(found).values():
        if segments is None:
            names.update(named(ref))
        while segments:
            names.update(named_by(segments))
            nodes = [segment for segment in segments if segment[1] == NODE]
            segments = [inner for node in nodes for inner in reading.blobs.expand(node)]
    return names


def erase(
    site: Site,
    thread: str,
    events: list[JsonObject],
    kept: set[tuple[str, str]],
    runs: Iterable[str] = (),
    needed: Iterable[str] = (),
) -> None:
    """Records what stays and erases every record of a checkpoint that does not. A blob that is
    still needed, and that no record names then, gets one that does."""
    session = site.session_of(thread)
    rewritten = {f"{SYSTEM}/{it['body']['topic']}/{it['body']['key']}" for it in events}
    names = {f"{ns}\x1f{id}" for ns, id in kept}
    gone = {f"{SYSTEM}/run/{run}" for run in runs}
    held = {name for it in events for name in it["body"].get("blobs", ())}
    seqs: list[int] = []
    for seq, key, data, blobs in site.well.core.records(session, f"{SYSTEM}/", f"{SYSTEM}0"):
        _, topic, name = key.split("/", 2)
        lasting = name in names if topic != "run" else key not in gone
        if data and (key in rewritten or not lasting):
            seqs.append(seq)
        else:
            held.update(map(digest_text, blobs))
    wanted = {name: base64.b64decode(name) for name in sorted(needed)}
    orphans = [it for it in wanted.values() if digest_text(it) not in held]
    if orphans:
        events = [*events, record(SYSTEM, "held", "all", "{}", blobs=orphans)]
    site.well.erase(session, seqs, events, "langgraph prune")
