"""ADK's events as Stepwell's messages, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from google.adk.events.event import Event
from google.genai import types

from stepwell.types import JsonObject, Message


def to_message(item: Any) -> Message | None:
    """What an event, as JSON, says; None, if it says nothing."""
    content = item.get("content") or {}
    parts = [part for block in content.get("parts") or () if (part := _part(block)) is not None]
    if not parts:
        return None
    role = "user" if item.get("author") == "user" else "assistant"
    if any("tool_result" in part for part in parts):
        role = "tool"
    return Message(role, parts, usage=_usage(item.get("usage_metadata")))


def _part(block: Any) -> JsonObject | None:
    if block.get("text"):
        kind = "thinking" if block.get("thought") else "text"
        return {kind: {"text": block["text"]}}
    if block.get("function_call"):
        call = block["function_call"]
        arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
        id = call.get("id") or call.get("name") or ""
        return {"tool_call": {"id": id, "name": call.get("name") or "", "arguments": arguments}}
    if block.get("function_response"):
        told = block["function_response"]
        text = json.dumps(told.get("response"), ensure_ascii=False)
        return {"tool_result": {"call_id": told.get("id") or told.get("name") or "", "text": text}}
    if block.get("inline_data"):
        data = block["inline_data"]
        if str(data.get("mime_type", "")).startswith("image/"):
            return {"image": {"media_type": data["mime_type"], "data": data.get("data") or ""}}
    return None


def _usage(usage: Any) -> JsonObject | None:
    if not usage:
        return None
    return {
        "input": usage.get("prompt_token_count") or 0,
        "output": usage.get("candidates_token_count") or 0,
        "cached": usage.get("cached_content_token_count") or 0,
    }


def from_messages(messages: Iterable[Message], author: str) -> list[Event]:
    """Events of a session, out of a conversation that any framework kept."""
    events: list[Event] = []
    names: dict[str, str] = {}
    for message in messages:
        parts: list[types.Part] = []
        for part in message.parts:
            if "text" in part:
                parts.append(types.Part(text=part["text"]["text"]))
            elif "tool_call" in part:
                call = part["tool_call"]
                names[call["id"]] = call["name"]
                parts.append(_called(call))
            elif "tool_result" in part:
                parts.append(_answered(part["tool_result"], names))
        if parts and message.role != "system":
            is_model = message.role == "assistant"
            content = types.Content(role="model" if is_model else "user", parts=parts)
            speaker = author if message.role != "user" else "user"
            events.append(Event(author=speaker, content=content))
    return events


def _called(call: JsonObject) -> types.Part:
    try:
        arguments = json.loads(call["arguments"] or "{}")
    except ValueError:
        arguments = {"input": call["arguments"]}
    if not isinstance(arguments, dict):
        arguments = {"input": arguments}
    made = types.FunctionCall(id=call["id"], name=call["name"], args=arguments)
    return types.Part(function_call=made)


def _answered(result: JsonObject, names: dict[str, str]) -> types.Part:
    name = names.get(result["call_id"], "tool")
    response = {"error" if result.get("is_error") else "result": result["text"]}
    made = types.FunctionResponse(id=result["call_id"], name=name, response=response)
    return types.Part(function_response=made)
