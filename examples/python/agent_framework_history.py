"""A history and a workflow's checkpoint of Microsoft Agent Framework."""

import asyncio
import sys

from agent_framework import Message, WorkflowCheckpoint

import stepwell
from stepwell.agent_framework import StepwellCheckpointStorage, StepwellHistoryProvider


async def main() -> None:
    well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    history = StepwellHistoryProvider(well)
    await history.save_messages("demo", [Message("user", ["hi"]), Message("assistant", ["hello"])])
    print([message.text for message in await history.get_messages("demo")])
    storage = StepwellCheckpointStorage(well)
    await storage.save(WorkflowCheckpoint(workflow_name="flow", graph_signature_hash="h"))
    print(len(await storage.list_checkpoint_ids(workflow_name="flow")), "checkpoint")


asyncio.run(main())
