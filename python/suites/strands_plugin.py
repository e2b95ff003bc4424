"""Points Strands' own session and storage tests at our stores: `pytest -p strands_plugin …`."""

from __future__ import annotations

from typing import Any

import pytest
import strands.storage
import strands.storage.local_file_storage
from apart import expect_failures
from tests.fixtures import mock_session_repository

import stepwell
from stepwell.strands import StepwellRepository, StepwellStorage

FILES = "looks at files and folders, or at the name of their class"
SANDBOX = "is about files in a sandbox"
SEARCH = "is about an index for search, which our storage does not keep"
APART = {
    "test_save_writes_external_ref_for_durable_storage": FILES,
    "test_write_creates_directories": FILES,
    "test_namespace_returns_local_file_storage": FILES,
    "test_normpath_prevents_trailing_slash_in_namespace": FILES,
    "test_for_sandbox_returns_self_if_same": SANDBOX,
    "test_for_sandbox_returns_new_if_different": SANDBOX,
    "test_sandbox_binary_round_trip": SANDBOX,
    "test_sandbox_delete": SANDBOX,
    "test_sandbox_list": SANDBOX,
    "test_sandbox_list_nested": SANDBOX,
    "test_write_error_raises_storage_error": FILES,
    "test_read_error_raises_storage_error": FILES,
    "test_namespace_preserves_for_sandbox": SANDBOX,
    "test_delete_error_raises_storage_error": FILES,
    "test_list_error_raises_storage_error": FILES,
    "test_write_atomic_cleanup_on_replace_failure": FILES,
    "test_write_indexes_with_search_strategy": SEARCH,
    "test_search_delegates_to_strategy": SEARCH,
    "test_for_sandbox_preserves_search_strategy": SANDBOX,
    "test_namespace_preserves_search_strategy": SEARCH,
    "test_rejects_host_fs_strategy_with_sandbox": SANDBOX,
    "test_for_sandbox_drops_host_fs_strategy_with_warning": SANDBOX,
}


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Names the tests that only files pass."""
    expect_failures(items, APART)
