"""ADK's sessions in Stepwell."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import time
import uuid
from typing import Any
from urllib.parse import quote

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import _session_util
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from stepwell import _core
from stepwell._async import run
from stepwell._continue import hand_over
from stepwell._items import ItemLog
from stepwell._keyed import Keyed
from stepwell._names import joined
from stepwell._names import session_id as name_of
from stepwell._well import Session as StoredSession
from stepwell._well import Well, dumps, well_of
from stepwell.adk._events import from_messages, to_message
from stepwell.errors import AbsentError, ConflictError
from stepwell.types import JsonObject

SYSTEM = "adk"
_LONGEST_KEY = 600


class StepwellSessionService(BaseSessionService):
    """Keeps sessions, their events and their state.

    State of an app and of a user is in sessions of its own and is written together with the
    event that changes it. Of two who append to the same revision of a session one gets a
    `StaleSessionError`. A deleted session is erased.
    """

    def __init__(
        self, store: Well | str | os.PathLike[str] = ".stepwell", *, transcript: bool = True
    ) -> None:
        self.well = well_of(store)
        self.transcript = transcript

    # Names.

    def session(self, app_name: str, user_id: str, session_id: str) -> StoredSession:
        """The session of the store."""
        return StoredSession(self.well, name_of(SYSTEM, app_name, user_id, session_id))

    def _keyed(self, app_name: str, user_id: str, id: str) -> Keyed:
        session = name_of(SYSTEM, app_name, user_id, id)
        fields = {"scope": f"{app_scope(app_name)}{quote(user_id, safe='')}", "agent": app_name}
        return Keyed(self.well, session, SYSTEM, id, fields)

    def _shared(self, app_name: str, user_id: str | None) -> Keyed:
        """Where the state of an app, or of a user of it, is."""
        if user_id is None:
            session, name = name_of("adk-app", app_name), app_name
        else:
            session, name = name_of("adk-user", app_name, user_id), joined(app_name, user_id)
        return Keyed(self.well, session, "adk-state", name)

    def _log(self, keyed: Keyed) -> ItemLog:
        return ItemLog(
            self.well,
            keyed.session,
            SYSTEM,
            keyed.name,
            to_message,
            transcript=self.transcript,
            fields=keyed.fields,
        )

    # Reading.

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session, with its events and the state that holds in it."""
        return await run(self._get, app_name, user_id, session_id.strip(), config)

    def _get(
        self, app_name: str, user_id: str, id: str, config: GetSessionConfig | None
    ) -> Session | None:
        keyed = self._keyed(app_name, user_id, id)
        log = self._log(keyed)
        begun = keyed.get("session", "now")
        if begun is None:
            return None
        while True:
            last = keyed.last_seq()
            recent = config.num_recent_events if config is not None else None
            kept = log.all() if recent is None else log.newest(max(recent, 1))
            state = self._state(keyed)
            # A session that moved on meanwhile is read again, so that all of it is of one moment.
            if keyed.last_seq() == last:
                break
        events = [Event.model_validate(it.item) for it in kept]
        updated = events[-1].timestamp if events else begun.value["time"]
        if recent is not None:
            events = events[-recent:] if recent else []
        if config is not None and config.after_timestamp is not None:
            events = [it for it in events if it.timestamp >= config.after_timestamp]
        session = Session(
            id=id,
            app_name=app_name,
            user_id=user_id,
            state=state | self._shared_state(app_name, user_id),
            events=events,
            last_update_time=updated,
        )
        session._storage_update_marker = str(last)
        return session

    def _state(self, keyed: Keyed) -> dict[str, Any]:
        return {it.value["name"]: it.value["value"] for it in keyed.every("state")}

    def _shared_state(self, app_name: str, user_id: str) -> dict[str, Any]:
        app = self._state(self._shared(app_name, None))
        user = self._state(self._shared(app_name, user_id))
        return {State.APP_PREFIX + name: value for name, value in app.items()} | {
            State.USER_PREFIX + name: value for name, value in user.items()
        }

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """What all sessions of a user share."""
        return await run(self._state, self._shared(app_name, user_id))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions of a user or of all, the oldest update first, without their events."""
        return ListSessionsResponse(sessions=await run(self._list, app_name, user_id))

    def _list(self, app_name: str, user_id: str | None) -> list[Session]:
        front = app_scope(app_name)
        query: JsonObject = {"source": SYSTEM, "scope_prefix": front}
        if user_id is not None:
            query = {"source": SYSTEM, "scope": front + quote(user_id, safe="")}
        # All of them in one call: to ask for each costs more than to read it.
        first, end = f"{SYSTEM}/session/", f"{SYSTEM}/state0"
        found: list[Session] = []
        shared: dict[str, dict[str, Any]] = {}
        for listed in json.loads(self.well.core.listed(dumps(query), first, end, "foreign")):
            # Of records with one key the last one counts; an erased one says nothing.
            kept = {key: json.loads(data) for key, data in listed["records"] if data}
            begun = kept.pop(f"{SYSTEM}/session/now", None)
            if begun is None:
                continue
            user = begun["user"]
            if user not in shared:
                shared[user] = self._shared_state(app_name, user)
            state = {it["name"]: it["value"] for it in kept.values()}
            session = Session(
                id=begun["id"],
                app_name=app_name,
                user_id=user,
                state=state | copy.deepcopy(shared[user]),
                last_update_time=last_update(begun, listed["last"]),
            )
            session._storage_update_marker = str(listed["seq"])
            found.append(session)
        return sorted(found, key=lambda it: (it.last_update_time, it.user_id, it.id))

    # Writing.

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Makes a session that is not there yet."""
        id = (session_id or "").strip() or str(uuid.uuid4())
        await run(self._create, app_name, user_id, id, state or {})
        made = await self.get_session(app_name=app_name, user_id=user_id, session_id=id)
        if made is None:
            raise SessionNotFoundError(f"Session {id} was deleted while it was made.")
        return made

    def _create(self, app_name: str, user_id: str, id: str, state: dict[str, Any]) -> None:
        keyed = self._keyed(app_name, user_id, id)
        begun = {"id": id, "user": user_id, "app": app_name, "time": time.time()}
        created = {
            "id": keyed.session,
            "task": "",
            "driver": "external",
            "source": {"system": SYSTEM, "id": id},
            **keyed.fields,
        }
        deltas = _session_util.extract_state_delta(_session_util.make_json_safe_state(state))
        events = [keyed.record("session", "now", begun), *states(keyed, deltas["session"])[0]]
        writes: list[JsonObject] = [
            {"create": {"created": created}},
            {"append": {"session": keyed.session, "events": events}},
            *self._shared_writes(app_name, user_id, deltas),
        ]
        try:
            self.well.core.batch(dumps(writes))
        except ConflictError as error:
            raise AlreadyExistsError(f"Session with id {id} already exists.") from error

    def _shared_writes(self, app_name: str, user_id: str, deltas: JsonObject) -> list[JsonObject]:
        writes: list[JsonObject] = []
        for scope, user in (("app", None), ("user", user_id)):
            if deltas[scope]:
                keyed = self._shared(app_name, user)
                keyed.make()
                writes += state_writes(keyed, deltas[scope])
        return writes

    async def append_event(self, session: Session, event: Event) -> Event:
        """Keeps an event with all that it changes, or raises and changes nothing."""
        if event.partial:
            return event
        # What is temporary holds in this session object alone.
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        if await run(self._append, session, event):
            self._commit_event_to_session(session, event)
            session.last_update_time = event.timestamp
        return event

    def _append(self, session: Session, event: Event) -> bool:
        keyed = self._keyed(session.app_name, session.user_id, session.id.strip())
        log = self._log(keyed)
        item = json.loads(event.model_dump_json(exclude_none=True))
        id = event_id(event, item)
        try:
            if self.well.core.event(keyed.session, id) is not None:
                return False
        except AbsentError as error:
            raise SessionNotFoundError(f"Session {session.id} not found.") from error
        delta = event.actions.state_delta if event.actions else {}
        deltas = _session_util.extract_state_delta(
            _session_util.make_json_safe_state(dict(delta or {}))
        )
        records, replaced = states(keyed, deltas["session"])
        events = [*records, *log.events_of(item, id=id)]
        shared = self._shared_writes(session.app_name, session.user_id, deltas)
        expected = self._expected(session, log)
        while True:
            append = {"session": keyed.session, "events": events, "expected": expected}
            writes: list[JsonObject] = [{"append": append}, *shared]
            if replaced:
                prune = {"session": keyed.session, "seqs": replaced, "rule": "adk state"}
                writes.append({"prune": prune})
            try:
                self.well.core.batch(dumps(writes))
            except ConflictError as error:
                expected = self._passed_over(session, log, expected, error)
                continue
            # A prune is recorded, too.
            session._storage_update_marker = str(keyed.last_seq())
            return True

    def _expected(self, session: Session, log: ItemLog) -> int:
        """The revision that a session object was read at."""
        if session._storage_update_marker is not None:
            return int(session._storage_update_marker)
        last = log.last_seq()
        newest = log.newest(1)
        # Times are compared with some room: they were floats on the way.
        if newest and newest[0].item["timestamp"] > session.last_update_time + 1e-3:
            raise stale(session)
        return last

    def _passed_over(
        self, session: Session, log: ItemLog, expected: int, error: ConflictError
    ) -> int:
        """Where to try again, if all that came between is none of ADK's: a label, perhaps."""
        try:
            later = self.well.read_events(log.session, after=expected)
        except AbsentError as absent:
            raise SessionNotFoundError(f"Session {session.id} not found.") from absent
        ours = ("foreign", "record", "message", "rewound", "undone")
        if not later or any(it.kind in ours for it in later):
            raise stale(session) from error
        return later[-1].seq

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erases a session."""
        keyed = self._keyed(app_name, user_id, session_id.strip())
        await run(self.well.core.purge, [keyed.session])

    async def continuing(
        self,
        session: StoredSession,
        *,
        app_name: str,
        user_id: str,
        session_id: str | None = None,
        author: str = "agent",
    ) -> Session:
        """A session that goes on with a conversation that any framework began. Called again, it
        takes over what came since.

        A `ConflictError`, if it has messages of its own that did not come from there.
        """
        who: Any = {"app_name": app_name, "user_id": user_id}
        id = (session_id or "").strip() or str(uuid.uuid4())
        if await self.get_session(**who, session_id=id) is None:
            await self.create_session(**who, session_id=id)
        await run(self._take_over, session, self._keyed(app_name, user_id, id), author)
        made = await self.get_session(**who, session_id=id)
        if made is None:
            raise SessionNotFoundError(f"Session {id} was deleted while it was made.")
        return made

    def _take_over(self, source: StoredSession, keyed: Keyed, author: str) -> None:
        log = self._log(keyed)
        last = log.last_seq()
        target = StoredSession(self.well, keyed.session)
        taken = hand_over(source, target, log.last_item())
        events: list[JsonObject] = []
        for made in from_messages(taken.messages, author):
            item = json.loads(made.model_dump_json(exclude_none=True))
            events += log.events_of(item, id=event_id(made, item))
        if events:
            log.append([*events, *taken.lineage], expected=last)


def event_id(event: Event, item: JsonObject) -> str:
    """The name under which an event is kept, so that it is kept once."""
    return _core.derived_id(f"{event.id}\0{dumps(item)}".encode())


def last_update(begun: JsonObject, last: JsonObject | None) -> float:
    """When a session's last event was; before there is one, when it began."""
    time: float = begun["time"]
    if last is not None and last["body"].get("about") != "session":
        time = json.loads(last["body"]["data"]).get("timestamp", time)
    return time


def app_scope(app_name: str) -> str:
    """What the sessions of an app are listed by."""
    return f"adk/{quote(app_name, safe='')}/"


def stale(session: Session) -> StaleSessionError:
    """What the slower of two writers is told."""
    return StaleSessionError(
        f"The session {session.id} was changed since it was read. Get it again and retry."
    )


def state_key(name: str) -> str:
    """What a value of the state is found by."""
    if len(name.encode()) <= _LONGEST_KEY:
        return name
    return name[:60] + hashlib.sha256(name.encode()).hexdigest()


def states(keyed: Keyed, delta: dict[str, Any]) -> tuple[list[JsonObject], list[int]]:
    """The records of a change of state, and those that they replace."""
    records = [
        keyed.record("state", state_key(name), {"name": name, "value": value})
        for name, value in delta.items()
    ]
    replaced = [seq for name in delta for seq in keyed.seqs("state", state_key(name))]
    return records, replaced


def state_writes(keyed: Keyed, delta: dict[str, Any]) -> list[JsonObject]:
    """The writes that change shared state."""
    records, replaced = states(keyed, delta)
    writes: list[JsonObject] = [{"append": {"session": keyed.session, "events": records}}]
    if replaced:
        prune = {"session": keyed.session, "seqs": replaced, "rule": "adk state"}
        writes.append({"prune": prune})
    return writes
