"""Tests of a framework's own store that no other store can pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest


def expect_failures(items: Iterable[pytest.Item], apart: Mapping[str, str]) -> None:
    """These tests fail, for the reason that stands behind each name; one that passes is told."""
    for item in items:
        name = item.name.split("[", 1)[0]
        if name in apart:
            item.add_marker(pytest.mark.xfail(reason=apart[name], strict=True))
