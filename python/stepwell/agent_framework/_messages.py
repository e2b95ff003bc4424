"""Agent Framework's messages as Stepwell's, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agent_framework import Content
from agent_framework import Message as ChatMessage

from stepwell.types import JsonObject, Message


def to_message(item: Any) -> Message | None:
    """What a message, as JSON, says; None, if it says nothing."""
    parts = [part for it in item.get("contents") or () if (part := _part(it)) is not None]
    role = str(item.get("role", "user"))
    if role not in ("system", "user", "assistant", "tool"):
        role = "user"
    return Message(role, parts) if parts else None


def _part(content: Any) -> JsonObject | None:
    kind = content.get("type")
    if kind == "text" and content.get("text"):
        return {"text": {"text": content["text"]}}
    if kind == "text_reasoning" and content.get("text"):
        return {"thinking": {"text": content["text"]}}
    if kind == "function_call":
        arguments = content.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, default=str)
        call = {"id": content["call_id"], "name": content.get("name") or "", "arguments": text}
        return {"tool_call": call}
    if kind == "function_result":
        told = content.get("result")
        text = told if isinstance(told, str) else json.dumps(told, default=str)
        result: JsonObject = {"call_id": content["call_id"], "text": text}
        if content.get("exception"):
            result |= {"is_error": True, "text": text if told else str(content["exception"])}
        return {"tool_result": result}
    return None


def from_messages(messages: Iterable[Message]) -> list[ChatMessage]:
    """A conversation for an agent, out of one that any framework kept."""
    made: list[ChatMessage] = []
    for message in messages:
        contents = [it for part in message.parts if (it := _content(part)) is not None]
        if contents:
            made.append(ChatMessage(message.role, contents))
    return made


def _content(part: JsonObject) -> Content | None:
    if "text" in part:
        return Content.from_text(part["text"]["text"])
    if "tool_call" in part:
        call = part["tool_call"]
        return Content.from_function_call(call["id"], call["name"], arguments=call["arguments"])
    if "tool_result" in part:
        result = part["tool_result"]
        return Content.from_function_result(result["call_id"], result=result["text"])
    return None
