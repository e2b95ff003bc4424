"""ADK's contracts for sessions, artifacts and memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

import stepwell
from stepwell.adk import StepwellArtifactService, StepwellMemoryService, StepwellSessionService

WHO: Any = {"app_name": "app", "user_id": "ann"}


def said(text: str, author: str = "user", **fields: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, content=content, **fields)


@pytest.mark.on_a_server
async def test_a_session_read_again_equals_the_one_in_memory(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    session = await service.create_session(**WHO, state={"a": 1}, session_id="  s1 ")
    assert session.id == "s1"
    image = types.Part(inline_data=types.Blob(data=b"\x00\xff\x10", mime_type="image/png"))
    call = types.Part(function_call=types.FunctionCall(id="c", name="f", args={"x": [1, None]}))
    await service.append_event(session, said("hello to the agent that answers"))
    content = types.Content(role="model", parts=[image, call])
    await service.append_event(session, Event(author="agent", content=content))
    again = await service.get_session(**WHO, session_id="s1")
    assert again == session
    assert again is not None
    assert again.last_update_time == session.events[-1].timestamp
    shown = service.session("app", "ann", "s1").messages()
    assert [it.role for it in shown][:2] == ["user", "assistant"]


@pytest.mark.on_a_server
async def test_state_is_kept_where_it_belongs(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    one = await service.create_session(**WHO, state={"app:x": 1, "user:y": True, "z": None})
    delta: Any = {"app:x": 2, "temp:t": "now", "d": {"k": [1]}, "f": False}
    kept = await service.append_event(one, said("hi", actions=EventActions(state_delta=delta)))
    assert one.state["temp:t"] == "now"
    assert "temp:t" not in kept.actions.state_delta
    again = await service.get_session(**WHO, session_id=one.id)
    assert again is not None
    assert again.state == {"app:x": 2, "user:y": True, "z": None, "d": {"k": [1]}, "f": False}
    await service.append_event(
        again, said("more", actions=EventActions(state_delta={"d": {"other": 1}}))
    )
    latest = await service.get_session(**WHO, session_id=one.id)
    assert latest is not None
    assert latest.state["d"] == {"other": 1}
    other = await service.create_session(app_name="app", user_id="bob")
    assert other.state == {"app:x": 2}
    assert await service.get_user_state(**WHO) == {"y": True}
    assert await service.get_user_state(app_name="none", user_id="x") == {}
    loose = await service.create_session(**WHO, state={"fn": print})
    assert isinstance(loose.state["fn"], str)


async def test_the_slower_of_two_writers_is_told(folder: Path) -> None:
    with stepwell.open(folder) as well:
        service = StepwellSessionService(well)
        one = await service.create_session(**WHO, session_id="s")
        other = await service.get_session(**WHO, session_id="s")
        assert other is not None
        results = await asyncio.gather(
            service.append_event(one, said("one")),
            service.append_event(other, said("other")),
            return_exceptions=True,
        )
        assert sorted(type(it).__name__ for it in results) == ["Event", "StaleSessionError"]
        fresh = await service.get_session(**WHO, session_id="s")
        assert fresh is not None
        assert len(fresh.events) == 1
        # A label is none of ADK's business.
        service.session("app", "ann", "s").label("mine")
        await service.append_event(fresh, said("three"))
        stale = one if isinstance(results[0], StaleSessionError) else other
        with pytest.raises(StaleSessionError):
            await service.append_event(stale, said("late"))


async def test_an_event_that_comes_again_is_kept_once(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    session = await service.create_session(**WHO)
    event = said("once")
    await service.append_event(session, event)
    await service.append_event(session, event.model_copy(deep=True))
    await service.append_event(session, said("part", partial=True))
    again = await service.get_session(**WHO, session_id=session.id)
    assert again is not None
    assert len(again.events) == 1


async def test_events_are_cut_as_the_config_says(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    session = await service.create_session(**WHO, session_id="n")
    for n in range(10):
        await service.append_event(session, said(str(n), timestamp=float(n)))

    async def texts(**config: Any) -> list[str]:
        found = await service.get_session(**WHO, session_id="n", config=GetSessionConfig(**config))
        assert found is not None
        assert found.last_update_time == 9.0
        return [it.content.parts[0].text for it in found.events]  # type: ignore[index,union-attr,misc]

    assert await texts(num_recent_events=2) == ["8", "9"]
    assert await texts(num_recent_events=0) == []
    assert await texts(after_timestamp=7.0) == ["7", "8", "9"]


@pytest.mark.on_a_server
async def test_lists_are_by_user_and_oldest_first(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    first = await service.create_session(**WHO, session_id="a", state={"k": 1})
    await service.create_session(**WHO, session_id="b")
    await service.create_session(app_name="app", user_id="bob", session_id="a")
    await service.create_session(app_name="app2", user_id="ann", session_id="c")
    await service.append_event(first, said("later"))
    listed = (await service.list_sessions(**WHO)).sessions
    assert [it.id for it in listed] == ["b", "a"]
    assert (listed[1].events, listed[1].state) == ([], {"k": 1})
    assert len((await service.list_sessions(app_name="app")).sessions) == 3
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**WHO, session_id="a")
    await service.delete_session(**WHO, session_id="a")
    assert await service.get_session(**WHO, session_id="a") is None
    assert await service.get_session(app_name="app", user_id="bob", session_id="a") is not None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(first, said("too late"))


@pytest.mark.on_a_server
async def test_artifacts_have_versions_and_each_content_once(well: stepwell.Well) -> None:
    service = StepwellArtifactService(well)
    place: Any = {**WHO, "session_id": "s"}
    png = types.Part(inline_data=types.Blob(data=b"\x00png", mime_type="image/png"))
    assert await service.save_artifact(**place, filename="a.png", artifact=png) == 0
    assert await service.save_artifact(**place, filename="a.png", artifact=png) == 1
    note = types.Part(text="a note")
    meta = {"by": "ann"}
    await service.save_artifact(**WHO, filename="user:n", artifact=note, custom_metadata=meta)
    assert await service.load_artifact(**place, filename="a.png", version=0) == png
    assert await service.load_artifact(**place, filename="user:n") == note
    assert await service.list_artifact_keys(**place) == ["a.png", "user:n"]
    assert await service.list_versions(**place, filename="a.png") == [0, 1]
    version = await service.get_artifact_version(**WHO, filename="user:n")
    assert version is not None
    assert (version.mime_type, version.custom_metadata) == ("text/plain", meta)
    await service.delete_artifact(**place, filename="a.png")
    assert await service.load_artifact(**place, filename="a.png") is None
    with pytest.raises(ValueError, match="Session ID"):
        await service.save_artifact(**WHO, filename="x", artifact=note)


@pytest.mark.on_a_server
async def test_memory_finds_what_a_user_said_and_nobody_else(well: stepwell.Well) -> None:
    service = StepwellSessionService(well)
    session = await service.create_session(**WHO)
    await service.append_event(session, said("my dog is called Rex"))
    other = await service.create_session(app_name="app", user_id="bob")
    await service.append_event(other, said("my dog is called Max"))
    memory = StepwellMemoryService(well)
    found = await memory.search_memory(**WHO, query="what is the dog called?")
    assert [it.content.parts[0].text for it in found.memories] == ["my dog is called Rex"]  # type: ignore[index]


async def test_every_version_of_an_artifact_that_was_acknowledged_is_there(folder: Path) -> None:
    texts = [f"text {number}" for number in range(6)]
    with stepwell.open(folder) as well:
        service = StepwellArtifactService(well)
        for round in range(10):
            place: Any = {"app_name": "app", "user_id": "u", "session_id": f"s{round}"}
            saves = [
                service.save_artifact(filename="f", artifact=types.Part(text=text), **place)
                for text in texts
            ]
            versions = await asyncio.gather(*saves)
            assert sorted(versions) == list(range(6))
            for version, text in zip(versions, texts, strict=True):
                part = await service.load_artifact(filename="f", version=version, **place)
                assert part is not None
                assert part.text == text


async def test_a_list_asks_the_store_as_often_for_many_sessions_as_for_few(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(core, name)

    with stepwell.open(folder) as well:
        service = StepwellSessionService(well)
        core = well.core
        for count in (3, 30):
            who: Any = {"app_name": f"app{count}", "user_id": "ann"}
            for number in range(count):
                session = await service.create_session(**who, session_id=f"s{number}")
                delta: Any = {"n": number, "app:x": count, "gone": None}
                event = said("hi", actions=EventActions(state_delta=delta))
                event.timestamp = 100.5 - number
                await service.append_event(session, event)
                service.session(who["app_name"], "ann", f"s{number}").label(f"l{count}.{number}")
            with monkeypatch.context() as patched:
                patched.setattr(well, "core", Counting())
                asked.clear()
                listed = (await service.list_sessions(**who)).sessions
                assert len(asked) == 3
            assert [it.id for it in listed] == [f"s{n}" for n in reversed(range(count))]
            whole = [await service.get_session(**who, session_id=it.id) for it in listed]
            for it, other in zip(listed, whole, strict=True):
                assert other is not None
                assert (it.state, it.last_update_time) == (other.state, other.last_update_time)
                assert it._storage_update_marker == other._storage_update_marker
                await service.append_event(it, said("from a list"))
