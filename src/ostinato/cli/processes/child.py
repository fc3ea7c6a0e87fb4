"""A process of `ostinato up`: `python -m ostinato.cli.processes.child PARTS DESCRIPTOR`.

It reports on its control socket when its parts run, or why they do not. It ends with the supervisor: the kernel kills
it, or, on systems that cannot, it notices the end of the socket.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from typing import Final

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.event_loop import loop_factory, tune_garbage_collection
from ostinato.cli.processes.attachment import Attachment, Begin, Failed, Ready, Report, encode
from ostinato.cli.processes.logs import logs

_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
_PIECE: Final = 1 << 16
_logger = logging.getLogger(__name__)


def main(descriptor: int) -> int:
    """`descriptor`: of the control socket."""
    control = socket.socket(fileno=descriptor)
    attachment = _attachment(control)
    _end_with(attachment.parent)
    gc.disable()  # until the parts run: collections take a tenth of the start-up time and free nothing
    for inherited in (descriptor, attachment.lock, attachment.listening):
        os.set_inheritable(inherited, False)  # noqa: FBT003
    component = ",".join(attachment.parts)
    with (
        logs(component, terminal=attachment.terminal, colour=attachment.colour),
        asyncio.Runner(loop_factory=loop_factory()) as runner,
    ):
        return runner.run(_serve(attachment, control))


def _attachment(control: socket.socket) -> Attachment:
    line = b""
    while not line.endswith(b"\n"):
        seen = control.recv(_PIECE, socket.MSG_PEEK)
        if not seen:
            os._exit(1)
        line += control.recv(seen.find(b"\n") + 1 or len(seen))  # the event loop reads what follows
    return msgspec.json.decode(line, type=Attachment)


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


async def _serve(attachment: Attachment, connection: socket.socket) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    control = _Control(*await asyncio.open_connection(sock=connection))
    # Imported here, so that a signal during the import only ends the process.
    from ostinato.cli.processes.running import Process  # noqa: PLC0415

    process = Process(attachment)
    try:
        starting = loop.create_task(process.start(control.begun))
        await _first(starting, stopping)
        if not starting.done():
            os._exit(0)  # to what has begun, this is like a crash
        url = starting.result()
        tune_garbage_collection()
        control.send(Ready(url=url))
        failing = loop.create_task(process.failed())
        try:
            await _first(failing, stopping)
            if failing.done():
                failing.result()
        finally:
            failing.cancel()
            await process.stop()
    except CommandError as error:
        control.send(Failed(message=str(error)))
        return 1
    except Exception as error:
        _logger.exception("process failed")
        control.send(Failed(message=f"{type(error).__name__}: {error}"))
        return 1
    return 0


async def _first(task: asyncio.Task[object], stopping: asyncio.Event) -> None:
    """Wait for a task, or for the signal to stop."""
    waiting = asyncio.get_running_loop().create_task(stopping.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


class _Control:
    """The control socket. At its end, the supervisor has ended, and so does this process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    async def begun(self) -> str:
        """Wait until the API server is ready, and return its URL."""
        return await self._begun

    def send(self, report: Report) -> None:
        self._writer.write(encode(report))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._begun.set_result(msgspec.json.decode(line, type=Begin).url)
        except OSError:
            pass
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[2])))
