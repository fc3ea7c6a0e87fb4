"""Unix sockets between processes of one user.

- The socket has mode 0600, in a directory that only its owner can enter.
- Connections of other users are closed as soon as they are accepted (`SO_PEERCRED`), and a client does not talk to the
  process of another user.
- Paths may be longer than the 108 bytes of a socket address: they are resolved through a descriptor of the directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_BACKLOG: Final = 1024
_MAX_PATH: Final = 100  # bytes of a path that is used as it is


def listen(path: Path) -> socket.socket:
    """Listen on a socket, in place of one of a process that has ended. Raises OSError."""
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX)
    try:
        with _address(path) as address:
            bound.bind(address)
        path.chmod(0o600)
        bound.listen(_BACKLOG)
    except BaseException:
        bound.close()
        raise
    bound.settimeout(0)
    return bound


def connect(path: Path) -> socket.socket:
    """Connect to a process of this user. Raises OSError. Does not block, unless its backlog is full."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(0)
        with _address(path) as address:
            connection.connect(address)
        if not is_own(connection):
            raise PermissionError(errno.EPERM, f"{path} belongs to another user")
    except BaseException:
        connection.close()
        raise
    return connection


def is_own(connection: socket.socket) -> bool:
    """Whether the peer runs as the user of this process."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the mode of the directory protects the socket
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return bool(uid == os.geteuid())


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    if len(os.fsencode(path)) <= _MAX_PATH:
        yield str(path)
        return
    inside = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{inside}/{path.name}"
    finally:
        os.close(inside)
