"""Log lines: the output of a process as log records.

- A line that is a JSON object is a record: its `level` and `msg` (or `message`) are those of the record, its other
  fields are shown as `key=value`. Any other line is the message of an INFO record.
- `proxy`: a JSON object is written as it is, one line, for collectors that read JSON.
- Fields of the run, such as the hook and its queue, follow each message; JSON logs have them as fields of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_LEVELS: Final = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "panic": logging.CRITICAL,
    "critical": logging.CRITICAL,
}
_TIMES: Final = ("time", "ts", "timestamp")


class LogLines:
    def __init__(self, logger: logging.Logger, fields: Mapping[str, str], *, proxy: bool = False) -> None:
        """`fields`: of the run, added to each record. `proxy`: see the module. Defaults to False."""
        self._logger = logger
        self._fields = fields
        self._proxy = proxy

    def __call__(self, stream: str, line: str) -> None:
        document = _document(line)
        if document is None:
            self._log(logging.INFO, line.strip(), {"output": stream})
            return
        if self._proxy:
            self._logger.info("%s", msgspec.json.encode({**document, **self._fields}).decode())
            return
        level = _LEVELS.get(str(document.pop("level", "info")).lower(), logging.INFO)
        message = document.pop("msg", None) or document.pop("message", None) or "hook result"
        for each in _TIMES:
            document.pop(each, None)
        self._log(level, str(message), {f"hook_{key}": value for key, value in document.items()})

    def _log(self, level: int, message: str, extra: Mapping[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            fields = {**self._fields, **extra}
            shown = " ".join(f"{key}={_text(value)}" for key, value in fields.items() if value != "")
            self._logger.log(level, "%s %s", message, shown)


def _document(line: str) -> dict[str, Any] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
