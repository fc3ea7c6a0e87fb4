"""Encoders of heads and chunks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from ostinato.http.fields import FIELD_NAME

Field = tuple[str, str]

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def request_head(method: str, target: str, fields: Iterable[Field]) -> bytes:
    """Encode the head of a request. Raises ValueError if it could be read as something else."""
    return b"%b\r\n%b\r\n" % (request_line(method, target), field_lines(fields))


def request_line(method: str, target: str) -> bytes:
    """Encode a request line without its end. Raises ValueError if it could be read as something else."""
    line = f"{method} {target} HTTP/1.1"
    if not line.isprintable() or line.count(" ") != 2:
        raise ValueError("the path must be percent-encoded")
    return line.encode()


def field_lines(fields: Iterable[Field]) -> bytes:
    """Encode header fields. Raises ValueError if they could be read as something else; it contains no values."""
    lines = []
    for name, value in fields:
        if not FIELD_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid header name")
        lines.append(f"{name}: {value}\r\n")
    text = "".join(lines)
    if text.count("\r") != len(lines) or text.count("\n") != len(lines) or "\0" in text:
        raise ValueError("a header contains a line break or NUL")
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass  # not chained: the exception contains all headers, and with them secrets
    raise ValueError("a header contains an unpaired surrogate")


def clean(value: str) -> str:
    """Replace control characters in the value of a header by spaces."""
    return value if value.isprintable() else "".join(c if c.isprintable() or c == "\t" else " " for c in value)


def clean_target(target: str) -> str:
    """Percent-encode spaces and control characters in a request target, as spaces."""
    return clean(target).replace(" ", "%20").replace("\t", "%09")


def chunk(data: bytes) -> bytes:
    """Encode a chunk of a body. `data` must not be empty: an empty chunk ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunk_parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Like `chunk`, in parts, to be written one after another: long data need not be copied."""
    return b"%x\r\n" % len(data), data, b"\r\n"


def date_line(moment: datetime) -> bytes:
    return (
        f"Date: {_DAYS[moment.weekday()]}, {moment.day:02} {_MONTHS[moment.month - 1]} {moment.year:04} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02} GMT\r\n"
    ).encode()
