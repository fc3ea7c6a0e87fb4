"""Process: a command in a container, with its standard streams over a WebSocket.

    async with await client.pods.exec("web-0", ["sh", "-c", "cat; exit 3"], stdin=True) as process:
        await process.write(b"hello")
        await process.close_stdin()
        async for output in process:
            print(output.stream, output.data)
        assert process.exit_code == 3

Each message begins with the number of its channel. The last one, on the error channel, is a Status with the exit code.
Output is read only as fast as it is consumed.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Literal, NamedTuple, Self

import msgspec

from ostinato.api.errors import APIError, InternalError, from_stream
from ostinato.client.transport.closable import AsyncClosable
from ostinato.client.transport.protocol import ConnectionLost, TransportError, WebSocket

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _RESIZE, _CLOSE = 0, 4, 255
_OUTPUT: Final[dict[bytes, Literal["stdout", "stderr"]]] = {b"\x01": "stdout", b"\x02": "stderr"}
_ERROR: Final = b"\x03"
_MAX_MESSAGE: Final = 32 * 1024  # bytes of input; the limit of servers depends on the container runtime
_NON_ZERO: Final = "NonZeroExitCode"


class Output(NamedTuple):
    stream: Literal["stdout", "stderr"]
    data: bytes


class Completed(NamedTuple):
    """Exit code and output of a command."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Process(AsyncClosable):
    """A command in a container. Iterate over its output; `exit_code` is set at its end."""

    def __init__(self, socket: WebSocket, about: str) -> None:
        self._socket = socket
        self._about = about
        self.exit_code: int | None = None  # None while it runs

    async def write(self, data: bytes) -> None:
        """Write to standard input. Requires `stdin=True`."""
        for start in range(0, len(data), _MAX_MESSAGE):
            await self._socket.send(bytes((_STDIN,)) + data[start : start + _MAX_MESSAGE])

    async def close_stdin(self) -> None:
        """Close standard input. Raises NotImplementedError with servers before 1.30."""
        self._check_input_ends()
        await self._socket.send(bytes((_CLOSE, _STDIN)))

    def _check_input_ends(self) -> None:
        if self._socket.protocol != PROTOCOLS[0]:
            raise NotImplementedError(
                f"{self._about}: {self._socket.protocol} of the server cannot close stdin; it requires {PROTOCOLS[0]}"
            )

    async def resize(self, width: int, height: int) -> None:
        """Set the size of the terminal, in characters."""
        size = msgspec.json.encode({"Width": width, "Height": height})
        await self._socket.send(bytes((_RESIZE,)) + size)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Output:
        """Wait for output. Raises `APIError` if the command was not run, `ConnectionLost` if its end is unknown."""
        while self.exit_code is None:
            message = await self._socket.receive()
            if message is None:
                raise ConnectionLost(f"{self._about}: the connection ended before the command did")
            stream, data = message[:1], message[1:]
            if not data:  # the server opens each channel with an empty message
                continue
            if stream == _ERROR:
                self.exit_code = self._ended(data)
            elif stream in _OUTPUT:
                return Output(_OUTPUT[stream], data)
        await self.close()
        raise StopAsyncIteration

    async def communicate(self, stdin: bytes) -> Completed:
        """Write the input and collect the output concurrently, to prevent a deadlock."""
        self._check_input_ends()
        writing = asyncio.ensure_future(self._feed(stdin))
        try:
            return await self.complete()
        finally:
            writing.cancel()
            with contextlib.suppress(
                asyncio.CancelledError, TransportError
            ):  # a command may end without reading its input
                await writing

    async def _feed(self, stdin: bytes) -> None:
        await self.write(stdin)
        await self.close_stdin()

    async def complete(self) -> Completed:
        """Wait for the end of the command, and collect its output."""
        parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        async for output in self:
            parts[output.stream].append(output.data)
        assert self.exit_code is not None
        return Completed(self.exit_code, b"".join(parts["stdout"]), b"".join(parts["stderr"]))

    def _ended(self, data: bytes) -> int:
        """Return the exit code in the Status. Raises the error of a command that was not run."""
        error = from_stream(data)
        if error.status.status == "Success":
            return 0
        code = _exit_code(error)
        if code is None:
            raise error
        return code

    async def close(self) -> None:
        """Close the connection. The command may continue to run."""
        await self._socket.close()


def _exit_code(error: APIError) -> int | None:
    if error.reason != _NON_ZERO:
        return None
    for cause in error.causes:
        if cause.reason == "ExitCode" and cause.message.isdecimal():
            return int(cause.message)
    raise InternalError.of(f"no exit code in the Status of the command: {error.message}")
