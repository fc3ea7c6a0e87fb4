"""What is closed where an `async with` ends, whichever way it ends: at once, or when closing has been waited for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closable(ABC):
    """Closed at once."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Harmless when it is closed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncClosable(ABC):
    """Closed by something that takes time, such as a farewell to the server."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Harmless when it is closed."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
