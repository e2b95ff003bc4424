"""Every line of docs/python.md that a reader may copy is run, and every name in it is there."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell import Message

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = [
    (name, text)
    for name, page in (("python.md", PAGE), ("README.md", README))
    for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
]


def graph_builder() -> Any:
    from langgraph.graph import START, MessagesState, StateGraph

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "hello")]})
    builder.add_edge(START, "answer")
    return builder


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda n: f"{BLOCKS[n][0]}-{n}")
def test_a_block_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langgraph")
    pytest.importorskip("agents")
    from stepwell.langgraph import StepwellSaver
    from stepwell.openai import StepwellSession

    text = BLOCKS[number][1]
    monkeypatch.chdir(tmp_path)
    with stepwell.open(tmp_path / "other") as well:
        builder = graph_builder()
        begun: Any = builder.compile(checkpointer=StepwellSaver(well))
        at: Any = {"configurable": {"thread_id": "1"}}
        begun.invoke({"messages": [("user", "hi")]}, at)
        names = {
            "well": well,
            "builder": builder,
            "Message": Message,
            "StepwellSession": StepwellSession,
        }
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, f"block {number}", "exec"), names)
        if "print(" in text:
            assert said.getvalue() == "['fix the login', 'Done.']\n"
        if "finalize" in text:
            made: Any = names["agent"]
            assert made.state()["phase"] == "completed"
            assert made.phases()
            assert len(made.turns(1)) == 1
        if "continues()" in text:
            session: Any = names["session"]
            assert [it.session for it in session.session.continues()] == ["langgraph.1"]
        if "thread_id" in text:
            with StepwellSaver.from_conn_string(str(tmp_path / ".stepwell")) as saver:
                assert saver.get_tuple(at) is not None


def rows(after: str) -> list[str]:
    """The first column of the table behind a line."""
    table = PAGE.split(after, 1)[1].split("\n\n", 1)[0]
    return [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]


def named(cells: list[str]) -> list[str]:
    """The methods that these cells call."""
    return [name for cell in cells for name in re.findall(r"`(\w+)\(", cell)]


def test_each_method_of_a_well_is_there_and_works(well: stepwell.Well) -> None:
    session = well.create("t", messages=[Message.user("the refund policy")], scope="s")
    agent = well.create_agent("a", "p", metadata={"k": 1})
    works = {
        "sessions": lambda: [it.id for it in well.sessions(scope="s", limit=1)] == [session.id],
        "search": lambda: [it.session for it in well.search("refund policy")] == [session.id],
        "session": lambda: well.session(session.id).id == session.id,
        "create": lambda: well.create("u", model="m").info().model == "m",
        "create_agent": lambda: well.create_agent("b", "p").info().agent == "b",
        "agent": lambda: well.agent(agent.id).state()["metadata"]["k"] == 1,
        "cleanup": lambda: well.cleanup(hours=24) == [],
        "hold": lambda: held(well, session.id),
    }
    assert isinstance(well.sessions(ready=True), list)
    told = named(rows("| of a well | |"))
    assert set(told) == works.keys()
    for name, work in works.items():
        assert work(), name
        assert hasattr(stepwell.AsyncWell, name)


def test_each_method_of_a_session_is_there_and_works(well: stepwell.Well, tmp_path: Path) -> None:
    session = well.create("t", messages=[Message.user("one")])
    first = session.info().seq
    works = {
        "messages": lambda: [it.text for it in session.messages()] == ["one"],
        "append": lambda: session.append(Message.assistant("two")) > first,
        "step": lambda: session.step(Message.assistant("three")) > first,
        "status": lambda: session.status("paused", "gate") and session.info().status == "paused",
        "checkpoint": lambda: session.checkpoint("here") > first,
        "answer": lambda: answered(session),
        "fork": lambda: len(session.fork(at=first).messages()) == 1,
        "rewind": lambda: session.rewind(first) and len(session.messages()) == 1,
        "undo": lambda: session.undo() and len(session.messages()) == 3,
        "session_files": lambda: session.session_files() == [],
        "continues": lambda: session.continues() == [],
        "events": lambda: session.events()[0].kind == "created",
        "follow": lambda: next(session.follow(after=0)).seq == 1,
        "label": lambda: session.label("l") is None and session.info().label == "l",
        "verify": lambda: session.verify().sound,
        "export": lambda: b"one" in session.export("html", tmp_path / "page"),
        "trash": lambda: session.trash() is None and session.id not in listed(well),
        "restore": lambda: session.restore() is None and session.id in listed(well),
        "purge": lambda: session.purge() is None and session.id not in listed(well),
    }
    told = named(rows("| of a session | |"))
    assert set(told) == works.keys()
    for name, work in works.items():
        assert work(), name
        assert hasattr(stepwell.AsyncSession, name)


def held(well: stepwell.Well, id: str) -> bool:
    with well.hold(id) as session:
        return session.step(Message.assistant("mine")) > 0


def listed(well: stepwell.Well) -> list[str]:
    return [it.id for it in well.sessions()]


def answered(session: stepwell.Session) -> bool:
    session.append({"kind": "gate", "body": {"id": "g", "prompt": "go on?"}})
    return session.answer("g", "yes") > 0


def test_each_error_is_what_the_page_says() -> None:
    for line in PAGE.split("| | is also | means |", 1)[1].split("\n\n", 1)[0].splitlines():
        names = re.findall(r"`(\w+Error)`", line.split("|")[1]) if line.startswith("| `") else []
        also = re.findall(r"`(\w+)`", line.split("|")[2]) if names else []
        for name in names:
            error = getattr(stepwell, name)
            assert issubclass(error, stepwell.StepwellError)
            assert error.kind != "error"
            for other in also:
                assert issubclass(error, getattr(__import__("builtins"), other))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(stepwell\.[\w.]+\.\w+)[`(]", PAGE))))
def test_each_class_that_the_page_names_is_there(name: str) -> None:
    module, _, given = name.rpartition(".")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if "stepwell" in str(error):
            raise
        pytest.skip(str(error))
    assert hasattr(found, given)
