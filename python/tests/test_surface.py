"""What a caller meets: errors, keywords, help, and how long an import takes."""

from __future__ import annotations

import datetime
import importlib
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell import Message

HALF = "a\ud800b"
"""A text that UTF-8 does not have."""

Call = Callable[[stepwell.Well, stepwell.Session], object]

WRONG: dict[str, tuple[Call, str]] = {
    "a negative limit": (lambda w, s: w.sessions(limit=-1), "limit must not be negative: -1"),
    "a negative limit of hits": (lambda w, s: w.search("x", limit=-1), "must not be negative"),
    "an unknown keyword": (
        lambda w, s: w.sessions(sourc="x"),  # type: ignore[call-arg]
        "not narrowed by 'sourc': 'source' is meant",
    ),
    "a status": (lambda w, s: w.sessions(status="nope"), "expected one of|is no status"),  # type: ignore[arg-type]
    "a time": (lambda w, s: w.sessions(since="yesterday"), "is not a time such as"),
    "half a character in a name": (lambda w, s: w.session(HALF), "half a character"),
    "no text": (lambda w, s: w.session(None), "None is no text"),  # type: ignore[arg-type]
    "half a character in an id": (lambda w, s: w.create("t", id=HALF), "half a character"),
    "half a character in a task": (lambda w, s: w.create(HALF), "half a character"),
    "half a character in a message": (
        lambda w, s: s.append(Message.user("long " * 50 + HALF)),
        r"half a character .*: [^:]{0,30}\\ud800b",
    ),
    "half a character in a label": (lambda w, s: s.label(HALF), "half a character"),
    "no event": (lambda w, s: s.append("hello"), "neither a Message nor an event"),  # type: ignore[arg-type]
    "no JSON": (
        lambda w, s: s.append({"kind": "note", "body": {"x": b"1"}}),
        "JSON does not hold this: .*bytes",
    ),
    "no JSON of an agent": (
        lambda w, s: w.create_agent("a", metadata={"x": b"1"}),
        "JSON does not hold this",
    ),
    "a negative seq": (lambda w, s: s.events(after=-1), "-1 is no whole number from 0 up"),
    "half a seq": (lambda w, s: s.events(after=1.5), "1.5 is no whole number"),  # type: ignore[arg-type]
    "a fork of nowhere": (lambda w, s: s.fork(at=-1), "-1 is no whole number from 0 up"),
    "a rewind to nowhere": (lambda w, s: s.rewind(-1), "-1 is no whole number from 0 up"),
    "a follow from nowhere": (lambda w, s: list(s.follow(after=-1)), "no whole number"),
    "negative turns": (lambda w, s: w.create_agent("a").turns(-1), "no whole number"),
    "negative hours": (lambda w, s: w.cleanup(hours=-1), "-1 hours: say a number from 0 up"),
    "no hours": (lambda w, s: w.cleanup(hours=float("nan")), "nan hours"),
    "a store": (lambda w, s: stepwell.open(3), "3 names no store"),  # type: ignore[arg-type]
    "a folder": (lambda w, s: stepwell.open("/etc/passwd"), "/etc/passwd"),
    "a file": (lambda w, s: s.export("html", "/nowhere/at/all"), "No such file"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_asked_wrongly_is_told_plainly(well: stepwell.Well, wrong: str) -> None:
    call, told = WRONG[wrong]
    session = well.create("t", messages=[Message.user("x")])
    seq = session.info().seq
    with pytest.raises(stepwell.StepwellError, match=told) as caught:
        call(well, session)
    # Where in our own JSON something is, is nobody's business.
    assert "line 1 column" not in str(caught.value)
    assert session.info().seq == seq


def test_times_are_datetimes(well: stepwell.Well) -> None:
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=5)
    session = well.create("t", messages=[Message.user("cistern")])
    info = session.info()
    assert before < info.created_at <= info.updated_at
    assert before < session.events()[-1].at
    assert before < well.search("cistern")[0].at
    assert [it.id for it in well.sessions(since=before)] == [session.id]
    assert well.sessions(until=before) == []
    local = before.astimezone(datetime.timezone(datetime.timedelta(hours=7)))
    assert well.sessions(until=local) == []


def test_calls_and_results_are_typed(well: stepwell.Well) -> None:
    session = well.create("t", messages=[Message.user("x")])
    session.append(Message.assistant("", [("c", "look", "{}")]), Message.tool_result("c", "seen"))
    asked, answered = session.messages()[1:]
    assert asked.calls == [{"id": "c", "name": "look", "arguments": "{}"}]
    assert answered.results == [{"call_id": "c", "text": "seen"}]


def test_a_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with stepwell.open("~/store") as well:
        well.create("t")
    assert (tmp_path / "store").is_dir()


MODULES = {
    "stepwell": None,
    "stepwell.types": None,
    "stepwell.errors": None,
    "stepwell.langgraph": "langgraph",
    "stepwell.openai": "agents",
    "stepwell.claude": "claude_agent_sdk",
    "stepwell.strands": "strands",
    "stepwell.adk": "google.adk",
    "stepwell.pydantic_ai": "pydantic_ai.conversation_store",
    "stepwell.agent_framework": "agent_framework",
}


@pytest.mark.parametrize("name", MODULES)
def test_help_names_what_users_import_and_says_what_it_is(name: str) -> None:
    if (framework := MODULES[name]) is not None:
        pytest.importorskip(framework)
    module = importlib.import_module(name)
    for public in module.__all__:
        given = getattr(module, public)
        if inspect.isclass(given) or inspect.isfunction(given):
            assert "._" not in given.__module__, public
            assert inspect.getdoc(given), public
            for method, it in vars(given).items():
                if inspect.isfunction(it) and not method.startswith("_"):
                    assert inspect.getdoc(it), f"{public}.{method}"
    shown = pydoc.plain(pydoc.render_doc(module))
    shown = shown.split("PACKAGE CONTENTS")[0] + shown.split("CLASSES")[-1]
    assert "stepwell._" not in shown
    assert f"{name}._" not in shown


def test_an_import_takes_little() -> None:
    # What it takes, processor time says; by the clock it is that of an idle machine.
    code = (
        "import time; start = time.process_time(); import stepwell; "
        "taken = time.process_time() - start; import sys; "
        "heavy = {'asyncio', 'concurrent.futures', 'langgraph', 'agents', 'pydantic'}; "
        "print(taken, *sorted(heavy & sys.modules.keys()))"
    )
    done = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert {it.stdout.split()[1:] == [] for it in done} == {True}
    print(f"import stepwell: {min(float(it.stdout.split()[0]) for it in done) * 1000:.0f} ms")


def test_methods_for_asyncio_take_what_the_others_take() -> None:
    pairs: list[tuple[Any, Any]] = [
        (stepwell.Well, stepwell.AsyncWell),
        (stepwell.Session, stepwell.AsyncSession),
        (stepwell.AgentSession, stepwell.AsyncAgentSession),
    ]
    for plain, awaited in pairs:
        for name, method in vars(awaited).items():
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            ours, theirs = inspect.signature(method), inspect.signature(getattr(plain, name))
            assert list(ours.parameters) == list(theirs.parameters), f"{awaited}.{name}"
