"""Agent Framework's workflow checkpoints in Stepwell."""

from __future__ import annotations

import json
import os
from datetime import datetime

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException
from agent_framework._workflows._checkpoint_encoding import (
    decode_checkpoint_value,
    encode_checkpoint_value,
)

from stepwell._async import run
from stepwell._keyed import Entry, Keyed, pieces
from stepwell._names import session_id as name_of
from stepwell._well import Well, well_of

SYSTEM = "agent-framework-workflows"


class StepwellCheckpointStorage:
    """Keeps the checkpoints of workflows. What a checkpoint shares with others is stored once.

    Values that are no JSON are pickled, as Agent Framework's own storages do; only the types
    that it trusts, and those of `allowed_checkpoint_types`, are read back.
    """

    def __init__(
        self,
        store: Well | str | os.PathLike[str] = ".stepwell",
        *,
        name: str = "default",
        allowed_checkpoint_types: list[str] | None = None,
    ) -> None:
        self.well = well_of(store)
        self._allowed = frozenset(allowed_checkpoint_types or ())
        self._keyed = Keyed(self.well, name_of(SYSTEM, name), SYSTEM, name)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Keeps a checkpoint. It is durable when this returns."""
        encoded = encode_checkpoint_value(checkpoint.to_dict())
        # What could not be read back is refused now, not when it is needed.
        decode_checkpoint_value(encoded, allowed_types=self._allowed)
        await run(self._save, checkpoint, json.dumps(encoded).encode())
        return checkpoint.checkpoint_id

    def _save(self, checkpoint: WorkflowCheckpoint, data: bytes) -> None:
        parts = pieces(data)
        before = self._keyed.seqs("checkpoint", checkpoint.checkpoint_id)
        value = {"workflow": checkpoint.workflow_name, "time": checkpoint.timestamp}
        kept = self._keyed.record(
            "checkpoint", checkpoint.checkpoint_id, value, attach=range(len(parts))
        )
        self._keyed.write([kept], attachments=parts, erase=before, rule="replaced")

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """A checkpoint."""
        found = await run(self._keyed.get, "checkpoint", checkpoint_id)
        if found is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return await run(self._load, found)

    def _load(self, found: Entry) -> WorkflowCheckpoint:
        encoded = json.loads(b"".join(self.well.core.blobs(found.blobs)))
        decoded = decode_checkpoint_value(encoded, allowed_types=self._allowed)
        return WorkflowCheckpoint.from_dict(decoded)

    def _of(self, workflow_name: str) -> list[Entry]:
        found = self._keyed.every("checkpoint")
        kept = [it for it in found if it.value["workflow"] == workflow_name]
        return sorted(kept, key=lambda it: it.seq)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """The checkpoints of a workflow."""
        found = await run(self._of, workflow_name)
        return [await run(self._load, it) for it in found]

    async def delete(self, checkpoint_id: str) -> bool:
        """Erases a checkpoint."""
        seqs = await run(self._keyed.seqs, "checkpoint", checkpoint_id)
        if seqs:
            await run(self._keyed.write, [], erase=seqs, rule="checkpoint deleted")
        return bool(seqs)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The newest checkpoint of a workflow."""
        found = await run(self._of, workflow_name)
        if not found:
            return None
        newest = max(found, key=lambda it: datetime.fromisoformat(it.value["time"]))
        return await run(self._load, newest)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The names of a workflow's checkpoints."""
        return [it.key for it in await run(self._of, workflow_name)]
