"""Waits that end: followers beside a cancel, a signal, a close and a fork, and cancelled holds."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import stepwell
from stepwell import Message

PATIENCE = 40
"""Seconds that no wait may take. A follower that heard of nothing looked up once a minute."""


def program(text: str, folder: Path) -> subprocess.Popen[str]:
    """A program of its own, which has said that it is ready."""
    code = f"import asyncio, stepwell\nfolder = {str(folder)!r}\n{textwrap.dedent(text)}"
    command = [sys.executable, "-c", code]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    return running


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    """How it ended, and what it complained of."""
    try:
        _, complaint = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    return running.returncode, complaint


def test_a_cancelled_follow_lets_the_process_end(folder: Path) -> None:
    running = program(
        """
        async def main():
            well = await stepwell.aopen(folder)
            session = await well.create("t")
            following = asyncio.create_task(anext(aiter(session.follow())))
            await asyncio.sleep(0.3)
            following.cancel()
            print("ready", flush=True)
        asyncio.run(main())
        """,
        folder,
    )
    assert ended(running) == (0, "")


def test_a_signal_ends_a_follow(folder: Path) -> None:
    running = program(
        """
        import signal
        # A program that a shell started in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        well = stepwell.open(folder)
        session = well.create("t")
        print("ready", flush=True)
        for event in session.follow():
            pass
        """,
        folder,
    )
    running.send_signal(signal.SIGINT)
    code, complaint = ended(running)
    assert code == -signal.SIGINT, complaint
    assert "KeyboardInterrupt" in complaint


def test_closing_the_store_ends_a_follow(well: stepwell.Well) -> None:
    session = well.create("t")
    seen: list[str] = []
    began = threading.Event()

    def follow() -> None:
        for event in session.follow(after=0):
            seen.append(event.kind)
            began.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    assert began.wait(PATIENCE)
    closer = threading.Thread(target=well.close, daemon=True)
    closer.start()
    closer.join(PATIENCE)
    follower.join(PATIENCE)
    assert (closer.is_alive(), follower.is_alive(), seen) == (False, False, ["created"])


def test_a_fork_does_not_wait_for_a_follow(folder: Path) -> None:
    running = program(
        """
        import os, threading
        well = stepwell.open(folder)
        session = well.create("t")
        began = threading.Event()
        def follow():
            for event in session.follow(after=0):
                began.set()
        threading.Thread(target=follow, daemon=True).start()
        began.wait()
        asyncio.run(asyncio.sleep(0.3))
        print("ready", flush=True)
        child = os.fork()
        if child == 0:
            session.append(stepwell.Message.user("from the child"))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        folder,
    )
    assert ended(running) == (0, "")


async def test_a_cancelled_hold_leaves_no_lease_behind(folder: Path) -> None:
    rng = random.Random(1)
    async with await stepwell.aopen(folder) as well, await stepwell.aopen(folder) as other:
        session = await well.create("t", messages=[Message.user("hi")])

        async def hold() -> None:
            async with well.hold(session.id) as held:
                await held.append(Message.user("held"))

        for _ in range(60):
            task = asyncio.create_task(hold())
            await asyncio.sleep(rng.random() * 0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        # The last ones are given back by threads that may still be at it.
        until = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                async with other.hold(session.id) as held:
                    await held.append(Message.user("others hold it then"))
                break
            except stepwell.BusyError:
                assert asyncio.get_running_loop().time() < until


def test_a_follower_goes_on_in_a_forked_child(folder: Path) -> None:
    with stepwell.open(folder) as well:
        session = well.create("t")
        following = session.follow(after=0)
        assert next(following).kind == "created"
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if next(following).kind == "message" else 1
            finally:
                os._exit(code)
        session.append(Message.user("go on"))
        assert next(following).kind == "message"
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
