"""The script that builds the wheel, with stand-ins for the programs that take long."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"

CARGO = """#!/bin/sh
mkdir -p "$CARGO_TARGET_DIR/dist"
echo "the command" >"$CARGO_TARGET_DIR/dist/stepwell"
"""

MATURIN = """#!/bin/sh
mkdir -p ../target/wheels
cp stepwell.data/scripts/stepwell ../target/wheels/packed
echo "$@" >../target/wheels/asked
"""


def test_the_command_is_in_the_wheel_and_not_left_in_the_tree(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "python" / "stepwell.data").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    script = shutil.copy(SCRIPTS / "wheel", tmp_path / "scripts")
    for name, text in (("cargo", CARGO), ("maturin", MATURIN)):
        program = tmp_path / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    built = {"PATH": path, "CARGO_TARGET_DIR": str(tmp_path / "built")}
    subprocess.run([script, "--zig"], check=True, env={**os.environ, **built}, cwd="/")
    wheels = tmp_path / "target" / "wheels"
    assert (wheels / "packed").read_text() == "the command\n"
    assert (wheels / "asked").read_text() == "build --profile dist --out ../target/wheels --zig\n"
    # A wheel that pip builds of the same folder afterwards is the library alone.
    assert not (tmp_path / "python" / "stepwell.data" / "scripts").exists()
