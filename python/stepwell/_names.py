"""Which session of Stepwell keeps what a framework knows by its own id, and which key what it knows
by several names."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_LONGEST = 128


def presented(module: dict[str, Any], names: Iterable[str]) -> None:
    """Lets classes and functions say that they are of the module that gives them to users, not of
    the one that they are written in. A dataclass stays: its annotations are looked up there."""
    for name in names:
        given = module[name]
        written_in = getattr(given, "__module__", None) or ""
        if callable(given) and "._" in written_in:
            given.__module__ = module["__name__"]


def session_id(system: str, *parts: str) -> str:
    """The session's id: computed, never searched for.

    One part that is valid as an id stays readable: `system.part`. Anything else becomes a safe
    front and a digest, behind two dots. No part that stays readable begins with a dot, so that two
    ids never meet.
    """
    if len(parts) == 1 and _PLAIN.match(parts[0]):
        plain = f"{system}.{parts[0]}"
        if len(plain) <= _LONGEST:
            return plain
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    front = re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1])[:40].strip("-.")
    return f"{system}..{front}-{digest}" if front else f"{system}..{digest}"


def joined(*parts: str) -> str:
    """Several names as one that people can read, and no others give."""
    return "/".join(quote(part, safe="") for part in parts)


def escaped(part: str) -> str:
    """A name without the characters that stand between names in a key."""
    return part.replace("%", "%25").replace("\x1e", "%1E").replace("\x1f", "%1F")


def unescaped(part: str) -> str:
    """The name that was escaped so."""
    return part.replace("%1F", "\x1f").replace("%1E", "\x1e").replace("%25", "%")
