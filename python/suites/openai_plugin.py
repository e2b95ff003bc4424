"""Points OpenAI Agents' own session tests at our session: `pytest -p openai_plugin tests/…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest
from apart import expect_failures

import stepwell
from stepwell.openai import StepwellSession

CONNECTIONS = "looks into the session's connections to SQLite"
TABLES = "breaks the session's own tables"
CLOSED = "a closed store refuses what would write; nothing writes nothing"
PRIVATE = "replaces a private method"
APART = {
    "test_sqlite_session_close_closes_worker_thread_connections": CONNECTIONS,
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": CONNECTIONS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": CONNECTIONS,
    "test_sqlite_session_keeps_connections_of_live_worker_threads": CONNECTIONS,
    "test_sqlite_session_closed_rejects_empty_add_items": CLOSED,
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": TABLES,
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": TABLES,
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": TABLES,
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": TABLES,
    "test_sqlite_session_file_lock_is_shared_across_instances": CONNECTIONS,
    "test_sqlite_session_failed_add_items_releases_write_lock": TABLES,
    "test_sqlite_session_failed_clear_session_rolls_back": TABLES,
    "test_sqlite_session_failed_pop_item_releases_write_lock": TABLES,
    "test_sqlite_session_rollback_failure_evicts_connection": CONNECTIONS,
    "test_sqlite_session_close_retries_quarantined_connection": CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": CONNECTIONS,
    "test_handoff_resume_after_cancelled_compaction_commits": PRIVATE,
}


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Names the tests that only SQLite's session passes."""
    expect_failures(items, APART)
