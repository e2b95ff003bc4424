"""How a channel's value is kept: small ones in the record, others as blobs, lists by parts.

A reference is a JSON object. A value is `{"t": type, "i": base64}` or `{"t": type, "d": digest}`.
A list is `{"n": length, "s": segments}`, or `{"n", "b": checkpoint, "k": keep, "a": segments}`:
the first `keep` elements of the same channel in an earlier checkpoint, and some more. A segment
is `[count, type, "i" or "d", base64]`.

Msgpack writes a list as a header and its elements' bytes one behind the other. A segment of that
type holds the elements alone. So segments are joined by joining bytes, and what a task wrote
and what the next checkpoint adds are the same blob.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from stepwell import _core
from stepwell._types import JsonObject
from stepwell._well import dumps

Ref = dict[str, Any]
Segment = list[Any]
Typed = tuple[str, bytes]

INLINE = 64
"""A value of at most so many bytes is no blob: its digest would be as long."""

PLAIN = 256
"""What a checkpoint says besides its values is in the record as JSON up to so many characters: a
blob of its own costs a row, its digest three times, and two rows that name it."""

CHAIN = 32
"""So many checkpoints may name an earlier one for a list, before it is told as a whole."""


class Attachments:
    """The blobs of one append, each once."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._seen: set[bytes] = set()

    def place(self, data: bytes) -> tuple[str, str]:
        """Where some bytes are kept: in the record, or as a blob."""
        if len(data) <= INLINE:
            return "i", base64.b64encode(data).decode()
        digest = _core.digest(data)
        if digest not in self._seen:
            self._seen.add(digest)
            self.blobs.append(data)
        return "d", base64.b64encode(digest).decode()

    def value(self, typed: Typed) -> Ref:
        """A reference to a whole value."""
        where, what = self.place(typed[1])
        return {"t": typed[0], where: what}

    def segment(self, count: int, typed: Typed) -> Segment:
        """A segment of a list, from the list of its elements."""
        data = elements(typed[1]) if typed[0] == "msgpack" else typed[1]
        return [count, typed[0], *self.place(data)]

    def any(self, serde: SerializerProtocol, value: Any) -> Ref:
        """A reference to any value: a list by its elements, so that they are found again."""
        typed = serde.dumps_typed(value)
        if type(value) is list and value and typed[0] == "msgpack":
            return {"n": len(value), "s": [self.segment(len(value), typed)]}
        return self.value(typed)


def plain_rest(rest: dict[str, Any]) -> JsonObject | None:
    """What a checkpoint says besides its values, its id and its versions, which are kept anyway;
    None, if JSON does not hold it, or it is long."""
    if any(type(it) not in (str, int) for it in rest["channel_versions"].values()):
        return None
    left = {name: it for name, it in rest.items() if name not in ("id", "channel_versions")}
    try:
        text = dumps(left)
    except (TypeError, ValueError):
        return None
    return left if len(text) <= PLAIN and json.loads(text) == left else None


def elements(packed: bytes) -> bytes:
    """The elements of a list in msgpack, without its header."""
    first = packed[0]
    if 0x90 <= first <= 0x9F:
        return packed[1:]
    if first == 0xDC:
        return packed[3:]
    if first == 0xDD:
        return packed[5:]
    raise ValueError(f"{first:#x} begins no list in msgpack")


def packed_list(count: int, parts: Iterable[bytes]) -> bytes:
    """A list in msgpack, from its elements."""
    if count < 16:
        head = bytes([0x90 | count])
    elif count < 1 << 16:
        head = b"\xdc" + struct.pack(">H", count)
    else:
        head = b"\xdd" + struct.pack(">I", count)
    return b"".join([head, *parts])


def named(ref: Ref) -> list[str]:
    """The blobs that a reference names itself."""
    if "t" in ref:
        return [ref["d"]] if "d" in ref else []
    parts: Sequence[Segment] = ref.get("s") or ref.get("a") or ()
    return [part[3] for part in parts if part[2] == "d"]


def cut(segments: Sequence[Segment], keep: int) -> tuple[list[Segment], int]:
    """The segments that lie within the first `keep` elements, and how many elements they hold."""
    kept: list[Segment] = []
    count = 0
    for segment in segments:
        if count + segment[0] > keep:
            break
        kept.append(segment)
        count += segment[0]
    return kept, count


class Blobs:
    """Blobs that are read together."""

    def __init__(self, core: _core.Well) -> None:
        self._core = core
        self._found: dict[str, bytes] = {}

    def fetch(self, wanted: Iterable[str]) -> None:
        """Reads these, unless they were read before."""
        missing = [name for name in dict.fromkeys(wanted) if name not in self._found]
        if missing:
            digests = [base64.b64decode(name) for name in missing]
            self._found.update(zip(missing, self._core.blobs(digests), strict=True))

    def data(self, where: str, what: str) -> bytes:
        """The bytes that a reference stands for."""
        return base64.b64decode(what) if where == "i" else self._found[what]


def load(
    ref: Ref, segments: Sequence[Segment] | None, blobs: Blobs, serde: SerializerProtocol
) -> Any:
    """The value of a reference whose blobs were fetched; of a list, of all its segments."""
    if segments is None:
        where = "i" if "i" in ref else "d"
        return serde.loads_typed((ref["t"], blobs.data(where, ref[where])))
    if all(segment[1] == "msgpack" for segment in segments):
        parts = [blobs.data(segment[2], segment[3]) for segment in segments]
        return serde.loads_typed(("msgpack", packed_list(ref["n"], parts)))
    value: list[Any] = []
    for count, kind, where, what in segments:
        data = blobs.data(where, what)
        if kind == "msgpack":
            data = packed_list(count, [data])
        value += serde.loads_typed((kind, data))
    return value


@dataclass
class ListState:
    """A list as it was last put or read: what is known of its elements, and where they are."""

    known: _core.KnownElements
    segments: list[Segment]
    base: str
    """The checkpoint that tells of it."""
    chain: int
    """How many checkpoints one has to look at to read it there."""
    length: int


@dataclass
class Namespace:
    """The last checkpoint of a thread's namespace that this process saw."""

    checkpoint: str = ""
    seq: int = 0
    is_newest: bool = False
    """Was it put here just now? Else a newer one may be there."""
    versions: dict[str, Any] = field(default_factory=dict)
    refs: dict[str, Ref] = field(default_factory=dict)
    lists: dict[str, ListState] = field(default_factory=dict)
    spoken: set[str] = field(default_factory=set)
    """Ids of the messages that are in the transcript."""


def put_list(
    value: list[Any],
    last: ListState | None,
    into: tuple[str, Attachments, SerializerProtocol],
    read: Callable[[Sequence[Segment]], list[bytes]],
) -> tuple[Ref, ListState]:
    """A list's reference in a new checkpoint: what it adds to the last one, or all of it."""
    checkpoint, attachments, serde = into
    known = last.known if last is not None else _core.KnownElements()
    unchanged = known.unchanged(value) if last is not None else 0
    kept, keep = cut(last.segments, unchanged) if last is not None else ([], 0)
    added: list[Segment] = []
    if keep < len(value):
        rest = value[keep:] if keep else value
        added.append(attachments.segment(len(rest), serde.dumps_typed(rest)))
    known.remember(value, unchanged)
    if last is not None and keep and last.chain < CHAIN:
        chain = last.chain + 1
        ref: Ref = {"n": len(value), "b": last.base, "k": keep, "a": added, "c": chain}
    else:
        kept = merged(kept, attachments, read)
        ref, chain = {"n": len(value), "s": kept + added}, 1
    return ref, ListState(known, kept + added, checkpoint, chain, len(value))


def merged(
    segments: list[Segment],
    attachments: Attachments,
    read: Callable[[Sequence[Segment]], list[bytes]],
) -> list[Segment]:
    """The same segments with the small ones at the end made one, so that reading a long list
    does not read each element by itself."""
    start = len(segments)
    while start and segments[start - 1][0] < CHAIN and segments[start - 1][1] == "msgpack":
        start -= 1
    small = segments[start:]
    if len(small) < 2:
        return segments
    data = b"".join(read(small))
    count = sum(segment[0] for segment in small)
    return [*segments[:start], [count, "msgpack", *attachments.place(data)]]
