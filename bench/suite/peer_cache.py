"""Stored measurements of peers that take long: `bench/results/peers.json`, reused with `--peer-cache`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.plane import Load, Measured
from bench.suite.results import RESULTS

PEERS = RESULTS / "peers.json"


class Stored(msgspec.Struct, kw_only=True):
    """A run of a peer, and when it was."""

    date: str
    note: str = ""
    measured: Measured


class PeerCache:
    def __init__(self, file: Path = PEERS) -> None:
        self._file = file

    def find(self, contender: str, load: Load) -> Stored | None:
        """Return the stored run of a contender with this load."""
        sought = (contender, load.nodes, load.pods)
        return next((each for each in self._all() if _key(each) == sought), None)

    def store(self, measured: Measured) -> None:
        """Keep a run instead of an earlier one of the same contender and load."""
        new = Stored(date=datetime.now(UTC).strftime("%Y-%m-%d"), measured=measured)
        kept = [each for each in self._all() if _key(each) != _key(new)]
        text = msgspec.json.encode([*kept, new])
        self._file.write_bytes(msgspec.json.format(text, indent=1) + b"\n")

    def _all(self) -> list[Stored]:
        return msgspec.json.decode(self._file.read_bytes(), type=list[Stored]) if self._file.exists() else []


def _key(each: Stored) -> tuple[str, int, int]:
    return each.measured.contender, each.measured.nodes, each.measured.pods
