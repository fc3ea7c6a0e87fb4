"""Operators through an ordeal: whatever happens, all is as wanted soon after it has stopped."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.faults.ordeal import Ordeal, Tracebacks


@pytest.fixture
def tracebacks() -> Iterator[list[str]]:
    handler, logger = Tracebacks(), logging.getLogger("ostinato")
    logger.addHandler(handler)
    yield handler.found
    logger.removeHandler(handler)


@pytest.mark.parametrize("seed", range(8))
def test_after_all_faults_the_state_converges_and_only_leaders_wrote(seed: int, tracebacks: list[str]) -> None:
    ordeal = Ordeal(seed, seconds=90, trouble=(0.02, 0.15, 0.3)[seed % 3]).run()
    assert ordeal.log
    assert ordeal.overlaps() == []
    assert ordeal.unexpected == []
    assert tracebacks == []
