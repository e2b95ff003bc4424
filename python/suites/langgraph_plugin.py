"""Points LangGraph's own tests at our saver: `pytest -p langgraph_plugin -k sqlite tests`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from stepwell.langgraph import StepwellSaver


@contextlib.contextmanager
def saver(**options: Any) -> Iterator[StepwellSaver]:
    """A saver on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        made = StepwellSaver(folder, **options)
        try:
            yield made
        finally:
            made.well.close()


@contextlib.contextmanager
def encrypted() -> Iterator[StepwellSaver]:
    """A saver whose values are encrypted, as the tests' own one is."""
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    with saver() as made:
        made.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")
        yield made


@contextlib.asynccontextmanager
async def async_saver() -> AsyncIterator[StepwellSaver]:
    """The same saver for async tests."""
    with saver() as made:
        yield made


def pytest_configure(config: pytest.Config) -> None:
    """Replaces the fixtures' savers."""
    from tests import conftest, conftest_checkpointer

    for module in (conftest, conftest_checkpointer):
        module._checkpointer_sqlite = saver
        module._checkpointer_sqlite_aes = encrypted
        module._checkpointer_sqlite_aio = async_saver
