"""Messages between the supervisor and the other processes: lines of JSON on a socket pair.

The first one is the `Attachment`. The end of the stream is the end of the other side.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """To a process: what it is for.

    - `parts`: what the process runs.
    - `options`: of the command line.
    - `lock`: descriptor of the lock of the state directory.
    - `listening`: descriptor of the Unix socket on which the API server serves the components.
    - `parent`: pid of the supervisor.
    - `port`: of the API server, once it is known; 0 to use that of the options.
    - `terminal`, `colour`: how the supervisor's standard error shows logs.
    """

    parts: list[str]
    options: dict[str, Any]  # JSON
    lock: int
    listening: int
    parent: int
    port: int = 0
    terminal: bool = False
    colour: bool = False


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """To a process with components: the API server at `url` is ready."""

    url: str


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """From a process: its parts have started. `url`: of the API server, from its process."""

    url: str = ""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """From a process: it ends because of an error."""

    message: str


Report = Ready | Failed


def encode(message: Attachment | Begin | Report) -> bytes:
    return msgspec.json.encode(message) + b"\n"
