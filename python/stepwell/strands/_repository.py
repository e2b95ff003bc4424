"""Sessions, agents and messages of Strands in Stepwell."""

from __future__ import annotations

import os
from typing import Any

from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from stepwell._continue import alternating, hand_over
from stepwell._items import filled, hollow, texts_of
from stepwell._keyed import Entry, Keyed
from stepwell._names import escaped
from stepwell._names import session_id as name_of
from stepwell._well import Session as StoredSession
from stepwell._well import Well, well_of
from stepwell.strands._messages import from_messages, to_message
from stepwell.types import JsonObject, Message

SYSTEM = "strands"
_SEP = "\x1f"


class StepwellRepository(SessionRepository):
    """Keeps what Strands' session managers read and write: one session for each of theirs, in
    which each agent has its own conversation."""

    def __init__(
        self, store: Well | str | os.PathLike[str] = ".stepwell", *, transcript: bool = True
    ) -> None:
        self.well = well_of(store)
        self.transcript = transcript

    def _keyed(self, session_id: str) -> Keyed:
        return Keyed(self.well, name_of(SYSTEM, session_id), SYSTEM, session_id)

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Makes a session that is not there yet."""
        keyed = self._keyed(session.session_id)
        if keyed.get("session", "now") is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        keyed.write([keyed.record("session", "now", session.to_dict())])
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session."""
        found = self._keyed(session_id).get("session", "now")
        return None if found is None else Session.from_dict(found.value)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Erases a session."""
        if self.read_session(session_id) is None:
            raise SessionException(f"Session {session_id} does not exist")
        self.well.core.purge([name_of(SYSTEM, session_id)])

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Keeps an agent's state."""
        keyed = self._keyed(session_id)
        keyed.write([keyed.record("agent", session_agent.agent_id, session_agent.to_dict())])

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """An agent's state."""
        found = self._keyed(session_id).get("agent", agent_id)
        return None if found is None else SessionAgent.from_dict(found.value)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Keeps an agent's new state in place of the one before."""
        keyed = self._keyed(session_id)
        before = keyed.get("agent", session_agent.agent_id)
        if before is None:
            raise SessionException(
                f"Agent {session_agent.agent_id} in session {session_id} does not exist"
            )
        session_agent.created_at = before.value["created_at"]
        state = keyed.record("agent", session_agent.agent_id, session_agent.to_dict())
        keyed.write([state], erase=[before.seq], rule="strands agent state")

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Keeps a message."""
        keyed = self._keyed(session_id)
        keyed.write(self._events(keyed, agent_id, session_message))

    def _events(
        self, keyed: Keyed, agent_id: str, session_message: SessionMessage
    ) -> list[JsonObject]:
        """What the message says, and behind it the rest of it."""
        key = f"{escaped(agent_id)}{_SEP}{session_message.message_id:012}"
        item = session_message.to_dict()
        said = self._said(agent_id, session_message)
        if said is None:
            return [keyed.record("message", key, {"item": item})]
        item = hollow(item, texts_of(said.body()))
        return [said.event(), keyed.record("message", key, {"item": item, "said": True})]

    def _said(self, agent_id: str, session_message: SessionMessage) -> Message | None:
        lane = "main" if agent_id == "default" else agent_id
        return to_message(session_message.to_message(), lane) if self.transcript else None

    def _messages(self, keyed: Keyed, entries: list[Entry]) -> list[SessionMessage]:
        """Messages, with the texts that are only named in them."""
        texts: dict[int, list[str]] = {}
        named = [entry.seq - 1 for entry in entries if entry.value.get("said")]
        if named:
            # Each message stands just before its record, and most stand side by side.
            wanted = set(named)
            events = self.well.read_events(keyed.session, after=min(named) - 1, to=max(named))
            texts = {it.seq: texts_of(it.body) for it in events if it.seq in wanted}
        return [
            SessionMessage.from_dict(filled(it.value["item"], texts.get(it.seq - 1, [])))
            for it in entries
        ]

    def take_over(self, source: StoredSession, session_id: str, agent_id: str) -> None:
        """Gives an agent what it lacks of a conversation that any framework began."""
        keyed = self._keyed(session_id)
        before = keyed.every("message", f"{escaped(agent_id)}{_SEP}")
        target = StoredSession(self.well, keyed.session)
        taken = hand_over(source, target, before[-1].seq if before else 0)
        events: list[JsonObject] = []
        if keyed.get("agent", agent_id) is None:
            manager = {"__name__": "SlidingWindowConversationManager", "removed_message_count": 0}
            agent = SessionAgent(agent_id, {}, manager)
            events.append(keyed.record("agent", agent_id, agent.to_dict()))
        first = int(before[-1].key.rsplit(_SEP, 1)[1]) + 1 if before else 0
        for index, message in enumerate(from_messages(alternating(taken.messages)), first):
            events += self._events(keyed, agent_id, SessionMessage.from_message(message, index))
        if events:
            keyed.write([*events, *taken.lineage])

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        """One message."""
        keyed = self._keyed(session_id)
        found = keyed.get("message", f"{escaped(agent_id)}{_SEP}{message_id:012}")
        return None if found is None else self._messages(keyed, [found])[0]

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Keeps a message in place of the one before, which is erased: it was redacted."""
        keyed = self._keyed(session_id)
        before = keyed.get("message", f"{escaped(agent_id)}{_SEP}{session_message.message_id:012}")
        if before is None:
            raise SessionException(f"Message {session_message.message_id} does not exist")
        session_message.created_at = self._messages(keyed, [before])[0].created_at
        erased = [before.seq - 1, before.seq] if before.value.get("said") else [before.seq]
        events = self._events(keyed, agent_id, session_message)
        keyed.write(events, erase=erased, rule="strands redaction")

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[SessionMessage]:
        """An agent's messages, in order."""
        keyed = self._keyed(session_id)
        if keyed.get("agent", agent_id) is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        found = keyed.every("message", f"{escaped(agent_id)}{_SEP}")
        end = None if limit is None else offset + limit
        return self._messages(keyed, found[offset:end])

    def create_multi_agent(self, session_id: str, multi_agent: Any, **kwargs: Any) -> None:
        """Keeps the state of several agents that work together."""
        keyed = self._keyed(session_id)
        keyed.write([keyed.record("multi_agent", multi_agent.id, multi_agent.serialize_state())])

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> dict[str, Any] | None:
        """That state."""
        found = self._keyed(session_id).get("multi_agent", multi_agent_id)
        return None if found is None else found.value

    def update_multi_agent(self, session_id: str, multi_agent: Any, **kwargs: Any) -> None:
        """Keeps that state in place of the one before."""
        keyed = self._keyed(session_id)
        before = keyed.get("multi_agent", multi_agent.id)
        if before is None:
            raise SessionException(
                f"MultiAgent state {multi_agent.id} in session {session_id} does not exist"
            )
        state = keyed.record("multi_agent", multi_agent.id, multi_agent.serialize_state())
        keyed.write([state], erase=[before.seq], rule="strands state")


class StepwellSessionManager(RepositorySessionManager):
    """A session manager for `Agent(session_manager=…)`."""

    def __init__(
        self,
        session_id: str,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        transcript: bool = True,
        **kwargs: Any,
    ) -> None:
        self.repository = StepwellRepository(store, transcript=transcript)
        super().__init__(session_id, session_repository=self.repository, **kwargs)

    @classmethod
    def continuing(
        cls,
        session: StoredSession,
        session_id: str | None = None,
        agent_id: str = "default",
        **options: Any,
    ) -> StepwellSessionManager:
        """A session manager that goes on with a conversation that any framework began. Called
        again, it takes over what came since.

        A `ConflictError`, if the agent has messages of its own that did not come from there.
        """
        name = session_id or session.id
        repository = StepwellRepository(session.well)
        if repository.read_session(name) is None:
            repository.create_session(Session(name, SessionType.AGENT))
        repository.take_over(session, name, agent_id)
        return cls(name, session.well, **options)
