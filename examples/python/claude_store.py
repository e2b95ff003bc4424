"""Transcripts of the Claude Agent SDK in a store that lasts."""

import asyncio
import sys
import uuid

from stepwell.claude import StepwellSessionStore


async def main() -> None:
    store = StepwellSessionStore(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    # ClaudeAgentOptions(session_store=store) makes the SDK call it by itself.
    key = {"project_key": "demo", "session_id": str(uuid.uuid4())}
    message = {"role": "user", "content": "hello"}
    await store.append(key, [{"type": "user", "uuid": "u1", "message": message}])
    await store.append(key, [{"type": "user", "uuid": "u1", "message": message}])
    print(len(await store.load(key) or ()), "line")
    print([it.text for it in store.session(key).messages()])


asyncio.run(main())
