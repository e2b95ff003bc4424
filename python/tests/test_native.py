"""The native API: sessions, views, forks, rewinds, leases, errors."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import get_args

import pytest

import stepwell
from stepwell import Message


def test_what_is_appended_is_read_back_as_a_valid_conversation(well: stepwell.Well) -> None:
    session = well.create("fix the login", agent="build")
    session.append(Message.user("fix the login"))
    session.step(Message.assistant("I look.", [("c1", "read", '{"path":"a"}')]))
    shown = session.messages()
    # The call that was cut off is answered.
    assert [message.role for message in shown] == ["user", "assistant", "tool"]
    assert shown[2].text == "interrupted, outcome unknown"
    assert shown[1].calls[0]["name"] == "read"
    info = session.info()
    assert (info.task, info.agent, info.steps, info.status) == ("fix the login", "build", 1, "idle")
    assert vars(info).keys() == {it.name for it in dataclasses.fields(info)}


def test_a_rewind_is_undone_and_a_fork_stands_on_its_own(well: stepwell.Well) -> None:
    session = well.create("count", messages=[Message.user("one")])
    first = session.info().seq
    session.append(Message.assistant("two"))
    fork = session.fork()
    session.rewind(first)
    assert [it.text for it in session.messages()] == ["one"]
    assert [it.text for it in fork.messages()] == ["one", "two"]
    session.undo()
    assert [it.text for it in session.messages()] == ["one", "two"]
    with pytest.raises(stepwell.InvalidError, match="nothing to take back"):
        session.undo()
    assert session.verify().sound
    assert fork.verify().sound


def test_sessions_are_listed_labelled_found_and_searched(well: stepwell.Well) -> None:
    session = well.create("refunds", messages=[Message.user("what is the refund policy?")])
    well.create("other")
    session.label("demo")
    assert well.session("demo").id == session.id
    assert [it.id for it in well.sessions(label="demo")] == [session.id]
    assert len(well.sessions()) == 2
    assert len(well.sessions(limit=1)) == 1
    hits = well.search("refund policy")
    assert [hit.session for hit in hits] == [session.id]
    assert "policy" in hits[0].snippet
    assert well.search("refund", status="failed") == []


def test_secrets_are_taken_out_of_what_is_appended(well: stepwell.Well) -> None:
    secret = "ghp_" + "a1B2" * 9
    session = well.create("t")
    session.append(Message.user(f"my token is {secret}"))
    assert secret not in session.messages()[0].text


def test_a_session_is_exported_and_trashed_and_purged(well: stepwell.Well, tmp_path: Path) -> None:
    session = well.create("page", messages=[Message.user("hello page")])
    assert b"hello page" in session.export("markdown", tmp_path / "run.md")
    assert (tmp_path / "run.md").read_text().startswith("# page")
    session.trash()
    assert well.sessions() == []
    session.restore()
    session.purge()
    with pytest.raises(stepwell.AbsentError):
        session.info()


def test_errors_are_what_python_expects_of_them(well: stepwell.Well) -> None:
    session = well.create("t", id="only-one")
    with pytest.raises(stepwell.ConflictError, match="exists already"):
        well.create("t", id="only-one")
    with pytest.raises(LookupError, match="no session"):
        well.session("nobody")
    with pytest.raises(ValueError, match="events"):
        session.append({"kind": "message", "body": {"role": "nobody"}})
    with pytest.raises(ValueError, match="no order"):
        well.sessions(sort="size")
    assert stepwell.BusyError("x").kind == "busy"


def test_who_holds_a_session_is_told_to_others(folder: Path) -> None:
    with stepwell.open(folder) as one, stepwell.open(folder) as other:
        session = one.create("t")
        with one.hold(session.id) as held:
            held.append(Message.user("mine"))
            with pytest.raises(TimeoutError, match=f"in use by process {os.getpid()}"):
                other.session(session.id).append(Message.user("not mine"))
        other.session(session.id).append(Message.user("now mine"))
        assert [it.text for it in session.messages()] == ["mine", "now mine"]
        with pytest.raises(stepwell.FencedError, match="released"):
            held.append(Message.user("too late"))


def test_a_follower_sees_what_another_handle_writes(folder: Path) -> None:
    with stepwell.open(folder) as one, stepwell.open(folder) as other:
        session = one.create("t")
        seen = session.follow(after=session.info().seq)
        roles: list[str] = []
        follower = threading.Thread(target=lambda: roles.append(next(seen).body["role"]))
        follower.start()
        other.session(session.id).append(Message.user("hi"))
        follower.join(20)
        assert roles == ["user"]
        assert list(session.follow(after=session.info().seq, seconds=0.01)) == []


def test_a_closed_store_says_so(folder: Path) -> None:
    well = stepwell.open(folder)
    well.close()
    with pytest.raises(stepwell.InvalidError, match="closed"):
        well.sessions()


def test_reading_only_refuses_writes(folder: Path) -> None:
    with stepwell.open(folder) as well:
        well.create("t", id="there")
    with (
        stepwell.open(folder, read_only=True) as well,
        pytest.raises(PermissionError, match="reading only"),
    ):
        well.session("there").append(Message.user("x"))


def test_the_interpreter_runs_on_while_a_call_waits(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = well.create("t")
        waiting = threading.Thread(
            target=lambda: well.core.wait_after(session.id, session.info().seq, 20)
        )
        waiting.start()
        # With the interpreter's lock held, this line would not be reached for 20 seconds.
        session.append(Message.user("wake up"))
        waiting.join(10)
        assert not waiting.is_alive()


def test_a_forked_child_and_its_parent_both_go_on(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = well.create("t", messages=[Message.user("before")])
        with well.hold(session.id) as held:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    other = well.create("in the child", id="child")
                    other.append(Message.user("from the child"))
                    try:
                        held.append(Message.user("not the child's to write"))
                    except stepwell.FencedError:
                        code = 0
                finally:
                    os._exit(code)
            held.append(Message.user("from the parent"))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert well.session("child").messages()[0].text == "from the child"
        assert [it.text for it in session.messages()] == ["before", "from the parent"]


def test_a_store_in_memory_stays_with_its_process() -> None:
    with stepwell.memory() as well:
        well.create("t")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                well.sessions()
            except stepwell.IncompatibleError:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(well.sessions()) == 1


def test_a_fork_waits_for_calls_that_are_under_way(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = well.create("t")
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                session.append(Message.user("x"))

        writers = [threading.Thread(target=write) for _ in range(3)]
        for writer in writers:
            writer.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    session.append(Message.user("child"))
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for writer in writers:
            writer.join()
        assert session.verify().sound


async def test_async_twins_do_the_same(folder: Path) -> None:
    async with await stepwell.aopen(folder) as well:
        session = await well.create("twins", messages=[Message.user("one")])
        await session.step(Message.assistant("two"))
        assert [it.text for it in await session.messages()] == ["one", "two"]
        assert (await session.info()).steps == 1
        assert [it.id for it in await well.sessions()] == [session.id]
        assert len(await well.search("twins")) >= 1
        fork = await session.fork()
        await fork.label("copy")
        assert (await well.session("copy")).id == fork.id
        async with well.hold(session.id) as held:
            await held.append(Message.user("three"))
        await session.rewind(2)
        await session.undo()
        assert (await session.verify()).sound
        assert b"twins" in await session.export("html")
        async for event in session.follow(after=0):
            assert event.kind == "created"
            break


async def test_the_event_loop_is_never_blocked(folder: Path) -> None:
    async with await stepwell.aopen(folder) as well:
        session = await well.create("t")
        seq = (await session.info()).seq
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            for _ in range(50):
                await asyncio.sleep(0)
                ticks += 1

        waiting = asyncio.create_task(anext(aiter(session.follow(after=seq))))
        await tick()
        assert ticks == 50
        assert not waiting.done()
        await session.append(Message.user("go on"))
        assert (await waiting).kind == "message"


async def test_a_cancelled_await_still_finishes_its_write(folder: Path) -> None:
    async with await stepwell.aopen(folder) as well:
        session = await well.create("t")
        task = asyncio.create_task(session.append(Message.user("told")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        until = time.monotonic() + 60
        while not await session.messages():
            assert time.monotonic() < until
        assert (await session.messages())[0].text == "told"


def test_a_checkpoint_names_a_point(well: stepwell.Well) -> None:
    session = well.create("t", messages=[Message.user("one")])
    seq = session.checkpoint("before the change")
    with session.hold() as held:
        held.append(Message.user("two"))
        assert held.checkpoint("while held") > seq
    named = [it.body["name"] for it in session.events() if it.kind == "checkpoint"]
    assert named == ["before the change", "while held"]
    for wrong in ("", "12"):
        with pytest.raises(stepwell.InvalidError, match="checkpoint name"):
            session.checkpoint(wrong)
        with session.hold() as held, pytest.raises(stepwell.InvalidError, match="checkpoint name"):
            held.checkpoint(wrong)


def test_each_status_and_each_reason_is_one_that_the_store_knows(well: stepwell.Well) -> None:
    session = well.create("t")
    for reason in get_args(stepwell.StopReason):
        session.status("paused", reason)
    for status in get_args(stepwell.Status):
        session.status(status, error="what went wrong")
    with pytest.raises(stepwell.InvalidError, match="'because' is no reason: say one of llm_done,"):
        session.status("paused", "because")  # type: ignore[arg-type]
    with pytest.raises(stepwell.InvalidError, match="'done' is no status"):
        session.status("done")  # type: ignore[arg-type]


def test_an_import_takes_no_more_than_it_needs() -> None:
    code = "import stepwell, sys; print('asyncio' in sys.modules); print(dir(stepwell))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, names = told.stdout.splitlines()
    assert imported == "False"
    assert not [name for name in eval(names) if name.startswith("_") and name != "__version__"]
