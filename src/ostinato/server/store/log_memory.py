"""In-memory log: keeps nothing, for tests and ephemeral clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ostinato.server.store.records import Write


class MemoryLog:
    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return 0, iter(())

    async def append(self, writes: Sequence[Write]) -> None:
        """Nothing to do: the index has everything."""

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        """Nothing to close."""
