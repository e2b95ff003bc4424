"""What the tests share: a store in each form."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepwell


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where the store of a test is. On a server are those that the mark `on_a_server` names, and
    with STEPWELL_PYTHON_SERVER, as in the long form, all."""
    if "well" in metafunc.fixturenames:
        places = ["folder", "memory"]
        marked = metafunc.definition.get_closest_marker("on_a_server") is not None
        if marked or os.environ.get("STEPWELL_PYTHON_SERVER"):
            places.append("server")
        metafunc.parametrize("well", places, indirect=True)


@pytest.fixture
def well(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[stepwell.Well]:
    """A store that is empty."""
    if request.param == "memory":
        opened = stepwell.memory()
    elif request.param == "server":
        opened = stepwell.open(request.getfixturevalue("server"))
    else:
        opened = stepwell.open(tmp_path / "store")
    with opened:
        yield opened


@pytest.fixture(autouse=True)
def each_saver_reads_for_itself(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests look at what is stored by a saver that has not seen it. Savers of one store remember
    together otherwise: the mark `shared_memory` lets them."""
    site = sys.modules.get("stepwell.langgraph._site")
    if site is not None and request.node.get_closest_marker("shared_memory") is None:
        memory = site.Memory
        saver = "stepwell.langgraph._saver.memory_of"
        monkeypatch.setattr(saver, lambda well, serde, transcript, size: memory(size))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "store"


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a PostgreSQL server of our own, in a scratch folder."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    path = os.pathsep.join([os.environ["PATH"], *map(str, reversed(programs))])
    initdb, postgres = shutil.which("initdb", path=path), shutil.which("postgres", path=path)
    if initdb is None or postgres is None:
        if os.environ.get("STEPWELL_CHECK"):
            pytest.fail("PostgreSQL's programs were not found")
        pytest.skip("PostgreSQL's programs were not found")
    folder = Path(tempfile.mkdtemp(prefix="stepwell-python-"))
    data = folder / "data"
    # A server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    make = [*user, initdb, "-D", str(data), "-U", "stepwell", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*make, "--no-sync"], check=True, capture_output=True, cwd=folder)
    run = [*user, postgres, "-D", str(data), "-p", str(port), "-k", str(folder)]
    run += ["-c", "listen_addresses=127.0.0.1"]
    with open(folder / "log", "w") as log:
        running = subprocess.Popen(run, stdout=log, stderr=log, cwd=folder)
    try:
        address = f"postgres://stepwell@127.0.0.1:{port}/postgres"
        until = time.monotonic() + 60
        while True:
            try:
                stepwell.open(address).close()
                break
            except stepwell.StepwellError:
                if time.monotonic() > until:
                    raise
        yield address
    finally:
        running.terminate()
        running.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server(cluster: str, request: pytest.FixtureRequest) -> str:
    """A namespace of its own on that server."""
    return f"{cluster}?namespace=n{abs(hash(request.node.nodeid)) % 10**9}"
