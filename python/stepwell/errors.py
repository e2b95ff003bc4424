"""What can go wrong. The class of an exception says what to do about it."""

from __future__ import annotations

__all__ = [
    "AbsentError",
    "BusyError",
    "ConflictError",
    "DamagedError",
    "DeniedError",
    "FencedError",
    "FullError",
    "IncompatibleError",
    "InvalidError",
    "NothingNewWarning",
    "StepwellError",
    "StorageError",
]


class StepwellError(Exception):
    """Everything that Stepwell raises."""

    kind = "error"


class NothingNewWarning(UserWarning):
    """A session was handed over to one that has all of its messages already."""


class InvalidError(StepwellError, ValueError):
    """What was asked is wrong; ask differently."""

    kind = "invalid"


class AbsentError(StepwellError, LookupError):
    """The named thing is not there, or the name fits several; name another."""

    kind = "absent"


class ConflictError(StepwellError):
    """The state has moved on; read it again, then decide."""

    kind = "conflict"


class BusyError(StepwellError, TimeoutError):
    """Someone else is at it, and the message says who; try again later."""

    kind = "busy"


class FencedError(StepwellError):
    """The right to write was lost; stop, or hold the session again."""

    kind = "fenced"


class DamagedError(StepwellError):
    """Stored data is broken; verify and repair."""

    kind = "damaged"


class IncompatibleError(StepwellError):
    """This version or place cannot read it; upgrade or move it."""

    kind = "incompatible"


class DeniedError(StepwellError, PermissionError):
    """Not allowed here; change permissions, or open for writing."""

    kind = "denied"


class FullError(StepwellError, OSError):
    """The disk is full; make room and ask again."""

    kind = "full"


class StorageError(StepwellError, OSError):
    """The machine failed; nothing was acknowledged."""

    kind = "io"
