"""A server without durability: nothing is synced to disk, and its state outlives the process all the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.stage.server import standalone_server


@pytest.mark.parametrize("durable", [True, False])
def test_only_a_durable_server_syncs_its_files(
    durable: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    async def start() -> str:
        async with standalone_server(tmp_path / "state", store="", durable=durable) as server:
            assert server.core is not None
            return server.core.index.collections["namespaces"].entries["default"].uid

    assert asyncio.run(start()) == asyncio.run(start())
    assert bool(synced) is durable
