"""Attach server of a container, on the socket `attach` of its directory. Part of the shim.

Both directions carry frames: type (1 byte), length (4 bytes), payload. To the client: 1 is stdout, 2 is stderr. From
the client: 0 is stdin, 3 closes stdin, 4 is a new terminal size. A client that reads too slowly is disconnected; the
container is never blocked by one.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
from contextlib import suppress

from shim import peers  # type: ignore[import-not-found]

_HEAD = struct.Struct("!BI")
_BACKLOG = 4 << 20  # bytes buffered for a client
_INPUT = 1 << 20  # bytes buffered for the container's stdin


class AttachServer:
    def __init__(self, stdin: int | None, tty: bool, once: bool, terminal: int) -> None:
        self._stdin = stdin
        self._tty = terminal if tty else None
        self._once = once
        self._pending = bytearray()  # stdin data not yet written to the container
        self._closing = False  # close stdin once nothing is pending
        self._clients: dict[int, _Client] = {}
        self._listener = peers.listen("attach")
        if stdin is not None:
            os.set_blocking(stdin, False)

    def register(self, poll: select.poll) -> None:
        poll.register(self._listener.fileno(), select.POLLIN)
        for descriptor, client in self._clients.items():
            wanted = select.POLLOUT if client.waiting else 0
            poll.register(descriptor, wanted | (select.POLLIN if len(self._pending) < _INPUT else 0))
        if self._stdin is not None and self._pending:
            poll.register(self._stdin, select.POLLOUT)

    def handle(self, descriptor: int) -> None:
        if descriptor == self._listener.fileno():
            accepted = peers.accept(self._listener)
            if accepted is not None:
                self._clients[accepted.fileno()] = _Client(accepted)
        elif descriptor == self._stdin:
            self._feed()
        elif (client := self._clients.get(descriptor)) is not None:
            self._serve(client)

    def send(self, stream: int, data: bytes) -> None:
        """Send output to all attached clients."""
        for client in list(self._clients.values()):
            client.waiting += _HEAD.pack(stream, len(data)) + data
            if not client.flush() or len(client.waiting) > _BACKLOG:
                self._drop(client)

    def close(self) -> None:
        for client in list(self._clients.values()):
            client.connection.settimeout(1.0)
            with suppress(OSError):
                client.connection.sendall(bytes(client.waiting))
            self._drop(client)
        self._listener.close()
        with suppress(OSError):
            os.unlink("attach")

    def _serve(self, client: _Client) -> None:
        if not client.flush():
            self._drop(client)
            return
        frames = client.read()
        for what, data in frames or ():
            if what == 0 and self._stdin is not None and not self._closing:
                self._pending += data
            elif what == 3:
                self._close_input()
            elif what == 4 and self._tty is not None and len(data) == 4:
                width, height = struct.unpack("!HH", data)
                with suppress(OSError):
                    fcntl.ioctl(self._tty, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self._feed()
        if frames is None:
            self._drop(client)
            if self._once:
                self._close_input()

    def _feed(self) -> None:
        if self._stdin is None:
            return
        try:
            while self._pending:
                del self._pending[: os.write(self._stdin, self._pending)]
        except BlockingIOError:
            return
        except OSError:
            self._pending.clear()
            self._closing = True
        if self._closing:
            os.close(self._stdin)
            self._stdin = None

    def _close_input(self) -> None:
        if self._tty is not None:
            return  # a terminal signals end of input with a character
        self._closing = True
        self._feed()

    def _drop(self, client: _Client) -> None:
        self._clients.pop(client.connection.fileno(), None)
        client.connection.close()


class _Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waiting = bytearray()  # output not yet sent to the client
        self._received = bytearray()

    def flush(self) -> bool:
        """Send buffered output; return whether the client is still connected."""
        try:
            while self.waiting:
                del self.waiting[: self.connection.send(self.waiting)]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def read(self) -> list[tuple[int, bytes]] | None:
        """Return received frames; None if the client has disconnected."""
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self._received += data
        frames = []
        while len(self._received) >= _HEAD.size:
            what, length = _HEAD.unpack_from(self._received)
            if length > _INPUT:
                return None
            if len(self._received) < _HEAD.size + length:
                break
            frames.append((what, bytes(self._received[_HEAD.size : _HEAD.size + length])))
            del self._received[: _HEAD.size + length]
        return frames
