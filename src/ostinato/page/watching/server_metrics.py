"""Metrics of the API server that the page needs: a few counters, read from `/metrics`.

The server of this project answers with these metrics alone; kube-apiserver ignores `name[]` and sends all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite, nan
from typing import Final, NamedTuple

from ostinato.api.errors import from_response
from ostinato.client.client import Client
from ostinato.client.transport.protocol import Request, ResponseTooLarge

PATH: Final = "/metrics"
REJECTIONS: Final = "apiserver_admission_webhook_rejection_count"
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
THROTTLED: Final = "apiserver_flowcontrol_rejected_requests_total"
_STARTED: Final = "process_start_time_seconds"
_NAMES: Final = (REJECTIONS, FAIL_OPEN, THROTTLED)
_QUERY: Final = [("name[]", name) for name in (*_NAMES, _STARTED)]
_SECONDS: Final = 10.0
_MAX_BYTES: Final = 64 << 20
_MAX_SERIES: Final = 5_000  # of each metric
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Series(NamedTuple):
    """A counter: its metric, and its labels in order of their names."""

    metric: str
    labels: tuple[tuple[str, str], ...]

    def label(self, name: str) -> str:
        return next((value for key, value in self.labels if key == name), "")


class Reading(NamedTuple):
    """The counters of one server. `process`: differs between servers, and after a restart."""

    process: str
    values: dict[Series, float]


async def read_counters(client: Client) -> Reading:
    """Read the counters. Raises APIError, TransportError."""
    request = Request("GET", PATH, _QUERY, timeout=_SECONDS)
    async with await client.transport.request(request) as response:
        pieces, size = [b"\n"], 0
        async for piece in response.chunks():
            size += len(piece)
            if size > _MAX_BYTES:
                raise ResponseTooLarge(f"GET {PATH}: the response has more than {_MAX_BYTES} bytes")
            pieces.append(piece)
    body = b"".join(pieces)
    if response.status != 200:
        kind = response.headers.get("content-type", "")
        raise from_response(response.status, body[1:], verb="GET", content_type=kind)
    return parse(body)


def parse(body: bytes) -> Reading:
    """Return the counters of a text that begins with a line end. Other metrics, which may be many, are skipped."""
    values: dict[Series, float] = {}
    for name in _NAMES:
        for labels, value in _lines(body, name):
            values[Series(name, tuple(sorted(_LABEL.findall(labels))))] = value
    process = next((str(value) for _, value in _lines(body, _STARTED)), "")
    return Reading(process, values)


def _lines(body: bytes, name: str) -> Iterator[tuple[str, float]]:
    """Iterate over the samples of a metric: labels and value."""
    start = b"\n" + name.encode()
    at = body.find(start)
    for _ in range(_MAX_SERIES):
        if at < 0:
            return
        end = body.find(b"\n", at + 1)
        line = body[at + len(start) : end if end >= 0 else None].decode(errors="replace")
        if line.startswith(("{", " ")):
            labels, _, text = line.rpartition(" ")
            if isfinite(value := _number(text)):
                yield labels, value
        at = body.find(start, at + 1)


def _number(text: str) -> float:
    """Parse a value; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return nan
