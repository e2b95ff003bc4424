"""A record's data as text: JSON, compressed with words that most records share.

A thread has several records for each step, and one differs from the next in a few numbers. As JSON
within an event's JSON each of them would be longer than most messages. So a record's data is JSON
that is compressed by deflate with a preset dictionary, and written in base64 behind the number of
that dictionary. A blob that the record names is told by its place among them.

What begins with `{` is plain JSON, as it was written before, and is read as such.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence

from stepwell._well import dumps
from stepwell.types import JsonObject

_FIRST = (
    "\xbclangchain_core.messages.system\xadSystemMessage\xabChatMessage\xacAIMessageChunk"
    '"source":"update"fork{"t":"bytes","x":"{"t":"json","x":"\\u0001\\u0002\\u0003\\u0004'
    "__interrupt____resume____error____scheduled____pregel_tasks~__pregel_push, "
    "\xaalanggraph_step\xaelanggraph_node\xa6run_id\xa7user_id\xacassistant_id"
    "counters_since_delta_snapshot\xa6parents\x81\xa0\xaeusage_metadata\x83\xacinput_tokens"
    "\xadoutput_tokens\xactotal_tokens\xb3input_token_details\xb4output_token_details"
    "\xaacache_read\xa9reasoning\xaatool_calls\x91\x84\xa4name\xa4args\x81\xa2id\xa4type"
    '\xa9tool_call{"v":{"messages":[1,{"n":1,"s":[[1,"msgpack","x","\x81\xa8messages\x91\x92\xa4user'
    ',"pending_sends":[],"updated_channels":null},"m":{"t":"msgpack","x":"\x81\xa4step\xcd\\u0003'
    '{"t":"","p":"~__pregel_pull, tools","w":[[0,"messages",{"n":1,"s":[[1,"msgpack","x","\xc7\xac'
    "\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xda\\u0003"
    '","\x000\x00","\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xc0'
    "\xa2id\xd9$\xactool_call_id\xd9\\u001d\xa8artifact\xc0\xa6status\xa7success"
    '\xb3model_validate_json"]]]}]]}'
    '{"t":"","p":"~__pregel_pull, __start__","w":[[0,"messages",{"n":1,"s":[[1,"msgpack","c",['
    '"\x92\xa4user\xda\\u0003","\x000\x00",""]]]}],[1,"branch:to:agent",{"t":"null","x":""}]]}'
    '{"t":"","p":"~__pregel_pull, agent","w":[[0,"messages",{"n":1,"s":[[1,"msgpack","c",["'
    "\xc8\\u0004\\u0005\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xda\\u0003"
    '","\x000\x00","\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0'
    "\xa2id\xc0\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0"
    '\xb3model_validate_json"]]]}]]}'
    '{"v":{"__start__":[1,{"t":"msgpack","c":["\x81\xa8messages\x91\x92\xa4user\xda\\u0003","\x000\x00'
    '",""]}],"messages":[2,{"n":2,"b":"1f1","k":1,"a":[],"c":2}],"branch:to:agent":[2,null]},"r":{'
    '"v":4,"ts":"2027-01-01T00:00:00.000000+00:00","versions_seen":{"__input__":{},"__start__":{'
    '"__start__":1},"agent":{"branch:to:agent":2}},"updated_channels":["__start__"]},"m":{"t":'
    '"msgpack","x":"\x83\xa6source\xa5input\xa4step\xcd\\u0001\xa7parents\x80"},"p":"1f1"}'
    '{"v":{"__start__":[2,null],"messages":[3,{"n":2,"b":"1f1","k":1,"a":[[1,"msgpack","c",["\xc8\\u0004'
    "\\u0005\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xda\\u0003"
    '","\x000\x00","\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0'
    '\xa2id\xd9$\xb3model_validate_json"]]],"c":2}],"branch:to:agent":[3,{"t":"null","x":""}]},"r":'
    '{"v":4,"ts":"2026-12-01T10:00:00.000000+00:00","versions_seen":{"__input__":{},"__start__":{'
    '"__start__":1},"agent":{"branch:to:agent":2}},"updated_channels":["branch:to:agent",'
    '"messages"]},"m":{"t":"msgpack","x":"\x83\xa6source\xa4loop\xa4step\xcd\\u0001\xa7parents\x80"},'
    '"p":"1f1"}{"v":{"__start__":[2,null],"messages":[3,{"n":3,"b":"1f2","k":2,"a":[[1,"msgpack",'
    '"c",["\xc8\\u0004'
    "\\u0005\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xda\\u0003"
    '","\x000\x00","\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0'
    "\xa2id\xd9$\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0"
    '\xb3model_validate_json"]]],"c":3}],"branch:to:agent":[3,null]},"r":{"v":4,"ts":'
    '"2026-11-16T19:00:00.000000+00:00","versions_seen":{"__input__":{},"__start__":{"__start__":2},'
    '"agent":{"branch:to:agent":3}},"updated_channels":["messages"]},"m":{"t":"msgpack","x":'
    '"\x83\xa6source\xa4loop\xa4step\xcd\\u0001\xa7parents\x80"},"p":"1f1e1f3'
)

DICTIONARIES = (_FIRST.encode(),)
"""Records that were written with one are read with it for ever. Another one goes behind it."""

_PLACE = re.compile("\x00([0-9]+)\x00")


def packed(data: JsonObject, blobs: Sequence[str]) -> str:
    """A record's data as text; `blobs` are the names of those that the record names, in order."""
    text = dumps(data)
    # JSON escapes what is below a space, so that nothing else in it looks like such a place.
    for place, name in enumerate(blobs):
        text = text.replace(name, f"\x00{place}\x00")
    newest = len(DICTIONARIES)
    by = zlib.compressobj(9, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, DICTIONARIES[-1])
    short = by.compress(text.encode()) + by.flush()
    return f"{newest}{base64.b64encode(short).decode().rstrip('=')}"


def unpacked(text: str, blobs: Sequence[bytes]) -> JsonObject:
    """The data of a record that names these blobs."""
    if text.startswith("{"):
        plain: JsonObject = json.loads(text)
        return plain
    short = base64.b64decode(text[1:] + "=" * (-(len(text) - 1) % 4))
    by = zlib.decompressobj(-15, DICTIONARIES[int(text[0]) - 1])
    told = (by.decompress(short) + by.flush()).decode()
    if "\x00" in told:
        told = _PLACE.sub(lambda found: name_of(blobs[int(found[1])]), told)
    data: JsonObject = json.loads(told)
    return data


def name_of(digest: bytes) -> str:
    """A blob's name within a record."""
    return base64.b64encode(digest).decode()


def as_text(data: bytes) -> str:
    """Bytes as text that compresses as they do."""
    return data.decode("latin-1")


def as_bytes(text: str) -> bytes:
    """The bytes of such a text."""
    return text.encode("latin-1")
