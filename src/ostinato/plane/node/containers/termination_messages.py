"""Termination message of a container: its terminationMessagePath file, or the end of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.kinds.core_v1 import Container
from ostinato.plane.node.runtimes import Exit
from ostinato.plane.node.volumes.trees import open_regular

LONGEST: Final = 4096
_LONGEST_LOG: Final = 2048
_LINES: Final = 80


def termination_message(container: Container, ended: Exit, message: Path, log: Path) -> str:
    """Return the message; empty if there is none."""
    if ended.message:
        return ended.message
    text = _head(message)
    if not text and ended.code != 0 and container.termination_message_policy == "FallbackToLogsOnError":
        text = _tail(log)
    return text


def _head(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(LONGEST).decode(errors="replace")
    except OSError:
        return ""


def _tail(path: Path) -> str:
    """Return the last lines of a log without timestamps."""
    try:
        with open_regular(path) as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - 64 * 1024, 0))
            lines = file.read().splitlines(keepends=True)[-_LINES:]
    except OSError:
        return ""
    text = b""
    for line in lines:
        _, _, rest = line.partition(b" ")
        _, _, rest = rest.partition(b" ")
        tag, _, content = rest.partition(b" ")
        text += content if tag == b"F" else content.rstrip(b"\n")
    return text[-_LONGEST_LOG:].decode(errors="replace")
