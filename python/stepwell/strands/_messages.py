"""Strands' messages as Stepwell's, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from stepwell.types import JsonObject, Message


def to_message(message: Any, lane: str = "main") -> Message | None:
    """What a message says; None, if it says nothing."""
    parts = [part for block in message.get("content", ()) if (part := _part(block)) is not None]
    if not parts:
        return None
    role = message.get("role", "user")
    if role == "user" and any("tool_result" in part for part in parts):
        role = "tool"
    return Message(role, parts, lane=lane)


def _part(block: Any) -> JsonObject | None:
    if block.get("text"):
        return {"text": {"text": block["text"]}}
    if "toolUse" in block:
        use = block["toolUse"]
        arguments = json.dumps(use.get("input", {}), ensure_ascii=False, default=str)
        return {"tool_call": {"id": use["toolUseId"], "name": use["name"], "arguments": arguments}}
    if "toolResult" in block:
        told = block["toolResult"]
        said = [
            it["text"] if "text" in it else json.dumps(it["json"], ensure_ascii=False, default=str)
            for it in told.get("content", ())
            if "text" in it or "json" in it
        ]
        result: JsonObject = {"call_id": told["toolUseId"], "text": "\n".join(said)}
        if told.get("status") == "error":
            result["is_error"] = True
        return {"tool_result": result}
    if "reasoningContent" in block:
        text = (block["reasoningContent"].get("reasoningText") or {}).get("text")
        return {"thinking": {"text": text}} if text else None
    if "image" in block:
        data = (block["image"].get("source") or {}).get("bytes")
        if isinstance(data, bytes):
            kind = f"image/{block['image'].get('format', 'png')}"
            return {"image": {"media_type": kind, "data": base64.b64encode(data).decode()}}
    return None


def from_messages(messages: Iterable[Message]) -> list[Any]:
    """A conversation for an agent, out of one that any framework kept."""
    made: list[Any] = []
    for message in messages:
        content = [block for part in message.parts if (block := _block(part)) is not None]
        if not content or message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        made.append({"role": role, "content": content})
    return made


def _block(part: JsonObject) -> JsonObject | None:
    if "text" in part:
        return {"text": part["text"]["text"]}
    if "tool_call" in part:
        call = part["tool_call"]
        try:
            arguments = json.loads(call["arguments"] or "{}")
        except ValueError:
            arguments = {"input": call["arguments"]}
        return {"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": arguments}}
    if "tool_result" in part:
        result = part["tool_result"]
        status = "error" if result.get("is_error") else "success"
        content = [{"text": result["text"]}]
        return {
            "toolResult": {"toolUseId": result["call_id"], "status": status, "content": content}
        }
    return None
