"""Log rotation: a large log is renamed (`0.log.1`, `0.log.2`, ...), and the oldest file is removed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 10 << 20
LOG_FILES: Final = 5  # including the current one


def is_large(log: Path) -> bool:
    try:
        return log.stat().st_size >= LOG_BYTES
    except OSError:
        return False


def rotate(log: Path) -> None:
    """Rename the log files; the writer must reopen its log afterwards."""
    for number in range(LOG_FILES - 1, 0, -1):
        before = log.with_name(f"{log.name}.{number - 1}") if number > 1 else log
        with suppress(FileNotFoundError):
            before.replace(log.with_name(f"{log.name}.{number}"))
