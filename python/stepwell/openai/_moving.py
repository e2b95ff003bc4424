"""Moving over from files of `SQLiteSession`."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from stepwell._well import Well, well_of
from stepwell.openai._session import StepwellSession


def copy_sqlite_sessions(
    path: str | os.PathLike[str],
    store: Well | str | os.PathLike[str] = ".stepwell",
    *,
    messages_table: str = "agent_messages",
) -> int:
    """Copies every session of a `SQLiteSession` file. Sessions that the store has are left.

    Returns how many sessions were copied. The file is only read.
    """
    well = well_of(store)
    name = '"' + messages_table.replace('"', '""') + '"'
    file = Path(path).resolve()
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        ids = connection.execute(f"SELECT DISTINCT session_id FROM {name}").fetchall()
        copied = 0
        for (id,) in ids:
            session = StepwellSession(id, well)
            if well.has(session.session.id):
                continue
            question = f"SELECT message_data FROM {name} WHERE session_id = ? ORDER BY id"
            rows = connection.execute(question, (id,)).fetchall()
            session._log.add([json.loads(data) for (data,) in rows])
            copied += 1
    return copied
