"""Moving over from another session service of ADK."""

from __future__ import annotations

from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.sessions.base_session_service import BaseSessionService

from stepwell.adk._sessions import StepwellSessionService


async def copy_sessions(
    source: BaseSessionService, target: StepwellSessionService, app_name: str
) -> int:
    """Copies an app's sessions from another service: `SqliteSessionService`,
    `DatabaseSessionService`, or any other. Sessions that the target has are left.

    Returns how many sessions were copied.
    """
    copied = 0
    for listed in (await source.list_sessions(app_name=app_name)).sessions:
        who: Any = {"app_name": app_name, "user_id": listed.user_id, "session_id": listed.id}
        found = await source.get_session(**who)
        if found is None:
            continue
        changed = {name for it in found.events for name in it.actions.state_delta}
        first = {name: value for name, value in found.state.items() if name not in changed}
        try:
            made = await target.create_session(**who, state=first)
        except AlreadyExistsError:
            continue
        for event in found.events:
            await target.append_event(made, event.model_copy(deep=True))
        copied += 1
    return copied
