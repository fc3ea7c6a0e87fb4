"""Version endpoint: the Kubernetes version whose API the server implements."""

from __future__ import annotations

import platform
import sys
from functools import cache

import msgspec

from ostinato.api.errors import NotAcceptable
from ostinato.api.status import Status, StatusDetails
from ostinato.server.request import Request, Response
from ostinato.server.request.negotiate import JSON

MAJOR, MINOR = "1", "36"
# The suffix distinguishes this server from kube-apiserver.
GIT_VERSION = f"v{MAJOR}.{MINOR}.4+ostinato"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@cache
def version_document() -> bytes:
    """The version document, indented."""
    machine = platform.machine()
    document = {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"{sys.implementation.name}-{platform.python_version()}",
        "platform": f"{sys.platform}/{_MACHINES.get(machine, machine)}",
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def version_answer(request: Request) -> Response:
    """The response of /version: JSON only."""
    accept = request.headers.get("accept", "")
    if accept and not {clause.partition(";")[0].strip() for clause in accept.split(",")} & {JSON, "*/*"}:
        message = f"406: Not Acceptable\n\nAvailable representations: {JSON}"
        raise NotAcceptable(Status(message=message, reason="NotAcceptable", details=StatusDetails(), code=406))
    return Response(200, version_document())
