"""LangChain's messages as Stepwell's, and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from stepwell.types import JsonObject, Message

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def to_message(message: BaseMessage, lane: str = "main") -> Message | None:
    """What a message says, in Stepwell's words; None, if it says nothing."""
    if isinstance(message, RemoveMessage):
        return None
    kind = message.type.removesuffix("MessageChunk").lower()
    role = _ROLES.get(kind, "user")
    if isinstance(message, ChatMessage):
        role = message.role if message.role in ("user", "assistant", "system") else "user"
    parts = _content(message.content)
    if isinstance(message, ToolMessage):
        text = "\n".join(part["text"]["text"] for part in parts if "text" in part)
        result: JsonObject = {"call_id": message.tool_call_id, "text": text}
        if message.status == "error":
            result["is_error"] = True
        parts = [{"tool_result": result}]
    usage = model = None
    if isinstance(message, AIMessage):
        parts += [_call(call) for call in message.tool_calls]
        parts += [_call(call) for call in message.invalid_tool_calls]
        usage = _usage(message)
        model = message.response_metadata.get("model_name")
    if not parts:
        return None
    return Message(role, parts, lane=lane, model=model, usage=usage)


def _content(content: str | Sequence[str | dict[str, Any]]) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"text": {"text": content}}] if content else []
    parts: list[JsonObject] = []
    for block in content:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        kind = block.get("type")
        if kind in ("text", "output_text", "input_text") and block.get("text"):
            parts.append({"text": {"text": str(block["text"])}})
        elif kind in ("thinking", "reasoning"):
            said = block.get("thinking") or block.get("reasoning") or block.get("text")
            if isinstance(said, str) and said:
                parts.append({"thinking": {"text": said}})
        elif kind == "image_url":
            url = block.get("image_url")
            url = url.get("url", "") if isinstance(url, dict) else url
            parts.append({"image": {"media_type": "image/*", "data": str(url)}})
        elif kind == "image":
            data = block.get("base64") or block.get("data") or block.get("url") or ""
            media = str(block.get("mime_type") or "image/*")
            parts.append({"image": {"media_type": media, "data": str(data)}})
    return parts


def _call(call: Any) -> JsonObject:
    arguments = call["args"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return {"tool_call": {"id": call["id"] or "", "name": call["name"] or "", "arguments": text}}


def _usage(message: AIMessage) -> JsonObject | None:
    used = message.usage_metadata
    if not used:
        return None
    details = used.get("input_token_details") or {}
    cached = details.get("cache_read") or 0
    usage: JsonObject = {"input": used["input_tokens"], "output": used["output_tokens"]}
    if cached:
        usage["cached"] = cached
    return usage


def from_messages(messages: Iterable[Message], source: str) -> list[BaseMessage]:
    """A conversation for a graph, out of one that any framework kept. Each message is named by its
    place in `source`: a graph that is given it twice has it once."""
    made: list[BaseMessage] = []
    places: Counter[int] = Counter()
    for message in messages:
        for it in _from_message(message):
            # Results of several calls are one message here, and some stand for what is missing.
            number = places[message.seq]
            it.id = f"{source}@{message.seq}" + (f".{number}" if number else "")
            places[message.seq] += 1
            made.append(it)
    return made


def _from_message(message: Message) -> Iterator[BaseMessage]:
    text = "\n".join(part["text"]["text"] for part in message.parts if "text" in part)
    if message.role == "assistant":
        calls: list[Any] = []
        for call in message.calls:
            try:
                arguments = json.loads(call["arguments"] or "{}")
            except ValueError:
                arguments = {"input": call["arguments"]}
            if not isinstance(arguments, dict):
                arguments = {"input": arguments}
            calls.append({"id": call["id"], "name": call["name"], "args": arguments})
        yield AIMessage(content=text, tool_calls=calls)
    elif message.role == "tool":
        for part in message.parts:
            if "tool_result" in part:
                result = part["tool_result"]
                status = "error" if result.get("is_error") else "success"
                yield ToolMessage(
                    content=result["text"], tool_call_id=result["call_id"], status=status
                )
    elif message.role == "system":
        yield SystemMessage(content=text)
    else:
        yield HumanMessage(content=text)
