"""LangGraph's own conformance suite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")
from langgraph.checkpoint.conformance import checkpointer_test, validate

import stepwell
from stepwell.langgraph import StepwellSaver

PUBLISHED = 81
"""Tests that the published suite has."""


async def passes(well: stepwell.Well) -> None:
    """Runs all of the suite."""

    @checkpointer_test(name="stepwell")
    async def saver() -> AsyncIterator[StepwellSaver]:
        yield StepwellSaver(well)

    report = await validate(saver)
    failures = [it for result in report.results.values() for it in result.failures or ()]
    assert failures == []
    passed = sum(result.tests_passed for result in report.results.values())
    assert passed >= PUBLISHED


async def test_every_capability_conforms_in_a_folder(folder: Path) -> None:
    with stepwell.open(folder) as well:
        await passes(well)


async def test_every_capability_conforms_in_memory() -> None:
    with stepwell.memory() as well:
        await passes(well)


async def test_every_capability_conforms_on_a_server(server: str) -> None:
    with stepwell.open(server) as well:
        await passes(well)
