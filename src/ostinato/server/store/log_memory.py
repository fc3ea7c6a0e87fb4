"""A log that keeps nothing: for tests and for planes that need not outlive their process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ostinato.server.store.index import Write


class MemoryLog:
    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return 0, iter(())

    async def append(self, writes: Sequence[Write]) -> None:
        """Nothing to do: the index holds it all."""

    def close(self) -> None:
        """Nothing to close."""
