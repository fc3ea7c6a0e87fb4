"""Fuzz the parsers of what clients send: each input is read, or refused with the parser's own error.

`check(data)` is one run: the first byte says which parser gets the rest. `tests.fuzz.coverage_guided` searches with
atheris, `tests/fuzz/test_parsers.py` runs seeded mutations of a small corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ostinato.api.errors import APIError
from ostinato.api.quantity import Quantity, QuantityError
from ostinato.api.selectors import fields, labels
from ostinato.api.text.json_path import JsonPath, JsonPathError
from ostinato.api.time import Duration, MicroTime, Time, TimeError
from ostinato.cel.parse.parser import parse as parse_cel
from ostinato.gotemplate import Limits, TemplateError, Templates
from ostinato.http.errors import InvalidHttp
from ostinato.http.request import RequestBody, parse_head
from ostinato.http.response import ResponseParser
from ostinato.http.websocket import FrameReader, InvalidFrame
from ostinato.plane.network.dns import wire
from ostinato.server.access.attributes import attributes_of
from ostinato.server.request import Request, parameters
from ostinato.server.request.negotiate import status_form
from ostinato.server.request.options import list_options, write_options
from ostinato.server.request.route import parse as parse_route
from ostinato.streams import spdy_frames
from ostinato.streams.channels import unpack
from tests.fuzz import harness


def check_head(data: bytes) -> None:
    with suppress(InvalidHttp):
        head = parse_head(data)
        assert head.length >= 0
        assert not (head.chunked and head.length)
        assert all(name == name.lower() for name in head.headers)
        request = Request(head.method, head.path, head.query, head.headers)
        parameters(head.query)
        route = parse_route(head.method, head.path, watch=False)
        asked = attributes_of(request, route)
        if route is not None:
            assert (asked.namespace, asked.resource, asked.subresource) == (
                route.namespace,
                route.resource,
                route.subresource,
            )
            assert "/" not in route.namespace + route.resource + route.name + route.subresource
        with suppress(APIError):
            status_form(request)


def check_chunks(data: bytes) -> None:
    """The same body, however it is cut into pieces."""
    head = parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked")

    def read(size: int) -> tuple[bool, bytes, bytes] | None:
        body, rest, at = RequestBody(head), b"", 0
        try:
            while at < len(data) and not body.complete:
                rest = body.feed(data[at : at + size])
                at += size
        except InvalidHttp:
            return None
        assert body.data is not None
        return body.complete, bytes(body.data), rest + data[at:]

    whole = read(max(1, len(data)))
    if len(data) < 2000:
        assert read(3) == whole


def check_response(data: bytes) -> None:
    """The same response, however it is split."""

    def read(size: int) -> object:
        response, rest, at = ResponseParser(accepts_upgrade=True), b"", 0
        try:
            while at < len(data) and not response.complete:
                response.feed(data[at : at + size])
                rest = response.rest
                at += size
        except InvalidHttp:
            return None
        response.end()
        fields = response.fields if response.status else ()
        return response.status, fields, response.complete, response.take(), rest + data[at:]

    whole = read(max(1, len(data)))
    if len(data) < 2000:
        assert read(3) == whole


def check_selectors(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(ValueError):
        assert str(labels.parse(str(labels.parse(text)))) == str(labels.parse(text))
    with suppress(ValueError):
        fields.parse(text)


def check_query(data: bytes) -> None:
    query = data.decode("utf-8", "replace")
    for read in (list_options, lambda request: write_options(request, "PatchOptions")):
        with suppress(APIError):
            read(Request("GET", "/api/v1/pods", query))


def check_cel(data: bytes) -> None:
    parse_cel(data.decode("utf-8", "replace"))


_VALUES = {"s": "text é", "i": 3, "f": 1e6, "l": [1, None, "a"], "m": {"a": {"b": True}}, "n": None, "b": b"bytes"}
_LIMITS = Limits(steps=20_000, size=1_000_000)


def check_templates(data: bytes) -> None:
    templates = Templates(limits=_LIMITS)
    with suppress(TemplateError):
        templates.parse("page", data.decode("utf-8", "surrogateescape"))
        templates.render("page", _VALUES)


def check_scalars(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(QuantityError):
        quantity = Quantity(text)
        assert Quantity(str(quantity)) == quantity
    for kind in (Time, MicroTime, Duration):
        with suppress(TimeError):
            kind.parse(text)


def check_json_path(data: bytes) -> None:
    with suppress(JsonPathError):
        JsonPath(data.decode("utf-8", "replace")).find({"a": [{"b": 1, "c": "d"}, {}], "": None, "e": {"f": [1, 2]}})


def check_spdy(data: bytes) -> None:
    reader = spdy_frames.FrameReader()
    with suppress(spdy_frames.SpdyError):
        for at in range(0, len(data), 7):
            list(reader.feed(data[at : at + 7]))


def check_websocket(data: bytes) -> None:
    messages: list[bytes] = []
    for deliver in (None, messages.append):
        reader = FrameReader(deliver)
        with suppress(InvalidFrame):
            for at in range(0, len(data), 7):
                reader.feed(data[at : at + 7])
    for message in messages:
        for protocol in ("v5.channel.k8s.io", "base64.channel.k8s.io"):
            with suppress(ValueError):
                unpack(message, protocol)


def check_dns(data: bytes) -> None:
    with suppress(wire.MalformedMessage):
        query = wire.parse_query(data)
        response = wire.encode_reply(query, wire.Reply(), query.limit)
        assert response[:2] == data[:2]
        assert len(response) <= query.limit
    with suppress(wire.MalformedMessage):
        wire.answers_of(data, data[:2] + b"\1" + data[3:])


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "json": harness.check_json,
    "yaml": harness.check_yaml,
    "protobuf": harness.check_protobuf,
    "head": check_head,
    "chunks": check_chunks,
    "response": check_response,
    "selectors": check_selectors,
    "query": check_query,
    "cel": check_cel,
    "templates": check_templates,
    "scalars": check_scalars,
    "json_path": check_json_path,
    "spdy": check_spdy,
    "websocket": check_websocket,
    "dns": check_dns,
}


def check(data: bytes) -> None:
    targets = tuple(TARGETS.values())
    if data:
        targets[data[0] % len(targets)](data[1:])
