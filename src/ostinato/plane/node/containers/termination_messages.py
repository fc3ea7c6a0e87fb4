"""The last words of a container: what it wrote to its message file, or the end of its log where it asked for that."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.kinds.core_v1 import Container
from ostinato.plane.node.runtimes import Exit
from ostinato.plane.node.volumes.trees import open_regular

LONGEST: Final = 4096
_LONGEST_LOG: Final = 2048
_LINES: Final = 80


def last_words(container: Container, ended: Exit, message: Path, log: Path) -> str:
    """Empty if there are none."""
    if ended.message:
        return ended.message
    words = _head(message)
    if not words and ended.code != 0 and container.termination_message_policy == "FallbackToLogsOnError":
        words = _tail(log)
    return words


def _head(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(LONGEST).decode(errors="replace")
    except OSError:
        return ""


def _tail(path: Path) -> str:
    """The last lines of a log, without times."""
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
        tag, _, words = rest.partition(b" ")
        text += words if tag == b"F" else words.rstrip(b"\n")
    return text[-_LONGEST_LOG:].decode(errors="replace")
