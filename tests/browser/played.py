"""A server that plays made-up facts to the page, with the headers of the real one.

Tests of what the page shows of a cluster use the real page; this one is for amounts and faults that a cluster does
not have at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web

import ostinato
from ostinato.page.serving.access import SECURITY_HEADERS

from .facts import HOSTILE, Facts, Json

ASSETS = Path(ostinato.__file__).parent / "page" / "assets"


class Handlers:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.transports: set[asyncio.Transport] = set()  # of all connections
        self.sent = 0  # writes
        self.asked = 0  # requests
        self.streams = 0  # that are open

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self.guard])
        app.router.add_get("/", self.index)
        app.router.add_static("/assets", ASSETS)
        app.router.add_get("/api/stream", self.stream)
        app.router.add_get("/api/pods/log", self.log)
        app.router.add_get("/api/pods/exec", self.shell)
        app.router.add_get("/api/{path:.*}", self.api)
        return app

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked += 1
        if request.transport is not None:
            self.transports.add(request.transport)
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers.update(SECURITY_HEADERS)
        return response

    async def index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(ASSETS / "index.html")

    async def api(self, request: web.Request) -> web.StreamResponse:
        facts, query = self.facts, request.query
        of = {key: query.get(key, "") for key in ("apiVersion", "kind", "namespace", "name")}
        match request.match_info["path"]:
            case "about":
                answer: Json = {
                    "mode": facts.mode,
                    "cluster": "played",
                    "version": "0.1.0",
                    "writes": facts.writes,
                    "denied": facts.denied,
                    "started": facts.started,
                }
            case "graph":
                answer = facts.graph()
            case "alarms":
                answer = {"alarms": facts.alarms()}
            case "history":
                answer = {"batches": facts.recorded, "oldest": facts.recorded[0]["at"]}
            case "objects":
                roots = [one for one in facts.roots() if "deleting" not in query or one["deleting"] is not None]
                answer = {
                    "roots": roots,
                    "total": facts.pods + 3,
                    "kinds": ["Deployment", "Pod"],
                    "namespaces": ["default"],
                }
            case "object":
                answer = facts.detail(of | {"uid": f"{of['kind']}/{of['namespace']}/{of['name']}"})
            case "why":
                answer = facts.why()
            case "nodes":
                answer = {"nodes": facts.nodes}
            case "pods/usage":
                now = time.time()
                samples = [{"at": now - 60 + i, "cpu": 0.1 + (i % 9) / 50, "memory": 2e7 + i * 1e5} for i in range(60)]
                answer = {"samples": samples}
            case "scheduler":
                verdicts = [
                    {"node": node["name"], "plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "score": None}
                    for node in facts.nodes[:3]
                ]
                attempt = {
                    "at": time.time(),
                    "result": "unschedulable",
                    "message": "0/3 nodes are available: 3 Insufficient cpu.",
                    "nodes": verdicts,
                    "counts": [{"reason": "Insufficient cpu", "n": 3}],
                }
                answer = {"pod": of, "node": None, "attempts": [attempt]}
            case path:
                return web.json_response({"error": f"{path} is not known"}, status=404)
        return web.json_response(answer)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        async with self.events(request) as response:
            while True:
                await asyncio.sleep(0.25)
                if not self.facts.rate:
                    continue
                batch = self.facts.batch(time.time(), max(self.facts.rate // 4, 1))
                self.sent += len(batch["writes"])
                await send(response, "batch", batch)
        raise AssertionError

    async def log(self, request: web.Request) -> web.StreamResponse:
        async with self.events(request) as response:
            number = 0
            while True:
                number += 1
                await send(response, "lines", {"lines": [f"{number} GET /index.html 200", HOSTILE]})
                await asyncio.sleep(0.2)
        raise AssertionError

    async def shell(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=["v5.channel.k8s.io"])
        await socket.prepare(request)
        await socket.send_bytes(b"\x01\x1b[32m$\x1b[0m ")
        async for message in socket:
            if message.data[:1] == b"\x00":
                await socket.send_bytes(b"\x01" + message.data[1:])
        return socket

    @contextlib.asynccontextmanager
    async def events(self, request: web.Request) -> AsyncIterator[web.StreamResponse]:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.streams += 1
        try:
            yield response
        finally:
            self.streams -= 1


async def send(response: web.StreamResponse, event: str, data: Json) -> None:
    body = web.json_response(data).text
    await response.write(f"event: {event}\ndata: {body}\n\n".encode())


class Played:
    """The server in a thread of its own, at `address`."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.address = ""
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        for transport in self.handlers.transports:
            transport.abort()
        for _ in range(3):  # transports close their sockets in the next turns of the loop
            await asyncio.sleep(0)

    async def _start(self) -> None:
        self.handlers = Handlers(self.facts)
        self._runner = web.AppRunner(self.handlers.app(), shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.address = f"http://127.0.0.1:{self.port}/"


@contextlib.contextmanager
def played(facts: Facts) -> Iterator[Played]:
    server = Played(facts)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.end()
