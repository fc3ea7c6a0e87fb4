"""A short, seeded run of malformed requests. `--fuzz N` sends N of them."""

from __future__ import annotations

import pytest

from tests.fuzz.requests import fuzz


def test_malformed_requests_are_answered_without_a_fault_of_the_server(request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--fuzz") or 1500
    report = fuzz(count, "default")
    assert not report.faults, report.faults[0]
    assert report.requests >= count
    assert len(report.answers) >= 8  # of many sorts
