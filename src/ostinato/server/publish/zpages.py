"""Z-pages: /statusz and /flagz, as text for people, or as objects of config.k8s.io for clients that ask for them.

A client gets the object with `Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz` (or YAML, or v1alpha1).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ostinato.api.errors import NotAcceptable
from ostinato.api.status import Status
from ostinato.api.time import Time
from ostinato.server.publish.version import GIT_VERSION, MAJOR, MINOR
from ostinato.server.request import Request, Response
from ostinato.server.request.negotiate import JSON, YAML, Form, accepted
from ostinato.server.request.present import encode
from ostinato.world import Clock

Json = dict[str, Any]

_NAME: Final = "apiserver"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_PATHS: Final = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_REFUSED: Final = "only the following media types are accepted: application/json, application/yaml, text/plain"


class ZPages:
    """`flags`: the command line, by the names of its options."""

    def __init__(self, clock: Clock, flags: Mapping[str, str]) -> None:
        self._clock = clock
        self._started = clock.now()
        self._flags = flags

    def answer(self, path: str, request: Request) -> Response | None:
        """Return the response; None for other paths."""
        match path:
            case "/statusz":
                return _response(request, "Statusz", self._status(), self._status_lines())
            case "/flagz":
                flags = dict(sorted(self._flags.items()))
                return _response(request, "Flagz", {"flags": flags}, (f"{name}={flags[name]}" for name in flags))
        return None

    def _status(self) -> Json:
        return {
            "startTime": str(Time.of(self._started)),
            "uptimeSeconds": int((self._clock.now() - self._started).total_seconds()),
            "goVersion": f"python{platform.python_version()}",
            "binaryVersion": GIT_VERSION.removeprefix("v"),
            "emulationVersion": f"{MAJOR}.{MINOR}",
            "paths": list(_PATHS),
        }

    def _status_lines(self) -> Iterator[str]:
        status = self._status()
        minutes, seconds = divmod(status["uptimeSeconds"], 60)
        hours, minutes = divmod(minutes, 60)
        yield ""
        yield f"Started: {self._started.strftime('%a %b %d %H:%M:%S UTC %Y')}"
        yield f"Up: {hours} hr {minutes:02} min {seconds:02} sec"
        yield f"Go version: {status['goVersion']}"
        yield f"Binary version: {status['binaryVersion']}"
        yield f"Emulation version: {status['emulationVersion']}"
        yield f"Paths: {' '.join(_PATHS)}"


def _response(request: Request, kind: str, fields: Json, lines: Iterator[str]) -> Response:
    for clause in accepted(request.headers.get("accept", "") or "*/*"):
        asked = clause.parameters
        version = asked.get("v", "")
        if clause.media in ("text/plain", "text/*", "*/*") and "as" not in asked:
            text = "\n".join(["", f"{_NAME} {kind.lower()}", _WARNING, *lines, ""])
            return Response(200, text.encode(), "text/plain; charset=utf-8")
        wanted = (asked.get("g"), asked.get("as")) == (_GROUP, kind) and version in _VERSIONS
        if wanted and clause.media in (JSON, YAML):
            form = Form("yaml" if clause.media == YAML else "json", pretty=True)
            if version != _VERSIONS[0]:
                page = kind.lower()
                request.warnings.append(
                    f"This version of the {page} endpoint is deprecated. Please use a newer version."
                )
            value = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": _NAME}, **fields}
            return Response(200, encode(value, form), f"{form.content_type};g={_GROUP};v={version};as={kind}")
    raise NotAcceptable(Status(message=_REFUSED, reason="NotAcceptable", code=406))
