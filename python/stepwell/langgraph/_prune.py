"""Erasing checkpoints, so that those that stay read as before.

A checkpoint that stays may build on one that goes: a list that it only added to, or a delta
channel that is replayed from its ancestors' writes. What it needs is written into its own
record, and the same write erases the rest.

Graphs may run meanwhile. The write is done only if the session is where it was when the plan was
made. What graphs put in between stays: the plan is extended by it, and tried again. A graph that
puts a checkpoint names the record that it builds on, and reads again if that was erased.

A task may write before the checkpoint that it runs at is there. Such writes stay.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from langgraph.checkpoint.base import DeltaChannelHistory

from stepwell.errors import AbsentError, ConflictError
from stepwell.langgraph._packing import name_of, packed, unpacked
from stepwell.langgraph._reading import SEPARATOR, Found, Reading, Row, after, gone, key_of
from stepwell.langgraph._site import Site
from stepwell.langgraph._values import CHAIN, NODE, SYSTEM, Part, Ref, Segment, named, named_by
from stepwell.types import JsonObject, digest_bytes, digest_text, record


class History(TypedDict, total=False):
    """What a delta channel is built of, as references."""

    seed: Ref
    writes: list[tuple[str, str, Ref]]


def history(
    reading: Reading, target: Found | None, channels: Sequence[str], *, gaps: bool = False
) -> dict[str, History]:
    """What each channel was built of: the nearest stored value along the parents, and what was
    written from there on. With `gaps` it ends at a parent that is not there."""
    found: dict[str, History] = {name: {"writes": []} for name in channels}
    remaining = set(channels)
    at = target
    passed: set[str] = set()
    while at is not None and remaining and at.id not in passed:
        passed.add(at.id)
        left = residue(reading, at.id)
        for name in sorted(remaining & left.keys()):
            found[name]["writes"] += reversed([(w[0], w[1], w[2]) for w in left[name]["writes"]])
            if "seed" in left[name]:
                found[name]["seed"] = left[name]["seed"]
            remaining.discard(name)
        parent = at.data.get("p")
        if not parent or not remaining:
            break
        # The writes first: a prune erases them together with their checkpoint. If that is still
        # there afterwards, these are all of them.
        written = reading.writes(parent)
        at = reading.checkpoint_now(parent)
        if at is None:
            if gaps:
                break
            raise gone(reading.thread, parent, target.id if target else "")
        for task, channel, ref in reversed(written):
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
    return record_of("checkpoint", f"{found.ns}{SEPARATOR}{found.id}", data, refs)


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


@dataclass
class Plan:
    """What stays of a thread and what goes."""

    site: Site
    thread: str
    at: int
    """Where the session was when it was read."""
    rows: list[Row]
    kept: set[tuple[str, str]]
    gone: set[tuple[str, str]]
    newest: dict[str, Found]
    """The newest checkpoint of each namespace."""
    events: list[JsonObject]
    """The records of checkpoints that need others now."""
    needed: set[str] = field(default_factory=set)
    """Names of blobs that must stay, though no record may name them then."""
    runs: set[str] = field(default_factory=set)
    unsaid: list[int] = field(default_factory=list)
    """Messages that the conversation does not show any more."""

    def carry_out(self) -> None:
        """Records what stays and erases every record of a checkpoint that does not. A blob that
        is still needed, and that no record names then, gets one that does."""
        session = self.site.session_of(self.thread)
        rewritten = {f"{SYSTEM}/{it['body']['topic']}/{it['body']['key']}" for it in self.events}
        names = {f"{ns}{SEPARATOR}{id}" for ns, id in self.kept}
        runs = {f"{SYSTEM}/run/{run}" for run in self.runs}
        held = {name for it in self.events for name in it["body"].get("blobs", ())}
        seqs = list(self.unsaid)
        for seq, key, _, blobs in self.rows:
            _, topic, name = key.split("/", 2)
            lasting = name in names if topic != "run" else key not in runs
            lasting = lasting or (topic == "writes" and self.is_early(name, seq))
            if key in rewritten or not lasting:
                seqs.append(seq)
            else:
                held.update(map(digest_text, blobs))
        wanted = {name: base64.b64decode(name) for name in sorted(self.needed)}
        orphans = [it for it in wanted.values() if digest_text(it) not in held]
        events = self.events
        if orphans:
            events = [*events, record(SYSTEM, "held", "all", "{}", blobs=orphans)]
        self.site.well.erase(session, seqs, events, "langgraph prune", expected=self.at)

    def is_early(self, name: str, seq: int) -> bool:
        """Was something written at a checkpoint that is not there yet?"""
        ns, id = name.rsplit(SEPARATOR, 1)
        newest = self.newest.get(ns)
        is_known = (ns, id) in self.gone
        return not is_known and (newest is None or id > newest.id or seq > newest.seq)

    def extended(self) -> bool:
        """Takes in what was recorded meanwhile, all of which stays: no, if the plan does not hold
        any more."""
        found = self.site.well.read_events(self.site.session_of(self.thread), after=self.at)
        for it in found:
            if it.kind == "scrubbed":
                return False
            if it.kind != "record" or it.body["topic"] != "checkpoint":
                continue
            blobs = [digest_bytes(name) for name in it.body.get("blobs", ())]
            row = (it.seq, f"{SYSTEM}/checkpoint/{it.body['key']}", it.body["data"], blobs)
            put = Found(*row)
            if (put.ns, put.data.get("p")) in self.gone:
                return False
            reading = Reading(self.site, self.thread, put.ns)
            self.rows.append(row)
            self.events.append(rewritten(reading, put))
            self.needed |= reachable(reading, put)
            self.kept.add((put.ns, put.id))
        self.at = max([self.at, *(it.seq for it in found)])
        return True


def carry_out(plan: Callable[[], Plan]) -> None:
    """Makes a plan and carries it out, beside graphs that run."""
    for _ in range(_PLANS):
        try:
            made = plan()
            for _ in range(_EXTENSIONS):
                try:
                    return made.carry_out()
                except ConflictError:
                    if not made.extended():
                        break
        except AbsentError:
            # Somebody else erased what this one was reading.
            continue
    raise ConflictError("the thread is written to without a pause: prune it later")


_PLANS, _EXTENSIONS = 20, 100


def read_thread(site: Site, thread: str) -> tuple[int, list[Row], list[Found]]:
    """Where a thread's session is, all its records, and its checkpoints, the newest first."""
    session = site.session_of(thread)
    at = site.well.core.last_seq(session)
    rows = site.well.core.records(session, f"{SYSTEM}/", f"{SYSTEM}0")
    # Of records with one key the last one counts.
    last = {row[1]: row for row in rows if row[1].startswith(f"{SYSTEM}/checkpoint/")}
    found = [Found(*last[key]) for key in sorted(last, reverse=True)]
    return at, rows, [it for it in found if not it.is_gone]


def newest_of(checkpoints: Sequence[Found]) -> dict[str, Found]:
    """The newest checkpoint of each namespace, of some that come the newest first."""
    return {found.ns: found for found in reversed(checkpoints)}


def keep_latest(site: Site, thread: str) -> Plan:
    """Erases all but the newest checkpoint of each namespace."""
    at, rows, checkpoints = read_thread(site, thread)
    newest = newest_of(checkpoints)
    root = newest.get("")
    events: list[JsonObject] = []
    kept: set[tuple[str, str]] = set()
    for ns, found in newest.items():
        reading = Reading(site, thread, ns)
        parents = reading.metadata(found).get("parents") or {}
        began = parents.get("")
        # A call of a subgraph goes with the checkpoint that it was made at.
        if ":" in ns.rsplit("|", 1)[-1] and began and (root is None or began != root.id):
            continue
        kept.add((ns, found.id))
        events += [alone(reading, found), *residue_of(reading, found)]
    gone = {(found.ns, found.id) for found in checkpoints} - kept
    unsaid = site.well.core.unshown(site.session_of(thread))
    return Plan(site, thread, at, rows, kept, gone, newest, events, unsaid=unsaid)


def residue_of(reading: Reading, found: Found) -> list[JsonObject]:
    """The record of what a checkpoint's delta channels are built of."""
    left = delta_channels(reading, found)
    if not left:
        return []
    for told in left.values():
        if "seed" in told:
            told["seed"] = compact(reading, told["seed"])
    refs = [write[2] for told in left.values() for write in told["writes"]]
    refs += [told["seed"] for told in left.values() if "seed" in told]
    return [record_of("residue", f"{found.ns}{SEPARATOR}{found.id}", {**left}, refs)]


def delete_runs(site: Site, thread: str, runs: set[str]) -> Plan:
    """Erases the checkpoints of some runs."""
    at, rows, checkpoints = read_thread(site, thread)
    readings: dict[str, Reading] = {}
    kept: list[Found] = []
    gone: set[tuple[str, str]] = set()
    for found in checkpoints:
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
        if (found.ns, found.data.get("p")) in gone and not residue(reading, found.id):
            events += residue_of(reading, found)
        needed |= reachable(reading, found)
    lasting = {(found.ns, found.id) for found in kept}
    newest = newest_of(checkpoints)
    return Plan(site, thread, at, rows, lasting, gone, newest, events, needed, runs)


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
