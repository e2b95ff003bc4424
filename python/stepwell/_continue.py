"""Going on elsewhere with a conversation that another framework began."""

from __future__ import annotations

from stepwell._types import Message
from stepwell._well import Session


def continuation(session: Session, lane: str = "main") -> list[Message]:
    """The conversation, without what only the framework that began it told its model."""
    return [message for message in session.messages(lane) if message.role != "system"]
