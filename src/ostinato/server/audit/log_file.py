"""Audit log: a rotated file, or standard output.

- Files are created with mode 0600 and appended to; a partial line of a killed server is terminated first.
- A file that would grow beyond `max_size` megabytes is renamed to NAME-TIME.EXT, as lumberjack names backups, and a new
  file is opened. Backups beyond `max_backups`, or older than `max_age` days, are removed; `compress` gzips them.
- `write` blocks: call it in a worker thread, never on the event loop.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ostinato.server.audit.settings import AuditLogSettings
from ostinato.world import Clock

_MEGABYTE = 1 << 20
_TIME = "%Y-%m-%dT%H-%M-%S"
_logger = logging.getLogger(__name__)


class StandardOutput:
    def write(self, data: bytes) -> None:
        """OSError if it cannot be written."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Standard output stays open."""


class LogFile:
    """OSError if the file cannot be opened."""

    def __init__(self, settings: AuditLogSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._path = Path(settings.path)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._descriptor = -1
        self._size = 0
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        if self._size and not _ends_with_line(self._path):  # partial line of a killed server
            self._size += os.write(self._descriptor, b"\n")

    def write(self, data: bytes) -> None:
        """Append lines, rotating before those that do not fit. OSError if they are not all written."""
        most = self._settings.max_size * _MEGABYTE
        if most and self._size and self._size + len(data) > most:
            self._rotate()
        if self._descriptor < 0:
            self._open()  # the last rotation failed
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            if len(view) < len(data):  # terminate the partial line
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _rotate(self) -> None:
        self.close()
        backup = self._backup_name()
        self._path.rename(backup)
        self._open()
        try:
            if self._settings.compress:
                _compress(backup)
            self._remove_old()
        except OSError as error:  # the log itself is still written
            _logger.error("cannot remove audit log backups error=%s", error)

    def _backup_name(self) -> Path:
        now = self._clock.now()
        millis = f"{now.microsecond // 1000:03d}"
        name = f"{self._path.stem}-{now.strftime(_TIME)}.{millis}{self._path.suffix}"
        return self._path.with_name(name)

    def _remove_old(self) -> None:
        stem, suffix = re.escape(self._path.stem), re.escape(self._path.suffix)
        named = re.compile(rf"{stem}-(\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d)\.(\d{{3}}){suffix}(\.gz)?")
        found = sorted(
            (
                (match[1], match[2], path)
                for path in self._path.parent.iterdir()
                if (match := named.fullmatch(path.name))
            ),
            reverse=True,
        )
        most, oldest = self._settings.max_backups, None
        if self._settings.max_age:
            oldest = self._clock.now() - timedelta(days=self._settings.max_age)
        for i, (stamp, _, path) in enumerate(found):
            written = datetime.strptime(stamp, _TIME).replace(tzinfo=UTC)
            if (most and i >= most) or (oldest is not None and written < oldest):
                path.unlink(missing_ok=True)


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _compress(path: Path) -> None:
    """Replace a file by its gzipped copy, with mode 0600."""
    target = path.with_name(path.name + ".gz")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with path.open("rb") as source, os.fdopen(descriptor, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb") as out:
        shutil.copyfileobj(source, out)
    path.unlink()
