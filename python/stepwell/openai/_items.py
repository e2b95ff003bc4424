"""Items of the Responses API as Stepwell's messages, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from stepwell.types import JsonObject, Message

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def to_message(item: Any) -> Message | None:
    """What an item says; None, if it says nothing that others understand."""
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if kind == "function_call":
        call = {
            "id": str(item.get("call_id", "")),
            "name": str(item.get("name", "")),
            "arguments": _text(item.get("arguments")),
        }
        return Message("assistant", [{"tool_call": call}])
    if kind == "function_call_output":
        output = _text(item.get("output"))
        result = {"call_id": str(item.get("call_id", "")), "text": output}
        return Message("tool", [{"tool_result": result}])
    if kind == "reasoning":
        summary = [it for it in item.get("summary") or () if isinstance(it, dict)]
        thoughts: list[JsonObject] = [
            {"thinking": {"text": it["text"]}} for it in summary if it.get("text")
        ]
        return Message("assistant", thoughts) if thoughts else None
    role = _ROLES.get(str(item.get("role")))
    if role is None or kind not in (None, "message"):
        return None
    parts = _content(item.get("content"))
    return Message(role, parts) if parts else None


def _content(content: Any) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"text": {"text": content}}] if content else []
    parts: list[JsonObject] = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        text = block.get("text") or block.get("refusal")
        if isinstance(text, str) and text:
            parts.append({"text": {"text": text}})
        elif block.get("type") == "input_image" and block.get("image_url"):
            image = {"media_type": "image/*", "data": str(block["image_url"])}
            parts.append({"image": image})
    return parts


def _text(value: Any) -> str:
    if isinstance(value, list):
        said = [
            it["text"] for it in value if isinstance(it, dict) and isinstance(it.get("text"), str)
        ]
        if said:
            return "\n".join(said)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def from_messages(messages: Iterable[Message]) -> list[Any]:
    """A conversation for an agent, out of one that any framework kept."""
    items: list[Any] = []
    for message in messages:
        text = "\n".join(part["text"]["text"] for part in message.parts if "text" in part)
        if message.role == "assistant":
            if text:
                items.append({"role": "assistant", "content": text})
            items += [
                {
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": call["name"],
                    "arguments": call["arguments"],
                }
                for call in message.calls
            ]
        elif message.role == "tool":
            items += [
                {
                    "type": "function_call_output",
                    "call_id": part["tool_result"]["call_id"],
                    "output": part["tool_result"]["text"],
                }
                for part in message.parts
                if "tool_result" in part
            ]
        elif text:
            items.append({"role": message.role, "content": text})
    return items
