"""What the tests share: a store in each form."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell


@pytest.fixture(params=["folder", "memory"])
def well(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[stepwell.Well]:
    """A store that is empty."""
    opened = stepwell.memory() if request.param == "memory" else stepwell.open(tmp_path / "store")
    with opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "store"


@pytest.fixture(scope="session")
def server() -> str:
    """The address of a PostgreSQL server, which the caller of the tests starts."""
    address = os.environ.get("STEPWELL_PYTHON_POSTGRES")
    if not address:
        pytest.skip("STEPWELL_PYTHON_POSTGRES names no server")
    return address
