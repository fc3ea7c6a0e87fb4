"""Log formats: text for terminals, JSON otherwise, with the fields of the current reconcile.

    2026-01-31T12:00:00.123Z INFO  ostinato.controllers scaled  controller=widgets object=default/a reconcile=5f0c...
    {"ts":"2026-01-31T12:00:00.123Z","level":"info","logger":"ostinato.controllers","msg":"scaled","controller":"widgets",...}

Every record that is logged during a reconcile, also by libraries, gets its controller, object and id.
`logger.info("scaled", extra={"replicas": 3})` adds further fields.

`limited_by(logger)` returns a context in which all loggers are limited to the level of one: for a component that shares
loggers with others, as the embedded control plane does with the program's controllers.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TextIO

import msgspec

from ostinato.api.text.colour import FAINT, GREEN, RED, YELLOW, colour_enabled, coloured
from ostinato.controllers.current import current_reconcile

Style = Literal["text", "json"]

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "reconcile_fields"}


_limit: ContextVar[logging.Logger | None] = ContextVar("ostinato_log_limit", default=None)


def limited_by(logger: logging.Logger) -> Context:
    """Return a copy of the context in which records below the level of `logger` are dropped, for all loggers."""
    context = copy_context()
    context.run(_limit.set, logger)
    return context


class LimitFilter(logging.Filter):
    """Drops the records that `limited_by` excludes."""

    def filter(self, record: logging.LogRecord) -> bool:
        limit = _limit.get()
        return limit is None or limit.isEnabledFor(record.levelno)


class ReconcileFilter(logging.Filter):
    """Adds the fields of the current reconcile to each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "reconcile_fields"):
            record.reconcile_fields = dict(_reconcile_fields())
        return True


class FieldsFilter(logging.Filter):
    """Adds the same fields to each record."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._fields = fields

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in self._fields.items():
            setattr(record, name, value)
        return True


class TextFormatter(logging.Formatter):
    """One line per record; tracebacks follow it."""

    def __init__(self, *, colour: bool = False) -> None:
        """`colour`: emphasize levels with ANSI codes. Defaults to False."""
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        marks = " ".join(f"{name}={_plain(value)}" for name, value in _short(record, message))
        time, level, name = _time(record), f"{record.levelname:<7}", record.name
        if self._colour:
            time, level, name = coloured(time, FAINT), coloured(level, _level_colour(record)), coloured(name, FAINT)
            marks = coloured(marks, FAINT) if marks else ""
        line = f"{time} {level} {name} {message}" + (f"  {marks}" if marks else "")
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the field names of controller-runtime's logs."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **getattr(record, "reconcile_fields", {}),
            **dict(_extras(record)),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = str(record.exc_info[1])
        trace = _trace(self, record)
        if trace:
            line["stacktrace"] = trace
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure_logging(
    style: Style | None = None,
    *,
    level: int | str = "INFO",
    stream: TextIO | None = None,
    colour: bool | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write all logs to a stream, and Python's warnings with them.

    - `style`: defaults to "text" for a terminal, else "json".
    - `level`: defaults to INFO.
    - `stream`: defaults to standard error.
    - `colour`: colour of text. Defaults to colour on a terminal unless NO_COLOR is set.
    - `fields`: of all records. Default to none.
    """
    stream = stream or sys.stderr
    if style is None:
        style = "text" if stream.isatty() else "json"
    handler = logging.StreamHandler(stream)
    handler.addFilter(LimitFilter())
    handler.addFilter(ReconcileFilter())
    if fields:
        handler.addFilter(FieldsFilter(fields))
    colour = colour_enabled(stream) if colour is None else colour
    handler.setFormatter(TextFormatter(colour=colour) if style == "text" else JsonFormatter())
    root = logging.getLogger()
    for old in [each for each in root.handlers if any(isinstance(f, ReconcileFilter) for f in each.filters)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(capture=True)
    if warnings.showwarning is not _show_warning:
        _others.append(warnings.showwarning)
        warnings.showwarning = _show_warning


_others: list[Callable[..., None]] = []  # how warnings are logged that `_show_warning` does not
_NOT_AWAITED: Final = re.compile(r"^coroutine '(.+)' was never awaited")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log a warning; that of a forgotten `await` with the fix."""
    if (found := _NOT_AWAITED.match(str(message))) is not None and issubclass(category, RuntimeWarning):
        logging.getLogger("py.warnings").warning(
            "coroutine was never awaited, so it did nothing; write await before the call coroutine=%s line=%s:%d",
            found[1],
            filename,
            lineno,
        )
        return
    _others[-1](message, category, filename, lineno, file, line)


def _level_colour(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return RED
    return YELLOW if record.levelno >= logging.WARNING else GREEN if record.levelno >= logging.INFO else FAINT


def _reconcile_fields() -> Iterator[tuple[str, str]]:
    reconcile = current_reconcile()
    if reconcile is None:
        return
    yield "controller", reconcile.controller
    if reconcile.gvk is not None:
        yield "controllerGroup", reconcile.gvk.group
        yield "controllerKind", reconcile.gvk.kind
    name = getattr(reconcile.request, "name", None)
    if isinstance(name, str):
        yield "namespace", getattr(reconcile.request, "namespace", "")
        yield "name", name
    else:
        yield "request", str(reconcile.request)
    yield "reconcileID", reconcile.id


def _short(record: logging.LogRecord, message: str) -> Iterator[tuple[str, Any]]:
    """Return the fields of a text line: namespace and name as one. What the message names is not repeated."""
    fields: dict[str, str] = getattr(record, "reconcile_fields", {})
    if fields:
        if f"controller={fields['controller']} object=" not in message:
            yield "controller", fields["controller"]
            if "name" in fields:
                yield "object", f"{fields['namespace']}/{fields['name']}" if fields["namespace"] else fields["name"]
            else:
                yield "request", fields["request"]
        yield "reconcile", fields["reconcileID"]
    yield from _extras(record)


def _extras(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(record).items() if name not in _STANDARD)


def _plain(value: Any) -> str:
    text = str(value)
    return text if text and not set(text) & set(' "=\n\t') else msgspec.json.encode(text).decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [formatter.formatException(record.exc_info)] if record.exc_info and record.exc_info[1] else []
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)
