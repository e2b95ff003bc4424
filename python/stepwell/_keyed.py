"""A program's own values under keys, in one session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepwell import _core
from stepwell._well import Well, dumps
from stepwell.errors import AbsentError
from stepwell.types import JsonObject, record

Row = tuple[int, str, str, list[bytes]]


@dataclass(frozen=True)
class Entry:
    """A value, and where it is recorded."""

    seq: int
    key: str
    value: Any
    blobs: list[bytes]


class Keyed:
    """Values of one session under topics and keys; the last value of a key counts."""

    def __init__(
        self, well: Well, session: str, system: str, name: str, fields: JsonObject | None = None
    ) -> None:
        self.well = well
        self.session = session
        self.system = system
        self.name = name
        self.fields = fields or {}

    def get(self, topic: str, key: str) -> Entry | None:
        """The value of a key."""
        path = f"{self.system}/{topic}/{key}"
        rows = self._rows(path, path + "\0", newest=True, limit=1)
        return self._entry(rows[0]) if rows and rows[0][2] else None

    def every(self, topic: str, prefix: str = "") -> list[Entry]:
        """The values of a topic, in the order of their keys."""
        path = f"{self.system}/{topic}/{prefix}"
        last = {row[1]: row for row in self._rows(path, path + "\U0010ffff")}
        return [self._entry(row) for row in last.values() if row[2]]

    def seqs(self, topic: str, key: str) -> list[int]:
        """Where every value that a key had is recorded."""
        path = f"{self.system}/{topic}/{key}"
        return [row[0] for row in self._rows(path, path + "\0") if row[2]]

    def _rows(
        self, first: str, end: str, *, newest: bool = False, limit: int | None = None
    ) -> list[Row]:
        try:
            return self.well.core.records(self.session, first, end, newest=newest, limit=limit)
        except AbsentError:
            return []

    def _entry(self, row: Row) -> Entry:
        seq, path, data, blobs = row
        return Entry(seq, path.split("/", 2)[2], json.loads(data), blobs)

    def record(
        self,
        topic: str,
        key: str,
        value: Any,
        *,
        text: str | None = None,
        blobs: Sequence[bytes] = (),
        attach: Sequence[int] = (),
    ) -> JsonObject:
        """The event that gives a key a value."""
        return record(self.system, topic, key, dumps(value), text=text, blobs=blobs, attach=attach)

    def write(
        self,
        events: Sequence[JsonObject],
        *,
        attachments: Sequence[bytes] = (),
        erase: Sequence[int] = (),
        expected: int | None = None,
        rule: str = "replaced",
    ) -> tuple[int, int]:
        """Appends events and erases others, all or none. The session is made if it is not there."""
        try:
            return self._write(events, attachments, erase, expected, rule)
        except AbsentError:
            self.make()
            return self._write(events, attachments, erase, expected, rule)

    def _write(
        self,
        events: Sequence[JsonObject],
        attachments: Sequence[bytes],
        erase: Sequence[int],
        expected: int | None,
        rule: str,
    ) -> tuple[int, int]:
        if erase:
            return self.well.erase(
                self.session, erase, events, rule, attachments=attachments, expected=expected
            )
        return self.well.append(self.session, events, attachments=attachments, expected=expected)

    def make(self) -> None:
        """Makes the session, unless it is there."""
        self.well.ensure(self.session, self.system, self.name, **self.fields)

    def last_seq(self) -> int:
        """Where the log ends; 0, if there is none."""
        try:
            return self.well.core.last_seq(self.session)
        except AbsentError:
            return 0


def pieces(data: bytes) -> list[bytes]:
    """A value in pieces, most of which it shares with what it was before it grew."""
    ends = _core.cut_points(data)
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
