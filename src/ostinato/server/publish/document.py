"""Cacheable document: served with an ETag, answered with 304 if the client has the current one."""

from __future__ import annotations

import hashlib
from functools import cached_property

from ostinato.server.request import Request, Response
from ostinato.server.request.negotiate import JSON


class Document:
    """A body with an ETag, which changes whenever the body does."""

    def __init__(self, body: bytes, content_type: str = JSON, tag: str = "") -> None:
        self.body = body
        self.content_type = content_type
        if tag:
            self.tag = tag

    @cached_property
    def tag(self) -> str:
        return hashlib.sha512(self.body).hexdigest().upper()

    def response(self, request: Request, headers: tuple[tuple[str, str], ...]) -> Response:
        """The document, or 304 if the client has it."""
        headers = (("ETag", f'"{self.tag}"'), *headers)
        if self._known(request.headers.get("if-none-match", "")):
            return Response(304, b"", "", headers)
        return Response(200, self.body, self.content_type, headers)

    def _known(self, tags: str) -> bool:
        """Whether an If-None-Match header names this document."""
        if tags.strip() == "*":
            return True
        return any(tag.strip().removeprefix("W/").strip('"') == self.tag for tag in tags.split(","))
