"""Pydantic AI's messages as Stepwell's, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from stepwell.types import JsonObject, Message


def to_messages(message: ModelMessage) -> list[Message]:
    """What a message says: a request may hold a system's, tools' and a user's words."""
    if isinstance(message, ModelResponse):
        parts = [part for it in message.parts if (part := _response(it)) is not None]
        usage = {"input": message.usage.input_tokens, "output": message.usage.output_tokens}
        if not any(usage.values()):
            usage = {}
        said = Message("assistant", parts, model=message.model_name, usage=usage or None)
        return [said] if parts else []
    by_role: dict[str, list[JsonObject]] = {"system": [], "tool": [], "user": []}
    for it in message.parts:
        role, found = _request(it)
        by_role[role] += found
    return [Message(role, parts) for role, parts in by_role.items() if parts]


def _response(part: ModelResponsePart) -> JsonObject | None:
    if isinstance(part, TextPart) and part.content:
        return {"text": {"text": part.content}}
    if isinstance(part, ThinkingPart) and part.content:
        return {"thinking": {"text": part.content}}
    if isinstance(part, ToolCallPart):
        call = {
            "id": part.tool_call_id,
            "name": part.tool_name,
            "arguments": part.args_as_json_str(),
        }
        return {"tool_call": call}
    return None


def _request(part: ModelRequestPart) -> tuple[str, list[JsonObject]]:
    if isinstance(part, SystemPromptPart):
        return "system", _texts(part.content)
    if isinstance(part, UserPromptPart):
        return "user", _texts(part.content)
    if isinstance(part, ToolReturnPart):
        text = part.model_response_str()
        return "tool", [{"tool_result": {"call_id": part.tool_call_id, "text": text}}]
    if isinstance(part, RetryPromptPart):
        text = part.model_response()
        if part.tool_name is None:
            return "user", _texts(text)
        result = {"call_id": part.tool_call_id, "text": text, "is_error": True}
        return "tool", [{"tool_result": result}]
    return "user", []


def _texts(content: Any) -> list[JsonObject]:
    items = [content] if isinstance(content, str) else content
    said = [it if isinstance(it, str) else getattr(it, "content", None) for it in items]
    return [{"text": {"text": it}} for it in said if isinstance(it, str) and it]


def from_messages(messages: Iterable[Message]) -> list[ModelMessage]:
    """A conversation for an agent, out of one that any framework kept."""
    made: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            answered: list[ModelResponsePart] = []
            for part in message.parts:
                if "text" in part:
                    answered.append(TextPart(part["text"]["text"]))
                elif "tool_call" in part:
                    call = part["tool_call"]
                    names[call["id"]] = call["name"]
                    arguments = call["arguments"] or "{}"
                    answered.append(ToolCallPart(call["name"], arguments, tool_call_id=call["id"]))
            if answered:
                made.append(ModelResponse(parts=answered, model_name=message.model))
            continue
        asked: list[ModelRequestPart] = []
        for part in message.parts:
            if "tool_result" in part:
                result = part["tool_result"]
                name = names.get(result["call_id"], "tool")
                asked.append(ToolReturnPart(name, result["text"], result["call_id"]))
            elif "text" in part:
                text = part["text"]["text"]
                is_system = message.role == "system"
                asked.append(SystemPromptPart(text) if is_system else UserPromptPart(text))
        if asked:
            made.append(ModelRequest(parts=asked))
    return made


def as_json(message: ModelMessage) -> Any:
    """A message as it is kept."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return json.loads(ModelMessagesTypeAdapter.dump_json([message]))[0]


def of_json(kept: Any) -> ModelMessage:
    """The message that was kept."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python([kept])[0]
