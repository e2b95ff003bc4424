"""Strands' storage of bytes under keys, in Stepwell."""

from __future__ import annotations

import builtins
import copy
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from strands.storage.search.keyword import KeywordSearchStrategy
from strands.storage.storage import (
    _NAMESPACED,
    StorageSearchResult,
    _normalize_key,
    _normalize_prefix,
)
from strands.types.exceptions import StorageError

from stepwell._async import run
from stepwell._keyed import Keyed, pieces
from stepwell._names import session_id
from stepwell._well import Well, well_of
from stepwell.errors import StepwellError

P = ParamSpec("P")
T = TypeVar("T")

SYSTEM = "strands-storage"


class StepwellStorage:
    """Keeps values under keys. A value that grew shares its pieces with what it was, so that a
    snapshot that is saved after each turn is stored about once."""

    def __init__(
        self, store: Well | str | os.PathLike[str] = ".stepwell", *, name: str = "default"
    ) -> None:
        self.well = well_of(store)
        self._keyed = Keyed(self.well, session_id(SYSTEM, name), SYSTEM, name)
        self._prefix = ""

    async def write(self, key: str, data: bytes) -> None:
        """Keeps a value in place of the one before."""
        await self._run(self._write, self._prefix + _normalize_key(key), bytes(data))

    def _write(self, key: str, data: bytes) -> None:
        parts = pieces(data)
        before = self._keyed.seqs("value", key)
        kept = self._keyed.record("value", key, {"size": len(data)}, attach=range(len(parts)))
        self._keyed.write([kept], attachments=parts, erase=before, rule="strands storage")

    async def read(self, key: str) -> bytes | None:
        """A value; None, if there is none."""
        return await self._run(self._read, self._prefix + _normalize_key(key))

    def _read(self, key: str) -> bytes | None:
        found = self._keyed.get("value", key)
        return None if found is None else b"".join(self.well.core.blobs(found.blobs))

    async def delete(self, key: str) -> None:
        """Erases a value."""
        await self._run(self._delete, self._prefix + _normalize_key(key))

    def _delete(self, key: str) -> None:
        before = self._keyed.seqs("value", key)
        if before:
            self._keyed.write([], erase=before, rule="strands storage")

    async def list(self, query: str = "") -> builtins.list[str]:
        """The keys that begin so, in order."""
        front = self._prefix + _normalize_prefix(query)
        found = await self._run(self._keyed.every, "value", front)
        return sorted(entry.key[len(self._prefix) :] for entry in found)

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Keys whose values hold words of a query, the best first."""
        return await KeywordSearchStrategy().search(self, query)

    def namespace(self, prefix: str) -> StepwellStorage:
        """The same storage below a prefix."""
        front = _normalize_prefix(prefix).rstrip("/")
        scoped = copy.copy(self)
        scoped._prefix = f"{self._prefix}{front}/" if front else self._prefix
        scoped._namespaced = _NAMESPACED  # type: ignore[attr-defined]
        return scoped

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await run(call, *args, **kwargs)
        except StepwellError as error:
            raise StorageError(str(error)) from error
