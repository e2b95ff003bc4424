"""The plain values that a store takes and gives."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast

__all__ = [
    "Continued",
    "Event",
    "Hit",
    "JsonObject",
    "Message",
    "ResumeDecision",
    "SessionInfo",
    "SessionQuery",
    "Status",
    "StopReason",
    "ToolCall",
    "ToolResult",
    "Verdict",
]

JsonObject = dict[str, Any]

Status = Literal[
    "running",
    "paused",
    "interrupted",
    "partial",
    "completed",
    "success",
    "failed",
    "abandoned",
    "idle",
]
"""How a run stands."""

StopReason = Literal[
    "llm_done",
    "max_steps",
    "budget_exceeded",
    "timeout",
    "context_full",
    "user_interrupt",
    "crashed",
    "llm_error",
    "refusal",
    "gate",
    "abandoned",
]
"""Why a run stopped."""


class SessionQuery(TypedDict, total=False):
    """Which sessions are meant; all that are given must hold."""

    source: str
    """The framework that keeps them here, or the system that they came from."""
    scope: str
    """Exactly this scope."""
    scope_prefix: str
    """A scope that begins so."""
    status: Status | Sequence[Status]
    """One of these."""
    agent: str
    model: str
    tags: Sequence[str]
    """All of these."""
    label: str
    task: str
    """A task that holds these words."""
    workspace: str
    prefix: str
    """An id that begins so."""
    since: datetime.datetime | str
    """Updated then or later."""
    until: datetime.datetime | str
    """Updated before that."""
    trash: bool
    """Those in the trash, not the others."""
    ready: bool
    """Only those that can be resumed now."""
    sort: Literal["updated", "created", "cost", "steps"]
    oldest_first: bool


class ToolCall(TypedDict):
    """A call that a model asks for."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""


class ToolResult(TypedDict, total=False):
    """What a tool answered."""

    call_id: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    `parts` are what is said, in order, each an object with one key: `text`, `thinking`,
    `image`, `tool_call` (a `ToolCall`) or `tool_result` (a `ToolResult`).
    """

    role: str
    parts: Sequence[JsonObject] = ()
    lane: str = "main"
    model: str | None = None
    usage: JsonObject | None = None
    seq: int = 0
    """Where it is recorded; 0 before it is."""
    made: str = "recorded"
    """Why it is in a view: recorded, summary, results or aside."""

    @staticmethod
    def system(text: str) -> Message:
        """Standing instructions."""
        return Message("system", [{"text": {"text": text}}])

    @staticmethod
    def user(text: str) -> Message:
        """What the user says."""
        return Message("user", [{"text": {"text": text}}])

    @staticmethod
    def assistant(text: str = "", calls: Sequence[tuple[str, str, str]] = ()) -> Message:
        """What the model says, and the calls it asks for: (id, tool, arguments as JSON)."""
        parts: list[JsonObject] = [{"text": {"text": text}}] if text else []
        parts += [
            {"tool_call": {"id": id, "name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
        return Message("assistant", parts)

    @staticmethod
    def tool_result(call_id: str, text: str, error: bool = False) -> Message:
        """A tool's answer to a call."""
        result: JsonObject = {"call_id": call_id, "text": text}
        if error:
            result["is_error"] = True
        return Message("tool", [{"tool_result": result}])

    @property
    def text(self) -> str:
        """The plain text of it; of a tool's answer, what the tool returned."""
        said = [part["text"]["text"] for part in self.parts if "text" in part]
        said += [part["tool_result"]["text"] for part in self.parts if "tool_result" in part]
        return "\n".join(said)

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls that it asks for."""
        return [cast(ToolCall, part["tool_call"]) for part in self.parts if "tool_call" in part]

    @property
    def results(self) -> list[ToolResult]:
        """The answers of tools that it holds."""
        found = [part["tool_result"] for part in self.parts if "tool_result" in part]
        return cast("list[ToolResult]", found)

    def body(self) -> JsonObject:
        """The message as an event records it."""
        body: JsonObject = {"lane": self.lane, "role": self.role, "parts": list(self.parts)}
        if self.model is not None:
            body["model"] = self.model
        if self.usage is not None:
            body["usage"] = self.usage
        return body

    def event(self, id: str | None = None, at: str | None = None) -> JsonObject:
        """The event that records it."""
        return event("message", self.body(), id=id, at=at)

    @staticmethod
    def of_body(body: Mapping[str, Any], seq: int = 0, made: str = "recorded") -> Message:
        """The message that an event recorded."""
        return Message(
            role=body["role"],
            parts=body["parts"],
            lane=body.get("lane", "main"),
            model=body.get("model"),
            usage=body.get("usage"),
            seq=seq,
            made=made,
        )


@dataclass(frozen=True)
class Event:
    """A recorded event."""

    seq: int
    at: datetime.datetime
    kind: str
    body: JsonObject
    id: str | None = None

    @staticmethod
    def of(line: Mapping[str, Any]) -> Event:
        """The event that a line of a log tells of."""
        at = moment(line["at"])
        return Event(line["seq"], at, line["kind"], line["body"], line.get("id"))


@dataclass(frozen=True)
class SessionInfo:
    """How a session stands."""

    id: str
    seq: int
    status: str
    task: str
    agent: str
    model: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    steps: int
    messages: int
    label: str | None
    tags: Sequence[str]
    source: str | None
    """The framework that keeps it here, or the system it was imported from."""
    source_id: str | None
    """Its name there."""
    scope: str | None
    cost: float
    """US dollars."""
    held_by: str | None
    """Who may write to it now."""
    bytes: int
    fields: Mapping[str, Any] = field(repr=False)
    """All of it."""

    @staticmethod
    def of(fields: Mapping[str, Any]) -> SessionInfo:
        """How a session stands, from a store's answer."""
        source = fields.get("source") or {}
        held = fields.get("held")
        spent = fields.get("spent") or {}
        # A frozen class sets each field by a call: a fifth of what a page of sessions takes.
        made = object.__new__(SessionInfo)
        made.__dict__.update(
            id=fields["id"],
            seq=fields["seq"],
            status=fields["status"],
            task=fields["task"],
            agent=fields["agent"],
            model=fields["model"],
            created_at=moment(fields["created_at"]),
            updated_at=moment(fields["updated_at"]),
            steps=fields["steps"],
            messages=fields["messages"],
            label=fields.get("label"),
            tags=fields.get("tags", ()),
            source=source.get("system"),
            source_id=source.get("id"),
            scope=fields.get("scope"),
            cost=float(spent.get("cost", 0) or 0),
            held_by=held["holder"] if held else None,
            bytes=fields.get("bytes", 0),
            fields=fields,
        )
        return made


@dataclass(frozen=True)
class Hit:
    """Something that a search found."""

    session: str
    seq: int
    at: datetime.datetime
    kind: str
    role: str | None
    source: str | None
    """The system that the session came from, if it was not begun here."""
    snippet: str

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Hit:
        """A hit, from a store's answer."""
        return Hit(**{**fields, "at": moment(fields["at"])})


CONTINUES = ("stepwell", "continues")
"""The system and the topic of the records that say which sessions' messages one took over."""


@dataclass(frozen=True)
class Continued:
    """A session whose messages another one took over."""

    session: str
    """The session that they came from."""
    seq: int
    """The last event there that was handed over."""
    at: int
    """Where the one that took them over recorded that."""


@dataclass(frozen=True)
class ResumeDecision:
    """Whether a session can be resumed now. It is true if it can."""

    should_resume: bool
    reason: str
    """`resumable`, or the first check that failed: `not_found`, `not_ready`, `timed_out`, …"""
    checks: Sequence[JsonObject]
    """Every check, in order."""

    def __bool__(self) -> bool:
        return self.should_resume


@dataclass(frozen=True)
class Verdict:
    """What a verification found."""

    sound: bool
    """Is everything as it was recorded?"""
    intact: int
    """Events that are, from the first on."""
    scrubbed: int
    """Of those, the ones whose bodies were erased, by rule and on record."""
    pruned: int
    """Of those, the ones that a prune emptied."""
    damage: JsonObject | None
    """The first event that is not."""


def event(
    kind: str, body: Mapping[str, Any], id: str | None = None, at: str | None = None
) -> JsonObject:
    """An event to be recorded."""
    made: JsonObject = {"kind": kind, "body": body}
    if id is not None:
        made["id"] = id
    if at is not None:
        made["at"] = at
    return made


def record(
    system: str,
    topic: str,
    key: str,
    data: str = "",
    *,
    text: str | None = None,
    blobs: Sequence[bytes] = (),
    attach: Sequence[int] = (),
    id: str | None = None,
) -> JsonObject:
    """A record to be kept: a program's own data under a key."""
    body: JsonObject = {"system": system, "topic": topic, "key": key, "data": data}
    if text is not None:
        body["text"] = text
    if blobs:
        body["blobs"] = [digest_text(blob) for blob in blobs]
    made = event("record", body, id=id)
    if attach:
        made["attach"] = list(attach)
    return made


def digest_text(digest: bytes) -> str:
    """A digest as events name it."""
    return digest.hex()


def digest_bytes(text: str) -> bytes:
    """The digest that an event names so."""
    name = text.removeprefix("blake3:")
    return bytes.fromhex(name) if name == text else b"\x1e" + bytes.fromhex(name)


def moment(text: str) -> datetime.datetime:
    """The moment that a store tells, in UTC."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.datetime.fromisoformat(f"{whole}.{fraction:0<6}+00:00")


def now() -> str:
    """The time as events tell it."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
