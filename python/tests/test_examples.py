"""Every example runs, offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "python").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 9


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
    command = [sys.executable, str(example), str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, env=clean, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
