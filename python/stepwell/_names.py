"""Which session of Stepwell keeps what a framework knows by its own id."""

from __future__ import annotations

import hashlib
import re

_VALID = re.compile(r"[A-Za-z0-9._-]+\Z")
_LONGEST = 128


def session_id(system: str, *parts: str) -> str:
    """The session's id: computed, never searched for.

    One part that is valid as an id stays readable. Anything else becomes a safe front and a
    digest, so that two ids never meet.
    """
    if len(parts) == 1 and _VALID.match(parts[0]):
        plain = f"{system}.{parts[0]}"
        if len(plain) <= _LONGEST:
            return plain
    whole = "\x1f".join(part.replace("\x1f", "\x1f\x1f") for part in parts)
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    front = re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1])[:40].strip("-")
    return f"{system}.{front}-{digest}" if front else f"{system}.{digest}"
