"""`stepwell import` reads what the frameworks' own stores wrote."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import stepwell

COMMAND = Path(__file__).parents[2] / "target" / "debug" / "stepwell"


def ran(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The command, when it has ended."""
    if not COMMAND.exists():
        if os.environ.get("STEPWELL_CHECK"):
            pytest.fail(f"{COMMAND} is not there: cargo build -p stepwell-cli makes it")
        pytest.skip(f"{COMMAND} is not there: cargo build -p stepwell-cli makes it")
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [str(COMMAND), *args, "--json"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def run(folder: Path, *args: str) -> list[Any]:
    """What the command answers, each line as JSON."""
    done = ran(folder, *args)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def imported(folder: Path, file: Path | str) -> tuple[int, int]:
    """Imports a file or a server's tables; how many sessions were new, and how many unchanged."""
    told = [it["imported"] for it in run(folder, "import", str(file))]
    return told.count("imported"), told.count("unchanged")


def messages(folder: Path, system: str) -> dict[str, list[str]]:
    """What is said in each session of a system, by the system's own name for it."""
    listed = run(folder, "sessions", "--source", system)
    with stepwell.open(folder / ".stepwell") as well:
        found = [well.session(row["id"]) for row in listed]
        return {
            it.info().source_id or "": [message.text for message in it.messages()] for it in found
        }


def test_threads_of_the_sqlite_saver(tmp_path: Path) -> None:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    from graph_worker import graph

    file = tmp_path / "checkpoints.db"
    with sqlite.SqliteSaver.from_conn_string(str(file)) as saver:
        for thread in ("a b", "two"):
            config: Any = {"configurable": {"thread_id": thread}}
            for turn in range(3):
                state = graph(saver).invoke({"messages": [("user", f"turn {turn}")]}, config)
    assert imported(tmp_path, file) == (2, 0)
    assert imported(tmp_path, file) == (0, 2)
    told = messages(tmp_path, "langgraph")
    assert set(told) == {"a b", "two"}
    assert told["two"] == [message.text for message in state["messages"]]


def test_threads_of_the_postgres_saver(tmp_path: Path, cluster: str) -> None:
    postgres = pytest.importorskip("langgraph.checkpoint.postgres")
    psycopg = pytest.importorskip("psycopg")
    from graph_worker import graph

    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA graphs")
    address = f"{cluster}?options=-csearch_path%3Dgraphs"
    with postgres.PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        for thread in ("a b", "two"):
            config: Any = {"configurable": {"thread_id": thread}}
            for turn in range(3):
                state = graph(saver).invoke({"messages": [("user", f"turn {turn}")]}, config)
        assert imported(tmp_path, address) == (2, 0)
        assert imported(tmp_path, address) == (0, 2)
        told = messages(tmp_path, "langgraph")
        assert set(told) == {"a b", "two"}
        assert told["two"] == [message.text for message in state["messages"]]
        graph(saver).invoke({"messages": [("user", "once more")]}, config)
        told = [it["imported"] for it in run(tmp_path, "import", address)]
        assert sorted(told) == ["unchanged", "updated"]
    # A database without such tables is told as such, and the address does not show its login.
    failed = ran(tmp_path, "import", cluster)
    assert failed.returncode != 0
    assert "PostgresSaver" in failed.stderr
    assert "stepwell@" not in failed.stderr


async def test_files_of_sqlite_sessions(tmp_path: Path) -> None:
    agents = pytest.importorskip("agents")
    file = tmp_path / "old.db"
    for id in ("one", "two"):
        session = agents.SQLiteSession(id, file)
        await session.add_items(
            [
                {"role": "user", "content": f"hi from {id}"},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "seen"},
                {"role": "assistant", "content": "hello"},
            ]
        )
        session.close()
    assert imported(tmp_path, file) == (2, 0)
    assert imported(tmp_path, file) == (0, 2)
    told = messages(tmp_path, "openai")
    assert [text for text in told["two"] if text] == ["hi from two", "seen", "hello"]


@pytest.mark.parametrize("service", ["sqlite", "database"])
async def test_databases_of_adk(tmp_path: Path, service: str) -> None:
    pytest.importorskip("google.adk")
    from google.adk.events.event import Event
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types

    file = tmp_path / "adk.db"
    made: Any
    if service == "sqlite":
        made = SqliteSessionService(str(file))
    else:
        made = DatabaseSessionService(f"sqlite+aiosqlite:///{file}")
    for user in ("ann", "bob"):
        session = await made.create_session(app_name="shop", user_id=user, session_id="s")
        for author, said in (("user", f"{user} asks"), ("bot", "it answers")):
            content = types.Content(role="user", parts=[types.Part(text=said)])
            await made.append_event(session, Event(author=author, content=content))
    if service == "database":
        await made.close()
    assert imported(tmp_path, file) == (2, 0)
    assert imported(tmp_path, file) == (0, 2)
    told = messages(tmp_path, "adk")
    assert told == {f"shop/{user}/s": [f"{user} asks", "it answers"] for user in ("ann", "bob")}
    assert len(run(tmp_path, "sessions", "--scope", "adk/shop/bob")) == 1
