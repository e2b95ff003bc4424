"""Points OpenAI Agents' own session tests at our session: `pytest -p openai_plugin tests/…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session

import stepwell
from stepwell.openai import StepwellSession


class Session(StepwellSession):
    """Our session with the arguments of `SQLiteSession`."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        options = {name: options[name] for name in ("session_settings",) if name in options}
        is_memory = str(db_path) == ":memory:"
        store = stepwell.memory() if is_memory else stepwell.open(f"{db_path}.stepwell")
        super().__init__(session_id, store, **options)

    def close(self) -> None:
        """Closes the store."""
        self.well.close()


for module in (agents, agents.memory, agents.memory.sqlite_session):
    module.SQLiteSession = Session  # type: ignore[attr-defined,misc]
