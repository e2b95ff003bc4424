"""How a channel's value is kept: short ones in the record, long texts as blobs, lists by parts.

A reference is a JSON object. A value is `{"t": type, where: what}`. A list is `{"n": length, "s":
segments}`, or `{"n", "b": checkpoint, "k": keep, "a": segments}`: the first `keep` elements of the
same channel in an earlier checkpoint, and some more. A segment is `[count, type, where, what]`.

| where | what |
|---|---|
| `x` | the bytes, each as a character |
| `d` | a blob that holds them |
| `c` | bytes and blobs in turns: long texts are cut out of what is around them |
| `i` | the bytes in base64, as records from before have them |

Msgpack writes a list as a header and its elements' bytes one behind the other. A segment of that
type holds the elements alone, so that segments are joined by joining bytes. What a user says is an
input, then what a task wrote, then an element of the state, each with other things around it: the
text is the same blob in all of them. A segment of the type `node` holds segments, as JSON.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from stepwell import _core
from stepwell._well import dumps
from stepwell.langgraph._packing import as_bytes, as_text, name_of, packed
from stepwell.types import JsonObject, record

SYSTEM = "langgraph"

Ref = dict[str, Any]
Segment = list[Any]
Part = tuple[int, str, bytes]
"""How many elements of a list, their type, and their bytes."""
Typed = tuple[str, bytes]

INLINE = 512
"""So many bytes are no blob. A blob costs a row and its place in an index, and each record that
names it 160 bytes more: to be in two compressed records is cheaper."""

CUTS = 8
"""So many texts are cut out of a value. One that holds more is one blob: it was written as a whole,
and so it will be read."""

PLAIN = 4096
"""What a checkpoint says besides its values is in the record as JSON up to so many characters."""

CHAIN = 32
"""So many checkpoints may name an earlier one for a list, before it is told as a whole."""

NODE = "node"


class Attachments:
    """The blobs of one append, each once."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._seen: dict[str, None] = {}

    def place(self, data: bytes, kind: str = "") -> tuple[str, Any]:
        """Where some bytes are kept: in the record, as a blob, or long texts apart."""
        if len(data) <= INLINE:
            return "x", as_text(data)
        pieces = cut_out(data) if kind == "msgpack" else None
        if pieces is None:
            return "d", self._blob(data)
        return "c", [
            self._blob(piece) if number % 2 else as_text(piece)
            for number, piece in enumerate(pieces)
        ]

    def _blob(self, data: bytes) -> str:
        name = name_of(_core.digest(data))
        if name not in self._seen:
            self._seen[name] = None
            self.blobs.append(data)
        return name

    def record(self, topic: str, key: str, data: JsonObject) -> JsonObject:
        """A record that brings these blobs."""
        text = packed(data, list(self._seen))
        return record(SYSTEM, topic, key, text, attach=range(len(self.blobs)))

    def share(self, said: JsonObject) -> None:
        """Lets a message name the blobs that hold its texts, so that each is stored once."""
        if not self.blobs:
            return
        numbers = {data: number for number, data in enumerate(self.blobs)}
        texts = (
            text.encode(errors="replace")
            for part in said["body"].get("parts", ())
            for content in part.values()
            for text in content.values()
            if isinstance(text, str) and len(text) > INLINE // 4
        )
        shared = {numbers[text] for text in texts if text in numbers}
        if shared:
            said["attach"] = sorted(shared)

    def value(self, typed: Typed) -> Ref:
        """A reference to a whole value."""
        where, what = self.place(typed[1], typed[0])
        return {"t": typed[0], where: what}

    def segment(self, count: int, typed: Typed) -> Segment:
        """A segment of a list, from the list of its elements."""
        data = elements(typed[1]) if typed[0] == "msgpack" else typed[1]
        return [count, typed[0], *self.place(data, typed[0])]

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


def cut_out(data: bytes) -> list[bytes] | None:
    """The long texts of some msgpack and what is around them, in turns; None, if there are none,
    or many, or much around them.

    A text begins with `da` and two bytes that say how long it is, or with `db` and four. Other
    bytes may look like that. Then the cut is at an odd place, and joins as well.
    """
    pieces: list[bytes] = []
    start = at = 0
    while (found := _TEXT.search(data, at)) is not None:
        begin = found.end()
        end = begin + int.from_bytes(data[found.start() + 1 : begin], "big")
        if end - begin <= INLINE or end > len(data):
            at = found.start() + 1
            continue
        pieces += [data[start:begin], data[begin:end]]
        start = at = end
        if len(pieces) > 2 * CUTS:
            return None
    pieces.append(data[start:])
    around = sum(len(piece) for piece in pieces[::2])
    return pieces if len(pieces) > 1 and around <= 2 * INLINE else None


_TEXT = re.compile(rb"\xda..|\xdb....", re.DOTALL)


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
        return [ref["d"]] if "d" in ref else ref.get("c", [])[1::2]
    return named_by(ref.get("s") or ref.get("a") or ())


def named_by(segments: Iterable[Segment]) -> list[str]:
    """The blobs that some segments name themselves."""
    names: list[str] = []
    for _, _, where, what in segments:
        if where == "d":
            names.append(what)
        elif where == "c":
            names += what[1::2]
    return names


Expand = Callable[[Segment], list[Segment]]
"""What reads the segments of a node."""


def cut(segments: Sequence[Segment], keep: int, expand: Expand) -> tuple[list[Segment], int]:
    """The segments that lie within the first `keep` elements, and how many elements they hold."""
    kept: list[Segment] = []
    count = 0
    for segment in segments:
        if count + segment[0] > keep:
            if segment[1] == NODE and count < keep:
                inner, more = cut(expand(segment), keep - count, expand)
                return kept + inner, count + more
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

    def expand(self, segment: Segment) -> list[Segment]:
        """The segments of a node."""
        self.fetch(named_by([segment]))
        segments: list[Segment] = json.loads(self.data(segment[2], segment[3]))
        return segments

    def parts(self, segments: Sequence[Segment]) -> list[Part]:
        """The elements that segments hold."""
        parts: list[Part] = []
        self._each(segments, parts.extend)
        return parts

    def read_list(
        self, segments: Sequence[Segment], serde: SerializerProtocol
    ) -> tuple[list[Any], list[Part]]:
        """The list that has these segments, and its elements. Of a long one, some elements are
        loaded while the next are read."""
        value: list[Any] = []
        parts: list[Part] = []

        def take(some: list[Part]) -> None:
            parts.extend(some)
            value.extend(load_list(some, serde))

        self._each(segments, take)
        return value, parts

    def _each(self, segments: Sequence[Segment], take: Callable[[list[Part]], None]) -> None:
        if len(segments) > CHAIN or any(segment[1] == NODE for segment in segments):
            self._core.elements(dumps(segments), take)
            return
        self.fetch(named_by(segments))
        take([(count, kind, self.data(where, what)) for count, kind, where, what in segments])

    def data(self, where: str, what: Any) -> bytes:
        """The bytes that a reference stands for."""
        if where == "x":
            return as_bytes(what)
        if where == "c":
            return b"".join(
                self._found[piece] if number % 2 else as_bytes(piece)
                for number, piece in enumerate(what)
            )
        return base64.b64decode(what) if where == "i" else self._found[what]


def load(ref: Ref, blobs: Blobs, serde: SerializerProtocol) -> Any:
    """The value of a reference that is no list, and whose blobs were fetched."""
    where = next(where for where in ("x", "d", "c", "i") if where in ref)
    return serde.loads_typed((ref["t"], blobs.data(where, ref[where])))


def load_list(parts: Sequence[Part], serde: SerializerProtocol) -> list[Any]:
    """The list that has these elements."""
    if all(kind == "msgpack" for _, kind, _ in parts):
        count = sum(part[0] for part in parts)
        typed = ("msgpack", packed_list(count, [data for _, _, data in parts]))
        whole: list[Any] = serde.loads_typed(typed)
        return whole
    value: list[Any] = []
    for count, kind, data in parts:
        if kind == "msgpack":
            data = packed_list(count, [data])
        value += serde.loads_typed((kind, data))
    return value


@dataclass(frozen=True)
class Parts:
    """The serialized elements of a list. The states of a list that grows share them, so that a
    step does not copy thousands: each takes the first `count` of them."""

    parts: list[Part]
    count: int
    size: int
    """How many bytes those are."""
    plain: bool
    """Are all of them msgpack?"""

    @classmethod
    def of(cls, parts: list[Part]) -> Parts:
        """All of these."""
        plain = all(part[1] == "msgpack" for part in parts)
        return cls(parts, len(parts), sum(len(part[2]) for part in parts), plain)

    def first(self, keep: int, length: int) -> Parts | None:
        """What holds the first `keep` of `length` elements; None, if some of it goes further."""
        if keep == length:
            return self
        left = self.parts[: self.count]
        while length > keep:
            length -= left.pop()[0]
        return Parts.of(left) if length == keep else None

    def grown(self, part: Part) -> Parts:
        """These and one more, for the one whose turn it is to put."""
        # Another state may have gone on from these.
        parts = self.parts if len(self.parts) == self.count else self.parts[: self.count]
        parts.append(part)
        plain = self.plain and part[1] == "msgpack"
        return Parts(parts, self.count + 1, self.size + len(part[2]), plain)

    def load(self, length: int, serde: SerializerProtocol, front: list[Any]) -> int:
        """Loads the elements behind those that are there already, into the same list. Returns how
        many of those could stay: a part is loaded as a whole."""
        # Mostly there are none, or all but the last.
        keep, start = (length, self.count) if front else (0, 0)
        while keep > len(front):
            start -= 1
            keep -= self.parts[start][0]
        del front[keep:]
        parts = self.parts[start : self.count]
        if not self.plain:
            front += load_list(parts, serde)
        elif parts:
            packed = packed_list(length - keep, [part[2] for part in parts])
            front += serde.loads_typed(("msgpack", packed))
        return keep


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
    parts: Parts | None = None
    """Its elements, if they are remembered: what was put here or read before is not read again."""
    unchanged: int = 0
    """How many elements at its front are those of the state before."""
    read_by: SerializerProtocol | None = None
    """What loaded those elements that were read."""

    def read(
        self, parts: Parts, serde: SerializerProtocol
    ) -> tuple[list[Any], _core.KnownElements]:
        """The list, and what is known of it. Elements that were loaded before, and that nobody else
        holds any more, are given out again; the others are loaded from what is remembered."""
        known = _core.KnownElements()
        value: list[Any] = []
        if self.read_by is serde:
            # What was known is gone then: a put that is under way finds everything new.
            known, value = self.known.take_unheld()
        known.remember_read(value, parts.load(self.length, serde, value))
        return value, known


@dataclass
class Namespace:
    """The last checkpoint of a thread's namespace that this process saw."""

    checkpoint: str = ""
    seq: int = 0
    record: int = 0
    """Where the record is that this was read from. A prune may have written it anew, elsewhere."""
    is_newest: bool = False
    """Was it put here just now? Else a newer one may be there."""
    versions: dict[str, Any] = field(default_factory=dict)
    newest: Any = None
    """What a reader knows of it as the newest one."""
    refs: dict[str, Ref] = field(default_factory=dict)
    lists: dict[str, ListState] = field(default_factory=dict)
    said: Any = None
    """What the transcript has of its messages."""
    replayed: dict[str, list[Any]] = field(default_factory=dict)
    """The messages of delta channels, which are kept as what was written to them."""
    asked: list[Ref] = field(default_factory=list)
    """The questions that its tasks were kept with when it was read."""
    failed: bool = False
    """Had one of its tasks failed then?"""


def put_list(
    value: list[Any],
    last: ListState | None,
    into: tuple[str, Attachments, SerializerProtocol],
    expand: Expand,
) -> tuple[Ref, ListState]:
    """A list's reference in a new checkpoint: what it adds to the last one, or all of it."""
    checkpoint, attachments, serde = into
    known = last.known if last is not None else _core.KnownElements()
    unchanged = known.unchanged(value) if last is not None else 0
    kept, keep = kept_segments(last, unchanged, expand)
    added: list[Segment] = []
    parts: Parts | None = Parts.of([])
    if last is not None and keep:
        # Read once: another thread may set it to None.
        parts = last.parts
        parts = parts.first(keep, last.length) if parts is not None else None
    if keep < len(value):
        rest = value[keep:] if keep else value
        typed = serde.dumps_typed(rest)
        added.append(attachments.segment(len(rest), typed))
        if parts is not None:
            data = elements(typed[1]) if typed[0] == "msgpack" else typed[1]
            parts = parts.grown((len(rest), typed[0], data))
    known.remember(value, unchanged)
    if last is not None and keep and last.chain < CHAIN:
        chain = last.chain + 1
        ref: Ref = {"n": len(value), "b": last.base, "k": keep, "a": added, "c": chain}
    else:
        kept = gathered(kept, attachments)
        ref, chain = {"n": len(value), "s": kept + added}, 1
    state = ListState(known, kept + added, checkpoint, chain, len(value), parts, unchanged)
    state.read_by = last.read_by if last is not None else None
    return ref, state


def kept_segments(
    last: ListState | None, unchanged: int, expand: Expand
) -> tuple[list[Segment], int]:
    """The segments of the last list that lie within its unchanged elements, and how many elements
    they hold."""
    if last is None:
        return [], 0
    if unchanged >= last.length:
        return last.segments, last.length
    return cut(last.segments, unchanged, expand)


def gathered(segments: list[Segment], attachments: Attachments) -> list[Segment]:
    """The same segments with the small ones at the end made a node, and many nodes another, so
    that a long list is told in a few words."""
    made = segments
    for least, size in ((2, CHAIN), (CHAIN, CHAIN * CHAIN)):
        start = len(made)
        while start and made[start - 1][0] < size:
            start -= 1
        small = made[start:]
        if len(small) >= least:
            count = sum(segment[0] for segment in small)
            made = [*made[:start], [count, NODE, *attachments.place(dumps(small).encode())]]
    return made
