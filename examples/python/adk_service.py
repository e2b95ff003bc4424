"""ADK's services on one store: a session, an artifact, and memory that needs no ingestion."""

import asyncio
import sys

from google.adk.events.event import Event
from google.genai import types

import stepwell
from stepwell.adk import StepwellArtifactService, StepwellMemoryService, StepwellSessionService


async def main() -> None:
    well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    who = {"app_name": "demo", "user_id": "ann"}
    service = StepwellSessionService(well)
    session = await service.create_session(**who, state={"user:lang": "en"})
    content = types.Content(role="user", parts=[types.Part(text="my dog is called Rex")])
    await service.append_event(session, Event(author="user", content=content))
    artifacts = StepwellArtifactService(well)
    note = types.Part(text="a note")
    print(await artifacts.save_artifact(**who, filename="user:n.txt", artifact=note))
    found = await StepwellMemoryService(well).search_memory(**who, query="dog")
    print(found.memories[0].content.parts[0].text)
    print(await service.get_user_state(**who))


asyncio.run(main())
