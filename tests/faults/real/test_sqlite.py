"""A server process on SQLite, killed under load: nothing that it has acknowledged is lost, and no property is violated.

Each round prints its seed; `python -m tests.faults.real.sqlite_run --seed N` repeats it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.disk.journal import Layer, can_compile
from tests.faults.history.records import UNKNOWN
from tests.faults.history.violation import Violation
from tests.faults.real import defects
from tests.faults.real.failpoints import POINTS
from tests.faults.real.filled_store import fill
from tests.faults.real.sqlite_faults import DISK_FAULTS
from tests.faults.real.sqlite_run import Round, file_layer, server_on_sqlite

OPERATIONS = 120


async def _rounds(
    place: Path, faults: Sequence[str], first: int, defect: str = "", layer: Layer | None = None
) -> list[Round]:
    """One server, a round for each fault."""
    done = []
    async with server_on_sqlite(place, environment={defects.VARIABLE: defect}, layer=layer) as server:
        for seed, fault in enumerate(faults, first):
            one = Round(seed, server, fault, layer=layer)
            print(one)
            done.append(await one.run(OPERATIONS))
            await one.clean()
    return done


@pytest.mark.parametrize("part", range(2))
def test_kills_at_random_moments_violate_nothing(tmp_path: Path, part: int) -> None:
    rounds = asyncio.run(_rounds(tmp_path, ["kill"] * 7 + ["kill-in-start"], 100 * part))
    assert sum(one.victim.faults for one in rounds) == 9
    assert sum(one.acknowledged for one in rounds) > 100


def test_a_kill_at_each_boundary_of_a_commit_violates_nothing(tmp_path: Path) -> None:
    rounds = asyncio.run(_rounds(tmp_path, [f"kill-{point}" for point in POINTS], 200))
    assert sum(one.victim.faults for one in rounds) == len(POINTS)


def test_a_graceful_stop_and_a_frozen_server_violate_nothing(tmp_path: Path) -> None:
    asyncio.run(_rounds(tmp_path, ["terminate", "stop"], 402))


@pytest.mark.skipif(not can_compile(), reason="no C compiler")
def test_failing_disks_and_power_failures_violate_nothing(tmp_path: Path) -> None:
    rounds = asyncio.run(_rounds(tmp_path, list(DISK_FAULTS), 600, layer=file_layer(tmp_path)))
    outcomes = Counter(each.outcome for one in rounds for each in one.history.operations)
    assert outcomes[UNKNOWN] > 10


def test_a_large_store_is_whole_after_a_kill(tmp_path: Path) -> None:
    """`OSTINATO_OBJECTS=100000` for more."""
    objects = int(os.environ.get("OSTINATO_OBJECTS", "20000"))

    async def main() -> None:
        async with server_on_sqlite(tmp_path) as server:
            await server.kill()
            await fill(server.state / "store.db", objects)
            await server.start()
            one = Round(700, server, "kill")
            print(one)
            await one.run(OPERATIONS)
            status, data = await server.api.call("GET", "/api/v1/namespaces/default/secrets", "limit=1")
            assert status == 200
            assert json.loads(data)["metadata"]["remainingItemCount"] == objects - 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("defect", "properties"),
    [
        ("acknowledge-before-commit", {"S1", "S2", "S3", "S7", "W3", "W4"}),
        ("reuse-a-version", {"S3", "S4", "S6", "W1", "W2", "W4"}),
        ("drop-one-event", {"W3", "W4", "W6", "W8", "W11"}),
    ],
)
def test_a_broken_server_is_caught(tmp_path: Path, defect: str, properties: set[str]) -> None:
    with pytest.raises(Violation) as found:
        asyncio.run(_rounds(tmp_path, ["kill"] * 50, 500, defect))
    assert found.value.name in properties, str(found.value)
