"""The script that builds the wheel, with stand-ins for the programs that take long."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

CARGO = """#!/bin/sh
mkdir -p "$CARGO_TARGET_DIR/dist"
echo "the command" >"$CARGO_TARGET_DIR/dist/stepwell"
"""

MATURIN = """#!/bin/sh
mkdir -p ../target/wheels
cp stepwell.data/scripts/stepwell ../target/packed
echo "$@" >../target/asked
touch "../target/wheels/stepwell-1-cp310-abi3-$WHEEL_TAG.whl"
"""

AUDITWHEEL = """#!/bin/sh
test -f "$2" || exit 2
echo "$(basename "$2") is consistent with"
echo 'the following platform tag: "manylinux_2_28_x86_64".'
echo 'This constrains the platform tag to "manylinux_2_28_x86_64".'
"""

UNAME = "#!/bin/sh\necho Linux\n"


def ran(tmp_path: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """The script in a folder of its own, when maturin names the wheel so."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "python" / "stepwell.data").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    script = shutil.copy(SCRIPTS / "wheel", tmp_path / "scripts")
    programs = {"cargo": CARGO, "maturin": MATURIN, "auditwheel": AUDITWHEEL, "uname": UNAME}
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    built = {"PATH": path, "CARGO_TARGET_DIR": str(tmp_path / "built"), "WHEEL_TAG": tag}
    return subprocess.run(
        [script, "--zig"], env={**os.environ, **built}, cwd="/", capture_output=True, text=True
    )


def test_the_command_is_in_the_wheel_and_not_left_in_the_tree(tmp_path: Path) -> None:
    done = ran(tmp_path, "manylinux_2_28_x86_64")
    assert done.returncode == 0, done.stderr
    assert "needs glibc 2.28" in done.stdout
    target = tmp_path / "target"
    assert (target / "packed").read_text() == "the command\n"
    assert (target / "asked").read_text() == "build --profile dist --out ../target/wheels --zig\n"
    # A wheel that pip builds of the same folder afterwards is the library alone.
    assert not (tmp_path / "python" / "stepwell.data" / "scripts").exists()


@pytest.mark.parametrize("tag", ["manylinux_2_17_x86_64.manylinux2014_x86_64", "linux_x86_64"])
def test_a_wheel_that_promises_more_than_it_holds_is_refused(tmp_path: Path, tag: str) -> None:
    done = ran(tmp_path, tag)
    assert done.returncode == 1
    assert "is named for other systems than it runs on" in done.stderr
    assert "manylinux_2_28_x86_64" in done.stderr


def test_a_wheel_may_run_on_older_systems_than_it_is_named_for(tmp_path: Path) -> None:
    assert ran(tmp_path, "manylinux_2_34_x86_64").returncode == 0
