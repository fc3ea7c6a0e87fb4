"""A short, seeded run of malformed bytes on the wire. `--fuzz N` opens N connections."""

from __future__ import annotations

import asyncio

import pytest

from tests.fuzz.wire import attack


def test_malformed_bytes_end_their_connection_and_leave_nothing_behind(request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--fuzz") or 150
    report = asyncio.run(attack(count, "default"))
    assert not report.faults, report.faults[0]
    assert report.connections >= count
