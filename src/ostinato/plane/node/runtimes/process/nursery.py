"""The nursery: the one shim of a runtime, from which the keepers of all containers are forked."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.world import Clock

_SHIM: Final = Path(__file__).with_name("shim.py")
_PATIENCE: Final = 30.0  # seconds that a keeper may take to begin


class NurseryError(Exception):
    """No keeper answered."""


class Nursery:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}  # by directory
        self._lock = asyncio.Lock()

    async def keep(self, directory: Path) -> dict[str, Any]:
        """Start the container of a directory; what its keeper answers. A `NurseryError` if none does."""
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[str(directory)] = answered
        try:
            process = await self._shim()
            assert process.stdin is not None
            process.stdin.write(os.fsencode(directory) + b"\n")
            async with self._clock.timeout(_PATIENCE):
                await process.stdin.drain()
                return await answered
        except (OSError, TimeoutError) as error:
            raise NurseryError(f"the shim does not answer: {str(error) or 'it takes too long'}") from None
        finally:
            self._waiting.pop(str(directory), None)

    async def _shim(self) -> asyncio.subprocess.Process:
        async with self._lock:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(_SHIM)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=None,
                    start_new_session=True,
                    cwd="/",
                    env={},
                )
                self._reading = asyncio.get_running_loop().create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            with suppress(msgspec.DecodeError):
                said = msgspec.json.decode(line, type=dict[str, Any])
                waiting = self._waiting.get(said.get("directory", ""))
                if waiting is not None and not waiting.done():
                    waiting.set_result(said)
        for each in self._waiting.values():
            if not each.done():
                each.set_exception(OSError("it has ended"))
