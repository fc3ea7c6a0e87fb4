"""Base classes of objects that `async with` closes, with a synchronous or an asynchronous `close()`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closable(ABC):
    """Closed synchronously."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Close. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncClosable(ABC):
    """Closed asynchronously, e.g. with a close frame to the server."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Close. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
