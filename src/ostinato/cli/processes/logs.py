"""Logs of the processes of `ostinato up`, each line with the parts of its process as `component`.

The formats need modules that the supervisor and the API server do not: they are loaded for the first record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LEVEL = logging.WARNING


@contextmanager
def logs(component: str = "", *, terminal: bool, colour: bool) -> Iterator[None]:
    """Write warnings and errors to standard error; as text for a terminal, else as JSON.

    `component`: a field of all records. Defaults to none.
    """
    root = logging.getLogger()
    root.setLevel(_LEVEL)
    handler = _FirstRecord(component, terminal=terminal, colour=colour)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _FirstRecord(logging.Handler):
    """Replaces itself with the configured handler."""

    def __init__(self, component: str, *, terminal: bool, colour: bool) -> None:
        super().__init__()
        self._component = component
        self._terminal = terminal
        self._colour = colour

    def emit(self, record: logging.LogRecord) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        from ostinato.manager.logs import configure_logging  # noqa: PLC0415 - see above

        fields = {"component": self._component} if self._component else {}
        configure_logging("text" if self._terminal else "json", level=_LEVEL, colour=self._colour, fields=fields)
        root.handle(record)
