"""Exec server of a container, on the socket `exec` of its directory. Part of the shim.

- One connection per command. The client sends a line of JSON, `{"command": [...], "tty": false}`, with the descriptors
  of stdin, stdout and stderr (none with a TTY).
- Replies: `{"error": "..."}`, or `{}` once the command runs, with the terminal's descriptor if it has a TTY; then
  `{"code": 0}` when it has exited.
- The command is killed if the client closes the connection.
- Commands are children of the keeper in the container's namespaces and control groups: none survives the container.
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


class ExecServer:
    def __init__(self, launch: dict[str, Any], first: int | None) -> None:
        """`first`: pidfd of the container's first process; None if it is not isolated."""
        self._launch = launch
        self._first = first
        self._listener = peers.listen("exec")
        self._clients: dict[int, _Client] = {}  # by descriptor of the connection and of the start report

    def register(self, poll: select.poll) -> None:
        poll.register(self._listener.fileno(), select.POLLIN)
        for descriptor in self._clients:
            poll.register(descriptor, select.POLLIN)

    def handle(self, descriptor: int) -> bool:
        """Handle an event; return whether the descriptor belongs to this server."""
        if descriptor == self._listener.fileno():
            accepted = peers.accept(self._listener)
            if accepted is not None:
                self._clients[accepted.fileno()] = _Client(accepted)
            return True
        client = self._clients.get(descriptor)
        if client is None:
            return False
        if client.child is not None and descriptor == client.report:
            self._report_start(client)
        elif client.child is None and not client.requested:
            self._read(client)
        elif not client.is_connected():
            client.kill()
            self._forget(client)
        return True

    def ended(self, pid: int, code: int) -> None:
        """Report the exit of a child of the keeper, if it is a command."""
        for client in {*self._clients.values()}:
            if client.child is not None and client.child.pid == pid:
                if client.report is not None:
                    self._report_start(client)
                if client.connection.fileno() in self._clients:
                    client.send({"code": code})
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
        assert client.report is not None, "just started"
        self._clients[client.report] = client

    def _report_start(self, client: _Client) -> None:
        """Report to the client whether the program was executed."""
        assert client.report is not None, "reported once"
        self._clients.pop(client.report, None)
        if not client.report_start():
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
        """The descriptor that reports the start of the command; None before and after."""
        if self.child is None or self.child.report.fileno() < 0:
            return None
        number: int = self.child.report.fileno()
        return number

    def read(self) -> dict[str, Any] | None:
        """Return the request once it is complete; an empty one if it is malformed."""
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
            self.send({"error": "invalid exec request: want a command and three stream descriptors"})
            return False
        streams = None if tty else (self._streams[0], self._streams[1], self._streams[2])
        try:
            self.child = container.join(launch, streams, command, first)
        except OSError as error:  # the container is exiting: its PID namespace accepts no new processes
            self.send({"error": f"container not running: {error.strerror}"})
            return False
        self._close_streams()
        return True

    def report_start(self) -> bool:
        assert self.child is not None, "started before"
        error, terminal = self.child.outcome()
        if error:
            self.send({"error": error})
            return False
        self.send({}, terminal)
        if terminal is not None:
            os.close(terminal)
        return True

    def is_connected(self) -> bool:
        """Return whether the client is connected. Clients send nothing after the request."""
        try:
            return bool(self.connection.recv(4096))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, what: dict[str, Any], terminal: int | None = None) -> None:
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
