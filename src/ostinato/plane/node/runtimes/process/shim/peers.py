"""Unix sockets of a keeper, restricted to processes of the node's user. Part of the shim."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def listen(name: str) -> socket.socket:
    """Listen on a socket in the current directory."""
    with suppress(FileNotFoundError):
        os.unlink(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    os.chmod(name, 0o600)
    listener.listen(8)
    listener.settimeout(0)
    return listener


def accept(listener: socket.socket) -> socket.socket | None:
    """Accept the next connection; None if there is none or it belongs to another user."""
    try:
        accepted, _ = listener.accept()
    except OSError:
        return None
    if not _is_ours(accepted):
        accepted.close()
        return None
    accepted.settimeout(0)
    return accepted


def _is_ours(connection: socket.socket) -> bool:
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # no SO_PEERCRED: the directory mode (0700) protects the socket
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return bool(uid == os.geteuid())
