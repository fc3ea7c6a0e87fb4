"""Commands that are run in a container, by the socket `exec` of its directory. Part of the shim.

A connection is a command. The client sends a line of JSON, `{"command": [...], "tty": false}`, with the descriptors of
standard input, output and error; with a terminal, none. It is answered `{"error": "..."}`, or `{}` once the command
runs, with the descriptor of its terminal if it has one; and `{"code": 0}` when it has ended. A client that closes the
connection before that ends the command. Commands are children of the keeper, in all of the container's namespaces and
control groups, so nothing of them outlasts the container.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any

from shim import container, peers  # type: ignore[import-not-found]

_LONGEST = 1 << 20  # bytes of a request
_STREAMS = 3


class Executions:
    def __init__(self, launch: dict[str, Any], first: int | None) -> None:
        """`first`: the pidfd of the container's first process, if it is isolated."""
        self._launch = launch
        self._first = first
        self._listener = peers.listen("exec")
        self._clients: dict[int, _Client] = {}  # by descriptors: of the connection, and of what the command reports

    def register(self, poll: select.poll) -> None:
        poll.register(self._listener.fileno(), select.POLLIN)
        for descriptor in self._clients:
            poll.register(descriptor, select.POLLIN)

    def handle(self, descriptor: int) -> bool:
        """Whether it is one of these."""
        if descriptor == self._listener.fileno():
            accepted = peers.accept(self._listener)
            if accepted is not None:
                self._clients[accepted.fileno()] = _Client(accepted)
            return True
        client = self._clients.get(descriptor)
        if client is None:
            return False
        if client.child is not None and descriptor == client.report:
            self._began(client)
        elif client.child is None and not client.requested:
            self._read(client)
        elif not client.is_there():
            client.kill()
            self._forget(client)
        return True

    def ended(self, pid: int, code: int) -> None:
        """A child of the keeper has."""
        for client in {*self._clients.values()}:
            if client.child is not None and client.child.pid == pid:
                if client.report is not None:
                    self._began(client)
                if client.connection.fileno() in self._clients:
                    client.tell({"code": code})
                    self._forget(client)

    def close(self) -> None:
        for client in {*self._clients.values()}:
            client.kill()
            self._forget(client)
        self._listener.close()
        with suppress(OSError):
            os.unlink("exec")

    def _read(self, client: _Client) -> None:
        request = client.read()
        if request is None:
            return
        if not client.start(request, self._launch, self._first):
            self._forget(client)
            return
        assert client.report is not None, "it was just started"
        self._clients[client.report] = client

    def _began(self, client: _Client) -> None:
        """It runs the program now, or could not."""
        assert client.report is not None, "it is asked once"
        self._clients.pop(client.report, None)
        if not client.began():
            self._forget(client)

    def _forget(self, client: _Client) -> None:
        self._clients.pop(client.connection.fileno(), None)
        if client.report is not None:
            self._clients.pop(client.report, None)
        client.close()


class _Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.child: container.Child | None = None
        self.requested = False
        self._received = b""
        self._streams: list[int] = []

    @property
    def report(self) -> int | None:
        """The descriptor on which the command's start is reported; None before and after."""
        if self.child is None or self.child.report.fileno() < 0:
            return None
        number: int = self.child.report.fileno()
        return number

    def read(self) -> dict[str, Any] | None:
        """The request, once all of it is there. One that is none is answered, and ends nothing but itself."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.connection, 65536, _STREAMS)
        except BlockingIOError:
            return None
        except OSError:
            data, descriptors = b"", []
        self._streams += descriptors
        self._received += data
        if data and not self._received.endswith(b"\n") and len(self._received) < _LONGEST:
            return None
        self.requested = True
        with suppress(ValueError):
            request = json.loads(self._received)
            if isinstance(request, dict):
                return request
        return {}

    def start(self, request: dict[str, Any], launch: dict[str, Any], first: int | None) -> bool:
        command, tty = request.get("command"), bool(request.get("tty"))
        if not command or (not tty and len(self._streams) != _STREAMS):
            self.tell({"error": "want a command, and its streams"})
            return False
        streams = None if tty else (self._streams[0], self._streams[1], self._streams[2])
        try:
            self.child = container.join(launch, streams, command, first)
        except OSError as error:  # the container is ending: no more processes can be made in it
            self.tell({"error": f"container not running: {error.strerror}"})
            return False
        self._close_streams()
        return True

    def began(self) -> bool:
        assert self.child is not None, "it was started"
        error, terminal = self.child.outcome()
        if error:
            self.tell({"error": error})
            return False
        self.tell({}, terminal)
        if terminal is not None:
            os.close(terminal)
        return True

    def is_there(self) -> bool:
        """Whether the client has not gone. It has nothing more to say."""
        try:
            return bool(self.connection.recv(4096))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def tell(self, what: dict[str, Any], terminal: int | None = None) -> None:
        with suppress(OSError):
            socket.send_fds(
                self.connection, [json.dumps(what).encode() + b"\n"], [] if terminal is None else [terminal]
            )

    def kill(self) -> None:
        if self.child is not None and self.child.pid:
            for end in (os.killpg, os.kill):
                with suppress(ProcessLookupError, PermissionError):
                    end(self.child.pid, signal.SIGKILL)

    def close(self) -> None:
        self._close_streams()
        if self.child is not None:
            self.child.report.close()
        self.connection.close()

    def _close_streams(self) -> None:
        for each in self._streams:
            os.close(each)
        self._streams = []
