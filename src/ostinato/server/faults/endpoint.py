"""The endpoint `/faults`: rules are read and replaced while the server runs, from the same machine only.

    curl -sk https://127.0.0.1:6443/faults -d '{"rules": [{"match": {"verb": "create"}, "fault": {"error": 500}}]}'

GET returns the rules with how often each was dealt, POST replaces them, DELETE removes all. It exists only with
`--faults`, and is answered without credentials: a server with faults is for tests.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

import msgspec

from ostinato.server.faults.rules import RuleDirector, RulesError, parse
from ostinato.server.request import Answer, Request, Response

PATH: Final = "/faults"


async def answer(director: RuleDirector, request: Request) -> Answer:
    """Answer a request to `PATH`."""
    if not _is_local(request.remote):
        return _status(403, "faults can be changed from the same machine only")
    if request.method == "POST":
        try:
            director.replace(parse(msgspec.json.decode(await request.read())))
        except (RulesError, msgspec.DecodeError) as error:
            return _status(400, str(error))
    elif request.method == "DELETE":
        director.replace(())
    elif request.method != "GET":
        return _status(405, f"{request.method} is not allowed; use GET, POST or DELETE")
    return _json(200, {"rules": director.report()})


def _is_local(remote: str) -> bool:
    if not remote:  # in this process
        return True
    try:
        return ip_address(remote.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _status(code: int, message: str) -> Response:
    return _json(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message})


def _json(code: int, value: Any) -> Response:
    return Response(code, msgspec.json.encode(value))
