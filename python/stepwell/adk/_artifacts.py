"""ADK's artifacts in Stepwell."""

from __future__ import annotations

import os
import time
from typing import Any

from google.adk.artifacts.base_artifact_service import (
    ArtifactVersion,
    BaseArtifactService,
    ensure_part,
)
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from stepwell._async import run
from stepwell._keyed import Entry, Keyed
from stepwell._names import escaped, joined, unescaped
from stepwell._names import session_id as name_of
from stepwell._well import Well, well_of
from stepwell.errors import ConflictError

SYSTEM = "adk-artifacts"
_SEP = "\x1f"


class StepwellArtifactService(BaseArtifactService):
    """Keeps artifacts and all their versions, each content once."""

    def __init__(self, store: Well | str | os.PathLike[str] = ".stepwell") -> None:
        self.well = well_of(store)

    def _keyed(self, app_name: str, user_id: str, session_id: str | None) -> Keyed:
        parts = (app_name, user_id, session_id) if session_id else (app_name, user_id)
        session = name_of(SYSTEM, *parts)
        return Keyed(self.well, session, SYSTEM, joined(*parts))

    def _place(self, app_name: str, user_id: str, filename: str, session_id: str | None) -> Keyed:
        if filename.startswith("user:"):
            return self._keyed(app_name, user_id, None)
        if session_id is None:
            raise InputValidationError("Session ID must be provided for session-scoped artifacts.")
        return self._keyed(app_name, user_id, session_id)

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Keeps a new version. Returns its number, from 0 on."""
        keyed = self._place(app_name, user_id, filename, session_id)
        part = ensure_part(artifact)
        return await run(self._save, keyed, filename, part, custom_metadata or {})

    def _save(self, keyed: Keyed, filename: str, part: types.Part, metadata: dict[str, Any]) -> int:
        data, told = b"", part.model_dump(mode="json", exclude_none=True)
        if part.inline_data is not None:
            data, mime = part.inline_data.data or b"", part.inline_data.mime_type
            told["inline_data"].pop("data", None)
        elif part.text is not None:
            data, mime = part.text.encode(), "text/plain"
            told.pop("text")
        elif part.file_data is not None:
            mime = part.file_data.mime_type
        else:
            raise InputValidationError("Not supported artifact type.")
        value = {"part": told, "mime": mime, "meta": metadata, "time": time.time()}
        while True:
            last = keyed.last_seq()
            if not last:
                # Of several first saves at once, each has to see what the others keep.
                keyed.make()
                continue
            version = len(self._versions(keyed, filename))
            key = f"{escaped(filename)}{_SEP}{version:08}"
            text = part.text if part.text is not None else filename
            kept = keyed.record("artifact", key, value, text=text, attach=[0] if data else [])
            try:
                keyed.write([kept], attachments=[data] if data else [], expected=last)
            except ConflictError:
                continue
            return version

    def _versions(self, keyed: Keyed, filename: str) -> list[Entry]:
        return keyed.every("artifact", f"{escaped(filename)}{_SEP}")

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """A version, or the last one."""
        keyed = self._place(app_name, user_id, filename, session_id)
        return await run(self._load, keyed, filename, version)

    def _load(self, keyed: Keyed, filename: str, version: int | None) -> types.Part | None:
        found = self._version(keyed, filename, version)
        if found is None:
            return None
        data = self.well.core.blobs(found.blobs)[0] if found.blobs else b""
        told = found.value["part"]
        if "inline_data" in told:
            part = types.Part.model_validate(told)
            assert part.inline_data is not None
            part.inline_data.data = data
            return part
        if found.value["mime"] == "text/plain" and "file_data" not in told:
            told = {**told, "text": data.decode()}
        return types.Part.model_validate(told)

    def _version(self, keyed: Keyed, filename: str, version: int | None) -> Entry | None:
        versions = self._versions(keyed, filename)
        if version is None:
            return versions[-1] if versions else None
        return versions[version] if -len(versions) <= version < len(versions) else None

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """The names of a session's artifacts and of its user's."""
        places = [self._keyed(app_name, user_id, None)]
        if session_id is not None:
            places.append(self._keyed(app_name, user_id, session_id))
        found: set[str] = set()
        for keyed in places:
            entries = await run(keyed.every, "artifact")
            found |= {unescaped(entry.key.rsplit(_SEP, 1)[0]) for entry in entries}
        return sorted(found)

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Erases an artifact with all its versions."""
        keyed = self._place(app_name, user_id, filename, session_id)
        seqs = [entry.seq for entry in await run(self._versions, keyed, filename)]
        if seqs:
            await run(keyed.write, [], erase=seqs, rule="adk artifact deleted")

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The numbers of an artifact's versions."""
        keyed = self._place(app_name, user_id, filename, session_id)
        return list(range(len(await run(self._versions, keyed, filename))))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """What is known of each version."""
        keyed = self._place(app_name, user_id, filename, session_id)
        return [_told(entry) for entry in await run(self._versions, keyed, filename)]

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """What is known of one version."""
        keyed = self._place(app_name, user_id, filename, session_id)
        found = await run(self._version, keyed, filename, version)
        return None if found is None else _told(found)


def _told(entry: Entry) -> ArtifactVersion:
    name, number = entry.key.rsplit(_SEP, 1)
    digest = entry.blobs[0].hex() if entry.blobs else ""
    return ArtifactVersion(
        version=int(number),
        canonical_uri=f"stepwell://{unescaped(name)}/{int(number)}#{digest}",
        custom_metadata=entry.value["meta"],
        create_time=entry.value["time"],
        mime_type=entry.value["mime"],
    )
