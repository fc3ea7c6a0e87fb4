"""Handler of /openapi: selects the document, its media type, and how long a client may cache it."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime

from ostinato.server.aggregation.aggregator import Aggregator
from ostinato.server.publish.discovery import Discovery
from ostinato.server.publish.document import Document
from ostinato.server.publish.openapi import gnostic
from ostinato.server.publish.openapi.published import OpenAPI
from ostinato.server.request import Request, Response
from ostinato.world import Clock

_V3 = "/openapi/v3/"
_JSON = ("application/json", "application/*", "*/*")
_PROTOBUF = (
    gnostic.CONTENT_TYPE,
    gnostic.CONTENT_TYPE.replace(".v1.0", "@v1.0"),  # the name that clients send; it is not a valid media type
)
_VARY = ("Vary", "Accept")
_LONG = timedelta(days=365)  # how long a client may cache a document whose URL contains its hash


class OpenAPIHandler:
    """Responses below /openapi. Documents are built on first use."""

    def __init__(self, clock: Clock, aggregator: Aggregator) -> None:
        self._clock = clock
        self._aggregator = aggregator
        self._discovery: Discovery | None = None  # not read yet
        self._published: OpenAPI | None = None

    def changed(self, discovery: Discovery) -> None:
        self._discovery = discovery

    def answer(self, path: str, request: Request) -> Response | None:
        """The response for a path below /openapi; None if there is no such page."""
        if path == "/openapi/v2":
            return self._v2(request)
        if path == "/openapi/v3":
            return Response(200, self._current().v3_root(), "text/plain; charset=utf-8")
        if path.startswith(_V3):
            return self._v3(path.removeprefix(_V3), request)
        return None

    def _current(self) -> OpenAPI:
        if self._published is None:
            self._published = OpenAPI()
        if self._discovery is not None:
            self._published.update(self._discovery, self._aggregator.openapi_v2, self._aggregator.openapi_v3_index)
            self._discovery = None
        return self._published

    def _v2(self, request: Request) -> Response:
        vary = (("Vary", "Accept-Encoding"), _VARY)
        accepted = _first(request, (*_JSON, *_PROTOBUF))
        if accepted is None:
            return Response(406, b"", "", vary)
        published = self._current()
        document = published.v2_protobuf() if accepted in _PROTOBUF else published.v2()
        return document.response(request, vary)

    def _v3(self, name: str, request: Request) -> Response:
        document = self._current().v3(name)
        if document is None:
            return Response(404, b"", "")
        if _first(request, _JSON) is None:
            return Response(406, b"", "", (_VARY,))
        requested = request.parameter("hash")
        if not requested:
            return document.response(request, (_VARY,))
        if requested != document.tag:
            return _moved(name, document)
        expires = format_datetime(self._clock.now() + _LONG, usegmt=True)
        return document.response(request, (("Cache-Control", "public, immutable"), ("Expires", expires), _VARY))


def _moved(name: str, document: Document) -> Response:
    """Redirect a client that has the hash of an older document to the current one."""
    location = f"{_V3}{name}?hash={document.tag}"
    return Response(301, b"", document.content_type, (("Location", location), ("ETag", f'"{document.tag}"'), _VARY))


def _first(request: Request, known: tuple[str, ...]) -> str | None:
    """The first media type of an Accept header that is supported; None if there is none."""
    accept = request.headers.get("accept", "")
    if not accept:
        return "*/*"
    clauses = (clause.partition(";")[0].strip() for clause in accept.split(","))
    return next((media for media in clauses if media in known), None)
