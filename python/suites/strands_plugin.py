"""Points Strands' own session and storage tests at our stores: `pytest -p strands_plugin …`."""

from __future__ import annotations

from typing import Any

import strands.storage
import strands.storage.local_file_storage
from tests.fixtures import mock_session_repository

import stepwell
from stepwell.strands import StepwellRepository, StepwellStorage


class Repository(StepwellRepository):
    """Our repository on a store of its own."""

    def __init__(self) -> None:
        super().__init__(stepwell.memory())


class Storage(StepwellStorage):
    """Our storage with the arguments of `LocalFileStorage`."""

    def __init__(self, base_dir: Any = None, **options: Any) -> None:
        store = stepwell.memory() if base_dir is None else stepwell.open(f"{base_dir}/stepwell")
        super().__init__(store)


mock_session_repository.MockedSessionRepository = Repository  # type: ignore[misc,assignment]
for module in (strands.storage, strands.storage.local_file_storage):
    module.LocalFileStorage = Storage  # type: ignore[attr-defined,misc]
