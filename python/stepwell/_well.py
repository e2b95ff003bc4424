"""A store of sessions, and one session of it."""

from __future__ import annotations

import datetime
import json
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args

from stepwell import _core
from stepwell.errors import AbsentError, ConflictError, InvalidError, StorageError
from stepwell.types import (
    CONTINUES,
    Continued,
    Event,
    Hit,
    JsonObject,
    Message,
    SessionInfo,
    SessionQuery,
    Status,
    StopReason,
    Verdict,
    event,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from stepwell._agents import AgentSession

_open: weakref.WeakSet[Well] = weakref.WeakSet()
"""Every store that is open here: each is closed around a fork."""

_STATE_ELSEWHERE = frozenset({"langgraph", "langgraph-store", "adk", "strands"})
"""Frameworks that keep a state beside the conversation: it would not be rewound with it."""

_KEEPERS = {
    "a rewind": _STATE_ELSEWHERE,
    "messages that it did not keep itself": _STATE_ELSEWHERE
    | {"openai", "claude", "pydantic-ai", "agent-framework"},
}

_LONGEST_HOURS = 24 * 365_000

_GLANCE = 0.1
"""So many seconds a follower waits before it looks whether it should stop."""


class Well:
    """A store of sessions. Any thread may use it; a forked child opens it anew by itself."""

    def __init__(self, core: _core.Well) -> None:
        self.core = core
        _open.add(self)

    def __repr__(self) -> str:
        return f"<stepwell.Well {self.core.place!r}>"

    def __enter__(self) -> Well:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store, when the calls that are under way have ended."""
        self.core.close()

    def sessions(
        self, *, limit: int | None = None, **query: Unpack[SessionQuery]
    ) -> list[SessionInfo]:
        """Sessions, the last updated first.

        `query` narrows them: `source`, `scope`, `scope_prefix`, `status` (one or several),
        `agent`, `model`, `tags`, `label`, `task`, `workspace`, `prefix` (of the id), `since`,
        `until`, `trash`, `ready` (those that can be resumed now); `sort` is `updated`, `created`,
        `cost` or `steps`, and `oldest_first` turns it round.
        """
        page = json.loads(self.core.sessions(_query(limit, query)))
        return [SessionInfo.of(fields) for fields in page["sessions"]]

    def search(
        self,
        text: str,
        *,
        limit: int = 20,
        by_relevance: bool = False,
        **query: Unpack[SessionQuery],
    ) -> list[Hit]:
        """What holds all of these words, over all sessions, the newest first or the best;
        `query` as for `sessions`."""
        hits = json.loads(self.core.search(text, _query(limit, query), by_relevance))
        return [Hit.of(hit) for hit in hits]

    def session(self, name: str) -> Session:
        """The session of that name: its id, its label, or a part that only it has."""
        return Session(self, self.core.find(name))

    def create(
        self,
        task: str = "",
        *,
        id: str | None = None,
        messages: Sequence[Message] = (),
        agent: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        workspace: str | None = None,
        scope: str | None = None,
    ) -> Session:
        """Makes a session that begins with these messages. `scope` narrows lists and searches."""
        created: JsonObject = {"task": task, "driver": "external"}
        given = {"id": id, "agent": agent, "model": model, "provider": provider}
        given |= {"workspace": workspace, "scope": scope}
        created |= {name: value for name, value in given.items() if value is not None}
        begun = dumps([message.event() for message in messages])
        return Session(self, self.core.create(dumps(created), begun))

    def create_agent(
        self,
        agent: str,
        purpose: str = "",
        *,
        id: str | None = None,
        workspace: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> AgentSession:
        """Makes the session of an agent that reports the phases of its work."""
        from stepwell._agents import AgentSession

        given: JsonObject = {"agent": agent, "purpose": purpose, "workspace": workspace}
        if id is not None:
            given["id"] = id
        given["metadata"] = dict(metadata or {})
        return AgentSession(self, self.core.agent_create(dumps(given)))

    def agent(self, name: str) -> AgentSession:
        """The agent's session of that name: its id, its label, or a part that only it has."""
        from stepwell._agents import AgentSession

        return AgentSession(self, self.core.find(name))

    def cleanup(self, *, hours: float = 24) -> list[str]:
        """Moves sessions of agents without activity for so many hours to the trash. Returns their
        ids; `restore` brings one back."""
        if not 0 <= hours <= _LONGEST_HOURS:
            raise InvalidError(f"{hours} hours: say a number from 0 up")
        return self.core.cleanup_agents(hours * 3600)

    def hold(self, name: str) -> Held:
        """The right to write to a session, for a `with` block. Others get a `BusyError` that
        says who holds it."""
        return Held(self, self.core.find(name))

    # What follows is for adapters.

    def ensure(self, id: str, system: str, name: str, **fields: Any) -> None:
        """Makes the session that keeps another program's data, unless it is there."""
        created: JsonObject = {
            "id": id,
            "task": "",
            "driver": "external",
            "source": {"system": system, "id": name},
            **fields,
        }
        try:
            self.core.batch(dumps([{"create": {"created": created}}]))
        except ConflictError:
            if not self.core.exists(id):
                raise

    def append(
        self,
        id: str,
        events: Sequence[JsonObject],
        *,
        attachments: Sequence[bytes] = (),
        expected: int | None = None,
        intact: int | None = None,
        redact: bool = False,
        hold: _core.Hold | None = None,
    ) -> tuple[int, int]:
        """Appends events as they are. Returns the first and the last seq. `expected` is the seq
        that the session must be at, `intact` that of an event that must not have been pruned: a
        `ConflictError` otherwise."""
        return self.core.append(
            id,
            dumps(events),
            attachments=list(attachments),
            expected=expected,
            intact=intact,
            hold=hold,
            redact=redact,
        )

    def erase(
        self,
        id: str,
        seqs: Sequence[int],
        events: Sequence[JsonObject],
        rule: str,
        *,
        attachments: Sequence[bytes] = (),
        expected: int | None = None,
    ) -> tuple[int, int]:
        """Appends events, and empties records and messages that were appended before, all or
        none. The log says that they were, and by which rule. `expected` is the seq that the
        session must be at: a `ConflictError` otherwise."""
        writes: list[JsonObject] = []
        at = {} if expected is None else {"expected": expected}
        if events:
            writes.append({"append": {"session": id, "events": list(events), **at}})
        if seqs:
            prune = {"session": id, "seqs": sorted(set(seqs)), "rule": rule}
            writes.append({"prune": {**prune, **({} if events else at)}})
        written = self.core.batch(dumps(writes), list(attachments)) if writes else []
        return written[0] if events else (0, 0)

    def has(self, id: str) -> bool:
        """Is there a session of that id?"""
        return self.core.exists(id)

    def read_events(
        self,
        id: str,
        *,
        after: int = 0,
        to: int | None = None,
        live: bool = False,
        newest: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Events of a session; `live` leaves out what a rewind took back."""
        lines = self.core.events(id, after=after, to=to, newest=newest, limit=limit, live=live)
        return [Event.of(line) for line in json.loads(lines)]


class Session:
    """One session of a store. Nothing is kept here but its name."""

    def __init__(self, well: Well, id: str, hold: _core.Hold | None = None) -> None:
        self.well = well
        self.id = id
        self._hold = hold
        self._system: str | None = None

    def __repr__(self) -> str:
        return f"<stepwell.Session {self.id!r}>"

    def info(self) -> SessionInfo:
        """How it stands."""
        return SessionInfo.of(json.loads(self.well.core.info(self.id)))

    def messages(self, lane: str = "main") -> list[Message]:
        """The conversation as a model would be shown it: always a valid one, in which each
        call is answered and nothing was rewound."""
        shown = json.loads(self.well.core.view(self.id, lane))
        return [Message.of_body(it["message"], it["seq"], it["made"]) for it in shown]

    def continues(self) -> list[Continued]:
        """The sessions whose messages this one took over, the last hand-over last."""
        front = "/".join(CONTINUES) + "/"
        try:
            rows = self.well.core.records(self.id, front, front + "\U0010ffff")
        except AbsentError:
            return []
        return [
            Continued(key.removeprefix(front), json.loads(data)["seq"], seq)
            for seq, key, data, _ in sorted(rows)
        ]

    def lanes(self) -> list[str]:
        """Whose conversations it holds."""
        return list(json.loads(self.well.core.lanes(self.id)))

    def events(
        self, *, after: int = 0, newest: bool = False, limit: int | None = None, live: bool = False
    ) -> list[Event]:
        """What was recorded; `live` leaves out what a rewind took back."""
        return self.well.read_events(self.id, after=after, newest=newest, limit=limit, live=live)

    def _refuse_foreign(self, what: str) -> None:
        """Refuses what the framework that keeps its data here would not see."""
        if self._system is None:
            self._system = self.info().source or ""
        if self._system in _KEEPERS[what]:
            raise InvalidError(
                f"session {self.id} is kept by {self._system}, which would not see {what}: "
                "do that with the framework, or fork the session"
            )

    def append(self, *what: Message | Mapping[str, Any]) -> int:
        """Records messages or events, all or none. When this returns, they are durable. A session
        that a framework keeps is written to by that framework.

        An event is an object with `kind` and `body`. Secrets are taken out first. Returns
        the last seq.
        """
        self._refuse_foreign("messages that it did not keep itself")
        events = [it.event() if isinstance(it, Message) else _event_of(it) for it in what]
        return self.well.append(self.id, events, redact=True, hold=self._hold)[1]

    def step(self, *messages: Message, lane: str = "main") -> int:
        """Records a step: the model's turn, the results of its calls, and that it is complete."""
        self._refuse_foreign("messages that it did not keep itself")
        events = dumps([message.event() for message in messages])
        return self.well.core.step(self.id, events, lane, hold=self._hold)[1]

    def status(
        self, status: Status, reason: StopReason | None = None, error: str | None = None
    ) -> int:
        """Records the run's status and why it stopped: a `stepwell.StopReason`. `error` is the text
        of a failure."""
        _one_of("status", status, Status)
        if reason is not None:
            _one_of("reason", reason, StopReason)
        body: JsonObject = {"status": status}
        if reason is not None:
            body["reason"] = reason
        if error is not None:
            body["error"] = error
        return self.well.append(self.id, [event("status", body)], redact=True, hold=self._hold)[1]

    def session_files(self) -> list[str]:
        """Paths of the files that it changed, each once, in order of their first change."""
        events = json.loads(self.well.core.keyed(self.id, ["file"]))
        paths = [event["body"]["path"] for event in events]
        # A dot stands for what was not captured.
        return list(dict.fromkeys(path for path in paths if path != "."))

    def checkpoint(self, name: str) -> int:
        """Names the present point, so that `stepwell rewind` finds it by that name. A later one of
        the same name takes its place."""
        return self.well.core.checkpoint(self.id, name, hold=self._hold)

    def answer(self, gate: str, answer: str) -> int:
        """Answers a question that the session waits for."""
        return self.well.core.answer(self.id, gate, answer)

    def fork(self, *, at: int | None = None, id: str | None = None) -> Session:
        """A new session that shares this one's events up to `at`. It costs the same however
        many they are."""
        return Session(self.well, self.well.core.fork(self.id, at=at, name=id))

    def rewind(self, to: int) -> int:
        """Moves the view back to an event. What was recorded stays, and `undo` brings it back. Of
        frameworks whose state is not this conversation, sessions are not rewound."""
        self._refuse_foreign("a rewind")
        return self.well.core.rewind(self.id, to, hold=self._hold)

    def undo(self) -> int:
        """Takes the last rewind or compaction back."""
        self._refuse_foreign("a rewind")
        return self.well.core.undo(self.id, hold=self._hold)

    def label(self, label: str | None) -> None:
        """Names the session for people; None takes the name away."""
        self.well.core.label(self.id, label)

    def verify(self) -> Verdict:
        """Re-reads and re-hashes everything that was recorded."""
        return Verdict(**json.loads(self.well.core.verify(self.id)))

    def export(self, format: str = "jsonl", path: str | os.PathLike[str] | None = None) -> bytes:
        """The session as `jsonl`, `json`, `markdown` or `html`, written to a file if one is
        named."""
        written = self.well.core.export(self.id, format)
        if path is not None:
            try:
                Path(path).write_bytes(written)
            except OSError as error:
                raise StorageError(error.errno, error.strerror, error.filename) from error
        return written

    def follow(self, *, after: int | None = None, seconds: float | None = None) -> Iterator[Event]:
        """Events as they are recorded, by whichever process, from now on or after a seq.

        It ends when nothing came for so many seconds, and when the store is closed.
        """
        yield from self.follow_until(threading.Event(), after=after, seconds=seconds)

    def follow_until(
        self, stop: threading.Event, *, after: int | None = None, seconds: float | None = None
    ) -> Iterator[Event]:
        """The same, until another thread says stop."""
        core = self.well.core
        seen = core.last_seq(self.id) if after is None else after
        last_seen = time.monotonic()
        while not stop.is_set():
            left = _GLANCE
            if seconds is not None:
                left = min(left, last_seen + seconds - time.monotonic())
            try:
                # A short wait: nothing that should end it can end a call that is under way.
                last = core.wait_after(self.id, seen, max(left, 0.0))
            except InvalidError:
                if core.closed:
                    return
                raise
            if last > seen:
                for found in self.events(after=seen):
                    seen = found.seq
                    yield found
                last_seen = time.monotonic()
            elif left <= 0:
                return

    def hold(self) -> Held:
        """The right to write to it, for a `with` block."""
        return Held(self.well, self.id)

    def trash(self) -> None:
        """Moves it to the trash, from which it can be restored."""
        self.well.core.trash(self.id)

    def restore(self) -> None:
        """Brings it back from the trash."""
        self.well.core.restore(self.id)

    def purge(self) -> None:
        """Erases it for good."""
        if not self.well.core.purge([self.id]):
            raise AbsentError(f"no session {self.id}")


class Held:
    """A session while it is held: nobody else may run it."""

    def __init__(self, well: Well, id: str) -> None:
        self._well = well
        self._id = id
        self._hold: _core.Hold | None = None

    def __enter__(self) -> Session:
        self._hold = self._well.core.hold(self._id)
        return Session(self._well, self._id, self._hold)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._hold is not None:
            self._hold.release()
            self._hold = None


def open(target: str | os.PathLike[str] = ".stepwell", *, read_only: bool = False) -> Well:
    """Opens a store, and makes it if there is none: a folder, or `postgres://…`."""
    if not isinstance(target, str | os.PathLike):
        raise InvalidError(f"{target!r} names no store: a folder or an address does")
    name = os.fspath(target)
    place = name if "://" in name else os.path.expanduser(name)
    return Well(_core.Well.open(place, read_only=read_only))


def memory() -> Well:
    """A store in memory, which leaves nothing behind."""
    return Well(_core.Well.memory())


def well_of(store: Well | str | os.PathLike[str]) -> Well:
    """The store that an adapter was given, or the one of that name."""
    return store if isinstance(store, Well) else open(store)


def dumps(value: object) -> str:
    """JSON as a store takes it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, RecursionError) as error:
        raise InvalidError(f"JSON does not hold this: {error}") from error


def _event_of(given: Any) -> JsonObject:
    if not isinstance(given, Mapping):
        raise InvalidError(f"{given!r} is neither a Message nor an event with `kind` and `body`")
    return dict(given)


def _one_of(what: str, word: str, words: Any) -> None:
    if word not in get_args(words):
        raise InvalidError(f"{word!r} is no {what}: say one of {', '.join(get_args(words))}")


def _query(limit: int | None, query: Mapping[str, Any]) -> str:
    query = {name: value for name, value in query.items() if value is not None}
    for name in query.keys() - SessionQuery.__annotations__.keys():
        import difflib

        nearest = difflib.get_close_matches(name, SessionQuery.__annotations__, 1)
        meant = f": {nearest[0]!r} is meant, perhaps" if nearest else ""
        raise InvalidError(f"sessions are not narrowed by {name!r}{meant}")
    if limit is not None and limit < 0:
        raise InvalidError(f"limit must not be negative: {limit}")
    status = query.get("status")
    if isinstance(status, str):
        query["status"] = [status]
    for name in ("status", "tags"):
        if isinstance(query.get(name), Iterable):
            query[name] = list(query[name])
    for name in ("since", "until"):
        if isinstance(query.get(name), datetime.datetime):
            query[name] = query[name].astimezone(datetime.timezone.utc).isoformat()
    if limit is not None:
        query["limit"] = limit
    return dumps(query)


def _before_fork() -> None:
    for well in list(_open):
        well.core.before_fork()


def _after_fork() -> None:
    for well in list(_open):
        well.core.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
