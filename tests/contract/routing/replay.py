"""Replay the cases of the routing table against a server in this process."""

from __future__ import annotations

import json
from typing import Any, cast

from ostinato.http.errors import InvalidHttp
from ostinato.http.request import parse_head
from ostinato.server.core import Server
from ostinato.server.request import Answer, Request, Response, User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World
from tests.contract.routing.record import told
from tests.contract.routing.table import Case, objects


async def started(world: World) -> Server:
    """A server that has the objects of the table."""
    server = Server(world, MemoryLog())
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    await server.start()
    for path, value in objects():
        answer = await server.handle(request_of(Case("admin", "POST", path), value))
        assert answer.status in (201, 409), (path, answer)
    return server


def request_of(case: Case, sent: Any = None) -> Request:
    """The request as the HTTP server parses it; InvalidHttp if it is malformed."""
    head = parse_head(f"{case.method} {case.target} HTTP/1.1\r\nHost: routing.example".encode())
    media = "application/merge-patch+json" if case.method == "PATCH" else "application/json"
    headers = {"authorization": "Bearer admin", "content-type": media}
    if case.user != "admin":
        headers["impersonate-user"] = case.user
    if sent is None and case.method in ("POST", "PUT", "PATCH"):
        sent = {}
    return Request(head.method, head.path, head.query, headers, body=b"" if sent is None else json.dumps(sent).encode())


async def answered(server: Server, case: Case) -> list[Any]:
    try:
        request = request_of(case)
    except InvalidHttp as error:
        return [error.status, "", f"{error.status} Bad Request"]
    return await answer_told(await server.handle(request), case)


async def answer_told(answer: Answer, case: Case) -> list[Any]:
    if isinstance(answer, Response):
        body = b"" if case.method == "HEAD" else answer.body
        return told(answer.status, answer.content_type, body)
    await cast("Any", answer).chunks.aclose()
    return told(answer.status, answer.content_type, b"")
