"""A process under supervision: started, restarted when it ends, stopped.

- The first start must succeed; its failure ends the supervision, with the message of the process.
- Later, a process that ends is restarted: after `_FIRST_DELAY` seconds, twice as long each time up to `_MAX_DELAY`, and
  from the beginning once it has run for `_STABLE` seconds.
- It is the leader of a process group: signals of the terminal reach only the supervisor.
- It ends with the supervisor; see `child`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.processes.attachment import Attachment, Begin, Failed, Ready, Report, encode
from ostinato.cli.processes.log_relay import relay_pipe
from ostinato.world import Clock

_FIRST_DELAY: Final = 0.1  # seconds, as those below
_MAX_DELAY: Final = 30.0
_STABLE: Final = 60.0
_STOP: Final = 40.0  # after SIGTERM, before SIGKILL: components may take 30 to finish their work
_LAST_LOGS: Final = 1.0  # for the last lines of a process that has ended, if programs that it started keep its log open
_MODULE: Final = "ostinato.cli.processes.child"
_logger = logging.getLogger(__name__)

Attach = Callable[[], Attachment]
"""Returns the first message to the process."""


class SupervisedProcess:
    """Call `run` once, then `stop`."""

    def __init__(
        self,
        name: str,
        attach: Attach,
        clock: Clock,
        *,
        api_server: Callable[[], Awaitable[str]] | None = None,
        lost: str = "",
    ) -> None:
        """
        - `name`: its parts.
        - `api_server`: waits for the API server and returns its URL. Defaults to None, for the API server itself.
        - `lost`: why the process cannot be restarted. Defaults to "": it can.
        """
        self.name = name
        self._attach = attach
        self._api_server = api_server
        self._lost = lost
        self._clock = clock
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()  # `run` does not run
        self._idle.set()
        self._ready = asyncio.Event()
        self._was_ready = False
        self._url = ""
        self._message = ""  # why the process ended, in its own words

    async def ready(self) -> str:
        """Wait until the parts run, and return the URL that the process reported."""
        await self._ready.wait()
        return self._url

    async def run(self) -> None:
        """Keep the process running until `stop`. CommandError if the first start fails."""
        self._idle.clear()
        try:
            await self._keep_running()
        finally:
            self._idle.set()

    async def _keep_running(self) -> None:
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            reason = await self._run_once()
            if self._stopping.is_set():
                return
            if not self._was_ready:
                raise CommandError(self._message or f"the process of {self.name} {reason}; see the log")
            if self._lost:
                raise CommandError(f"the process of {self.name} {reason}, and {self._lost}")
            if self._clock.monotonic() - began >= _STABLE:
                delay = _FIRST_DELAY
            _logger.error(
                "process ended, restarting component=%s reason=%s restart_seconds=%g",
                self.name,
                msgspec.json.encode(self._message or reason).decode(),
                delay,
            )
            with suppress(TimeoutError):
                async with self._clock.timeout(delay):
                    await self._stopping.wait()
            delay = min(delay * 2, _MAX_DELAY)

    async def stop(self) -> None:
        """Stop the process: SIGTERM, and SIGKILL if it does not end. A start that is under way is stopped, too."""
        self._stopping.set()
        await self._idle.wait()

    async def _run_once(self) -> str:
        """Run the process until it ends; return how it ended."""
        self._message = ""
        ours, theirs = socket.socketpair()
        log, its_log = os.pipe()  # not one of asyncio: that would delay `wait` until all programs with this log end
        try:
            with theirs, open(its_log, "wb"):  # noqa: ASYNC230 - descriptors
                process = await self._create(ours, theirs, its_log)
        except OSError as error:  # no memory, no more processes
            ours.close()
            os.close(log)
            return f"did not start: {error}"
        reader, writer = await asyncio.open_connection(sock=ours)
        loop = asyncio.get_running_loop()
        beginning = loop.create_task(self._begin(writer))
        ending = loop.create_task(self._end(process))
        logs = loop.create_task(relay_pipe(log))
        try:
            await self._listen(reader)
            code = await process.wait()
            with suppress(TimeoutError):
                async with self._clock.timeout(_LAST_LOGS):
                    await logs
        finally:
            self._ready.clear()
            for task in (beginning, ending, logs):
                task.cancel()
            writer.close()
            _kill(process)
        return f"ended with {_signal(-code)}" if code < 0 else f"ended with exit code {code}"

    async def _create(self, ours: socket.socket, theirs: socket.socket, log: int) -> asyncio.subprocess.Process:
        attachment = self._attach()
        ours.sendall(encode(attachment))
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", _MODULE),  # -P: no modules of the working directory
            *(self.name, str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[theirs.fileno(), attachment.lock, attachment.listening],
            process_group=0,
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End the process after `stop`."""
        await self._stopping.wait()
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with self._clock.timeout(_STOP):
                await process.wait()
        _kill(process)

    async def _begin(self, writer: asyncio.StreamWriter) -> None:
        """Let components start when the API server is ready."""
        if self._api_server is not None:
            url = await self._api_server()
            writer.write(encode(Begin(url=url)))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Handle the reports of the process until it closes its socket."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                match msgspec.json.decode(line, type=Report):
                    case Ready(url=url):
                        self._url, self._was_ready = url, True
                        self._ready.set()
                    case Failed(message=message):
                        self._message = message


def _kill(process: asyncio.subprocess.Process) -> None:
    """Send SIGKILL, if the process runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def is_alive(pid: int) -> bool:
    """Whether a process with this pid exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
