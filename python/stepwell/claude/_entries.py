"""Lines of a transcript as Stepwell's messages, and back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from stepwell.types import JsonObject, Message, now


def to_message(entry: Any) -> Message | None:
    """What a line of a transcript says; None, if it is no part of the conversation."""
    if not isinstance(entry, dict) or entry.get("type") not in ("user", "assistant"):
        return None
    said = entry.get("message")
    if not isinstance(said, dict) or entry.get("isMeta"):
        return None
    content = said.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = [part for block in blocks or () if (part := _part(block)) is not None]
    if not parts:
        return None
    role = "assistant" if entry["type"] == "assistant" else "user"
    if role == "user" and any("tool_result" in part for part in parts):
        role = "tool"
    return Message(role, parts, model=said.get("model"), usage=_usage(said.get("usage")))


def _part(block: Any) -> JsonObject | None:
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind == "text" and block.get("text"):
        return {"text": {"text": str(block["text"])}}
    if kind == "thinking" and block.get("thinking"):
        return {"thinking": {"text": str(block["thinking"])}}
    if kind == "tool_use":
        arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
        call = {"id": str(block.get("id")), "name": str(block.get("name")), "arguments": arguments}
        return {"tool_call": call}
    if kind == "tool_result":
        result: JsonObject = {"call_id": str(block.get("tool_use_id")), "text": _text(block)}
        if block.get("is_error"):
            result["is_error"] = True
        return {"tool_result": result}
    if kind == "image":
        source = block.get("source") or {}
        data = str(source.get("data") or source.get("url") or "")
        return {"image": {"media_type": str(source.get("media_type", "image/*")), "data": data}}
    return None


def _text(block: JsonObject) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    said = [it.get("text", "") for it in content or () if isinstance(it, dict)]
    return "\n".join(filter(None, said))


def _usage(usage: Any) -> JsonObject | None:
    if not isinstance(usage, dict):
        return None

    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    cached, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    return {
        "input": count("input_tokens") + cached + written,
        "output": count("output_tokens"),
        "cached": cached,
        "cache_written": written,
    }


def from_messages(
    messages: Iterable[Message], session_id: str, parent: str | None = None
) -> list[JsonObject]:
    """A transcript, out of a conversation that any framework kept; `parent` is the line before."""
    entries: list[JsonObject] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        content = [block for part in message.parts if (block := _block(part)) is not None]
        if not content:
            continue
        said: JsonObject = {"role": role, "content": content}
        if role == "assistant":
            said |= {
                "id": f"msg_{uuid.uuid4().hex}",
                "type": "message",
                "model": message.model or "",
            }
        entry: JsonObject = {
            "type": role,
            "uuid": str(uuid.uuid4()),
            "parentUuid": parent,
            "sessionId": session_id,
            "timestamp": now(),
            "isSidechain": False,
            "message": said,
        }
        parent = entry["uuid"]
        entries.append(entry)
    return entries


def _block(part: JsonObject) -> JsonObject | None:
    if "text" in part:
        return {"type": "text", "text": part["text"]["text"]}
    if "tool_call" in part:
        call = part["tool_call"]
        try:
            arguments = json.loads(call["arguments"] or "{}")
        except ValueError:
            arguments = {"input": call["arguments"]}
        return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments}
    if "tool_result" in part:
        result = part["tool_result"]
        block = {
            "type": "tool_result",
            "tool_use_id": result["call_id"],
            "content": result["text"],
        }
        return block | ({"is_error": True} if result.get("is_error") else {})
    return None
