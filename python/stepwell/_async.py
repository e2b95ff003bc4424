"""The same store for asyncio: no call blocks the event loop."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from stepwell import _well
from stepwell._agents import MAX_ERRORS, RESUME_TIMEOUT, AgentSession
from stepwell._well import Session, Well
from stepwell.types import (
    Continued,
    Event,
    Hit,
    JsonObject,
    Message,
    ResumeDecision,
    SessionInfo,
    SessionQuery,
    Status,
    StopReason,
    Verdict,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 16
"""A flush is waited for by its thread, and those of one store share flushes."""

_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}


def _pool(what: str, threads: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork: a child has pools of its own.
    key = (os.getpid(), what)
    pool = _pools.get(key)
    if pool is None:
        pool = ThreadPoolExecutor(threads, thread_name_prefix=f"stepwell-{what}")
        pool = _pools.setdefault(key, pool)
    return pool


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function on another thread. If the await is cancelled, the call still ends."""
    return await start(function, *args, **kwargs)


def start(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """The same for whoever waits by other means: a future, where a task would take a turn more."""
    return _start(_pool("calls", _THREADS), functools.partial(function, *args, **kwargs))


async def taken(call: Callable[[], T], give_back: Callable[[T], object]) -> T:
    """What a call takes, on another thread. If the await is cancelled, it is given back."""
    pool = _pool("calls", _THREADS)
    future = _start(pool, call, give_back)
    try:
        return await future
    except asyncio.CancelledError:
        # It may have been cancelled when the result was there already.
        if not future.cancelled() and future.exception() is None:
            pool.submit(give_back, future.result())
        raise


def _start(
    pool: ThreadPoolExecutor,
    call: Callable[[], T],
    unwanted: Callable[[T], object] | None = None,
) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if not told.done():
            if error is not None:
                told.set_exception(error)
            else:
                told.set_result(cast("T", result))
        elif error is None and unwanted is not None:
            # The await was cancelled: nobody is left to tell.
            pool.submit(unwanted, cast("T", result))

    def work() -> None:
        if unwanted is not None and told.cancelled():
            return
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(tell, result, error)
        except RuntimeError:
            # The loop was closed meanwhile, and does not want to know.
            if error is None and unwanted is not None:
                unwanted(cast("T", result))

    pool.submit(work)
    return told


class AsyncWell:
    """A store of sessions, for asyncio."""

    def __init__(self, well: Well) -> None:
        self.well = well

    def __repr__(self) -> str:
        return f"<stepwell.AsyncWell {self.well.core.place!r}>"

    async def __aenter__(self) -> AsyncWell:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the store, when the calls that are under way have ended."""
        await run(self.well.close)

    async def sessions(
        self, *, limit: int | None = None, **query: Unpack[SessionQuery]
    ) -> list[SessionInfo]:
        """Sessions, the last updated first; see `Well.sessions`."""
        return await run(self.well.sessions, limit=limit, **query)

    async def search(
        self,
        text: str,
        *,
        limit: int = 20,
        by_relevance: bool = False,
        **query: Unpack[SessionQuery],
    ) -> list[Hit]:
        """What holds all of these words, over all sessions; see `Well.search`."""
        return await run(self.well.search, text, limit=limit, by_relevance=by_relevance, **query)

    async def session(self, name: str) -> AsyncSession:
        """The session of that name: its id, its label, or a part that only it has."""
        return AsyncSession(await run(self.well.session, name))

    async def create(
        self,
        task: str = "",
        *,
        id: str | None = None,
        messages: Sequence[Message] = (),
        agent: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        workspace: str | None = None,
        scope: str | None = None,
    ) -> AsyncSession:
        """Makes a session; see `Well.create`."""
        made = await run(
            self.well.create,
            task,
            id=id,
            messages=messages,
            agent=agent,
            model=model,
            provider=provider,
            workspace=workspace,
            scope=scope,
        )
        return AsyncSession(made)

    async def create_agent(
        self,
        agent: str,
        purpose: str = "",
        *,
        id: str | None = None,
        workspace: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncAgentSession:
        """Makes the session of an agent that reports its phases; see `Well.create_agent`."""
        given: dict[str, Any] = {"id": id, "workspace": workspace, "metadata": metadata}
        return AsyncAgentSession(await run(self.well.create_agent, agent, purpose, **given))

    async def agent(self, name: str) -> AsyncAgentSession:
        """The agent's session of that name."""
        return AsyncAgentSession(await run(self.well.agent, name))

    async def cleanup(self, *, hours: float = 24) -> list[str]:
        """Moves sessions of agents without activity for so many hours to the trash."""
        return await run(self.well.cleanup, hours=hours)

    def hold(self, name: str) -> AsyncHeld:
        """The right to write to a session, for an `async with` block."""
        return AsyncHeld(self.well, name)


class AsyncSession:
    """One session of a store, for asyncio."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __repr__(self) -> str:
        return f"<stepwell.AsyncSession {self.id!r}>"

    @property
    def id(self) -> str:
        """Its name."""
        return self.session.id

    async def info(self) -> SessionInfo:
        """How it stands."""
        return await run(self.session.info)

    async def messages(self, lane: str = "main") -> list[Message]:
        """The conversation as a model would be shown it."""
        return await run(self.session.messages, lane)

    async def continues(self) -> list[Continued]:
        """The sessions whose messages this one took over; see `Session.continues`."""
        return await run(self.session.continues)

    async def lanes(self) -> list[str]:
        """Whose conversations it holds."""
        return await run(self.session.lanes)

    async def events(
        self, *, after: int = 0, newest: bool = False, limit: int | None = None, live: bool = False
    ) -> list[Event]:
        """What was recorded."""
        return await run(self.session.events, after=after, newest=newest, limit=limit, live=live)

    async def append(self, *what: Message | Mapping[str, Any]) -> int:
        """Records messages or events, all or none."""
        return await run(self.session.append, *what)

    async def step(self, *messages: Message, lane: str = "main") -> int:
        """Records a step."""
        return await run(self.session.step, *messages, lane=lane)

    async def status(
        self, status: Status, reason: StopReason | None = None, error: str | None = None
    ) -> int:
        """Records how the run stands, and why it stopped; see `Session.status`."""
        return await run(self.session.status, status, reason, error)

    async def session_files(self) -> list[str]:
        """Paths of the files that it changed."""
        return await run(self.session.session_files)

    async def checkpoint(self, name: str) -> int:
        """Names the present point."""
        return await run(self.session.checkpoint, name)

    async def answer(self, gate: str, answer: str) -> int:
        """Answers a question that the session waits for."""
        return await run(self.session.answer, gate, answer)

    async def fork(self, *, at: int | None = None, id: str | None = None) -> AsyncSession:
        """A new session that shares this one's events up to `at`."""
        return AsyncSession(await run(self.session.fork, at=at, id=id))

    async def rewind(self, to: int) -> int:
        """Moves the view back to an event."""
        return await run(self.session.rewind, to)

    async def undo(self) -> int:
        """Takes the last rewind or compaction back."""
        return await run(self.session.undo)

    async def label(self, label: str | None) -> None:
        """Names the session for people."""
        await run(self.session.label, label)

    async def verify(self) -> Verdict:
        """Re-reads and re-hashes everything that was recorded."""
        return await run(self.session.verify)

    async def export(
        self, format: str = "jsonl", path: str | os.PathLike[str] | None = None
    ) -> bytes:
        """The session as `jsonl`, `json`, `markdown` or `html`."""
        return await run(self.session.export, format, path)

    async def follow(
        self, *, after: int | None = None, seconds: float | None = None
    ) -> AsyncIterator[Event]:
        """Events as they are recorded, by whichever process."""
        stop = threading.Event()
        following = self.session.follow_until(stop, after=after, seconds=seconds)
        # One that waits for hours must not keep calls from their threads.
        pool = ThreadPoolExecutor(1, thread_name_prefix="stepwell-follow")
        try:
            while (found := await _start(pool, lambda: next(following, None))) is not None:
                yield found
        finally:
            stop.set()
            pool.shutdown(wait=False)

    def hold(self) -> AsyncHeld:
        """The right to write to it, for an `async with` block."""
        return AsyncHeld(self.session.well, self.id)

    async def trash(self) -> None:
        """Moves it to the trash."""
        await run(self.session.trash)

    async def restore(self) -> None:
        """Brings it back from the trash."""
        await run(self.session.restore)

    async def purge(self) -> None:
        """Erases it for good."""
        await run(self.session.purge)


class AsyncAgentSession(AsyncSession):
    """The session of an agent that reports its phases, for asyncio."""

    def __init__(self, session: AgentSession) -> None:
        super().__init__(session)
        self._agent = session

    async def state(self) -> JsonObject:
        """How it stands."""
        return await run(self._agent.state)

    async def phases(self) -> list[JsonObject]:
        """Every move from phase to phase."""
        return await run(self._agent.phases)

    async def update(
        self,
        *,
        phase: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        goal: str | None = None,
        error: str | None = None,
        ready: bool | None = None,
    ) -> None:
        """Records what the agent says of itself; see `AgentSession.update`."""
        await run(
            self._agent.update, phase=phase, metadata=metadata, goal=goal, error=error, ready=ready
        )

    async def should_resume(
        self, *, timeout: float = RESUME_TIMEOUT, max_errors: int = MAX_ERRORS
    ) -> ResumeDecision:
        """Whether it can be resumed now; see `AgentSession.should_resume`."""
        return await run(self._agent.should_resume, timeout=timeout, max_errors=max_errors)

    async def turns(self, last: int = 5) -> list[JsonObject]:
        """The last turns of its conversation, oldest first."""
        return await run(self._agent.turns, last)

    async def resume_metadata(self, *, turns: int = 5) -> JsonObject:
        """What an agent needs to go on."""
        return await run(self._agent.resume_metadata, turns=turns)

    async def finalize(
        self, outcome: str, *, summary: str | None = None, error: str | None = None
    ) -> bool:
        """Ends it as `completed`, `failed` or `abandoned`."""
        return await run(self._agent.finalize, outcome, summary=summary, error=error)


class AsyncHeld:
    """A session while it is held, for asyncio."""

    def __init__(self, well: Well, name: str) -> None:
        self._well = well
        self._name = name
        self._held: _well.Held | None = None

    async def __aenter__(self) -> AsyncSession:
        def enter() -> tuple[_well.Held, Session]:
            held = self._well.hold(self._name)
            return held, held.__enter__()

        def leave(entered: tuple[_well.Held, Session]) -> None:
            entered[0].__exit__(None, None, None)

        held, session = await taken(enter, leave)
        self._held = held
        return AsyncSession(session)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._held is not None:
            await run(self._held.__exit__, kind, error, trace)
            self._held = None


async def aopen(
    target: str | os.PathLike[str] = ".stepwell", *, read_only: bool = False
) -> AsyncWell:
    """Opens a store, and makes it if there is none: a folder, or `postgres://…`."""
    return AsyncWell(await run(_well.open, target, read_only=read_only))
