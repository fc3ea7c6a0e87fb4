"""The profiler endpoint, served in a thread of its own: it answers while the event loop of the program is blocked.

| path | answer |
|---|---|
| `/debug/profile?seconds=10&rate=100` | samples of all threads in the collapsed format, for speedscope |
| `/debug/threads` | the current stack of each thread |
| `/debug/tasks` | what the asyncio tasks wait for; equal ones are counted. `?collapsed` in the collapsed format |
| `/debug/heap` | sizes of the process, and the most frequent types of objects |
| `/debug/heap?seconds=10` | the lines that allocate most in ten seconds; slows the program meanwhile |

It has no access control: it listens on the loopback address unless another one is given.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from ostinato.http.server import SmallHttpServer
from ostinato.manager.serving.endpoints import Answer, Query, gets, parse_address
from ostinato.profiling.heap import allocations, summary
from ostinato.profiling.stacks import collapsed, listed, sample, task_stacks, thread_stacks
from ostinato.world import Thread, World

_LOOPBACK: Final = "127.0.0.1"
_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 600.0
_RATE: Final = 100.0  # samples a second
_MOST_RATE: Final = 1000.0
_STOP_SECONDS: Final = 1.0
_INDEX: Final = (
    "/debug/profile?seconds=10&rate=100\n/debug/threads\n/debug/tasks\n/debug/heap\n/debug/heap?seconds=10\n"
)
_BUSY: Final = Answer(409, "another profile is being recorded; try again later\n")

_logger = logging.getLogger("ostinato.manager")


class Profiler:
    """Started and stopped like an `Endpoint`."""

    name = "profiler"

    def __init__(self, address: str, world: World) -> None:
        """`address`: "host:port"; ":6060" listens on the loopback address."""
        self._host, self._port = parse_address(address)
        self._world = world
        self._server = SmallHttpServer(gets(self._answer), world.clock)
        self._thread: Thread[None] | None = None
        self._profiled: asyncio.AbstractEventLoop | None = None  # that of the program
        self._is_recording = False

    @property
    def port(self) -> int:
        """The listening port."""
        return self._server.address[1] or self._port

    async def start(self) -> None:
        """Start to listen. Raises OSError."""
        loop = self._profiled = asyncio.get_running_loop()
        listening: asyncio.Future[None] = loop.create_future()
        self._thread = self._world.executor.thread("profiler", lambda: self._serve(loop, listening))
        try:
            await listening
        except OSError as error:
            await self.stop()
            raise OSError(error.errno, f"cannot serve {self.name}: {error.strerror or error}") from None
        _logger.info("serving endpoint=%s host=%s port=%d", self.name, self._host or _LOOPBACK, self.port)

    async def stop(self) -> None:
        """Stop. No effect if it does not run."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
            await thread.join()

    # In the thread

    async def _serve(self, loop: asyncio.AbstractEventLoop, listening: asyncio.Future[None]) -> None:
        try:
            await self._server.start(self._host or _LOOPBACK, self._port)
        except OSError as error:
            loop.call_soon_threadsafe(listening.set_exception, error)
            return
        loop.call_soon_threadsafe(listening.set_result, None)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            with suppress(asyncio.CancelledError):
                await self._server.stop(_STOP_SECONDS)

    async def _answer(self, path: str, query: Query) -> Answer | None:
        try:
            return await self._profile(path, query)
        except _InvalidQueryError as error:
            return Answer(400, f"{error}\n")

    async def _profile(self, path: str, query: Query) -> Answer | None:
        match path:
            case "/debug/profile":
                rate = _number(query, "rate", _RATE, _MOST_RATE)
                return await self._recorded(self._samples(_number(query, "seconds", _SECONDS, _MOST_SECONDS), rate))
            case "/debug/threads":
                return Answer(200, listed(sorted(Counter(thread_stacks().values()).items())))
            case "/debug/tasks":
                assert self._profiled is not None
                stacks = task_stacks(self._profiled)
                text = collapsed(stacks) if "collapsed" in query else listed(stacks.most_common())
                return Answer(200, text)
            case "/debug/heap" if "seconds" in query:
                seconds = _number(query, "seconds", _SECONDS, _MOST_SECONDS)
                return await self._recorded(allocations(self._world.clock, seconds))
            case "/debug/heap":
                return Answer(200, summary())
            case "/" | "/debug":
                return Answer(200, _INDEX)
        return None

    async def _samples(self, seconds: float, rate: float) -> str:
        return collapsed(await sample(self._world.clock, seconds, rate))

    async def _recorded(self, recording: Coroutine[Any, Any, str]) -> Answer:
        """Return a recording, unless there is another one."""
        if self._is_recording:
            recording.close()
            return _BUSY
        self._is_recording = True
        try:
            return Answer(200, await recording)
        finally:
            self._is_recording = False


class _InvalidQueryError(ValueError):
    """A parameter is not a number in its range."""


def _number(query: Query, name: str, default: float, most: float) -> float:
    text = query.get(name, (str(default),))[0]
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number <= most:
        raise _InvalidQueryError(f"{name}: want a number greater than 0, at most {most:g}")
    return number
