"""Routes of the page: which path is answered by what."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.client.client import Client
from ostinato.client.discovery.mapping import AmbiguousResource, NoSuchResource
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.http.server import Answer, BodyTooLarge, HttpRequest, HttpResponse, HttpStream
from ostinato.page.answers.cluster_facts import ClusterFacts
from ostinato.page.answers.node_facts import NodeFacts
from ostinato.page.answers.object_facts import ObjectFacts
from ostinato.page.answers.past import past
from ostinato.page.answers.pod_facts import PodFacts
from ostinato.page.answers.query import BadQuery, NotFound, Query
from ostinato.page.facts import Denied, Fact, Ref
from ostinato.page.history.history import History
from ostinato.page.live.stream import Stream, TooManyPages
from ostinato.page.serving.access import Refused
from ostinato.page.serving.shell import shell
from ostinato.page.watching.cluster import Cluster
from ostinato.world import Clock

JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream; charset=utf-8"
_MAX_BODY: Final = 64 << 10
_USER: Final = "a user of this page"
_logger = logging.getLogger("ostinato.page")
_encode = msgspec.json.Encoder().encode


class About(Fact, frozen=True, kw_only=True):
    mode: str
    cluster: str
    version: str
    writes: bool
    started: float
    denied: list[Denied] = []


class _Deletion(msgspec.Struct):
    ref: Ref


class Routes:
    """Answers the requests below `/api/`, which are permitted."""

    def __init__(
        self,
        about: Callable[[], About],
        clock: Clock,
        client: Client,
        cluster: Cluster,
        history: History,
        stream: Stream,
    ) -> None:
        self._about = about
        self._clock = clock
        self._client = client
        self._cluster = cluster
        self._history = history
        self._stream = stream
        self._facts = ClusterFacts(clock, cluster)
        self._nodes = NodeFacts(cluster)
        self._objects = ObjectFacts(clock, client, cluster, self._facts, history)
        self._pods = PodFacts(clock, client, cluster, history.placements)
        self._get: dict[str, Callable[[Query], object]] = {
            "about": lambda _: about(),
            "alarms": self._alarms,
            "controllers": lambda _: {"controllers": [*history.samples.latest.values()]},
            "graph": lambda _: history.graph.graph(),
            "nodes": lambda _: {"nodes": self._nodes.nodes()},
            "scheduler": self._pods.scheduling,
        }
        self._await: dict[str, Callable[[Query], Awaitable[object]]] = {
            "find": self._find,
            "history": lambda query: past(query, history, clock),
            "object": self._objects.object,
            "objects": self._facts.objects,
            "pods/usage": self._pods.usage,
            "why": self._objects.why,
        }

    async def answer(self, request: HttpRequest, path: str) -> Answer:
        """Answer a request for a path below `/api/`."""
        query = Query(request.query)
        try:
            if request.method == "GET":
                return await self._answer_get(request, path, query)
            if request.method == "POST" and path == "delete":
                return await self._delete(request)
        except Refused as refused:
            return problem(refused.status, refused.why)
        except BadQuery as error:
            return problem(400, str(error))
        except NotFound as error:
            return problem(404, str(error))
        except TooManyPages:
            return problem(503, "too many pages are open; close one")
        except APIError as error:
            return problem(error.code if 400 <= error.code < 600 else 502, str(error))
        except TransportError as error:
            return problem(502, str(error))
        return problem(404 if request.method == "GET" else 405, "no such path")

    async def _answer_get(self, request: HttpRequest, path: str, query: Query) -> Answer:
        if path in self._get:
            return _json(self._get[path](query))
        if path in self._await:
            return _json(await self._await[path](query))
        if path == "stream":
            return await _stream(self._stream.subscribe())
        if path == "pods/log":
            return await _stream(self._pods.log(query))
        if path == "pods/exec":
            self._check_writes()
            return shell(request, query, self._client)
        return problem(404, "no such path")

    def _alarms(self, _: Query) -> object:
        self._stream.asked()
        return {"alarms": self._history.alarms.current()}

    async def _find(self, query: Query) -> Ref:
        """Return the object that a user names as for kubectl: `deploy`, `pods`, `Widget`."""
        try:
            info = await self._client.mapper.find(query.required("kind"))
        except (NoSuchResource, AmbiguousResource) as error:
            raise NotFound(str(error)) from None
        key = NamespacedName(query.text("namespace") if info.namespaced else "", query.required("name"))
        entry = self._cluster.find(Ref.of(info.gvk, key))
        if entry is not None:
            return Ref.of(entry.collection.info.gvk, key, entry.uid)
        changes = self._history.changes.of_object(Ref.of(info.gvk, key))
        if not changes:
            raise NotFound(f"{info.gvk.kind} {key} does not exist, or its kind is not watched")
        return changes[-1].ref

    async def _delete(self, request: HttpRequest) -> HttpResponse:
        self._check_writes()
        try:
            ref = msgspec.json.decode(await request.read(_MAX_BODY), type=_Deletion).ref
            view = Unstructured(ref.gvk)
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadQuery(f"body: {error}") from None
        except BodyTooLarge:
            return problem(413, "the body is too large")
        if not ref.uid:
            raise BadQuery("body: ref.uid: required; another object of this name could be deleted")
        self._history.changes.deleting(ref.uid, _USER)
        await self._client.delete(MetadataOf(view), ref.key, uid=ref.uid)
        _logger.info("object deleted through the page object=%s", ref)
        return _json({})

    def _check_writes(self) -> None:
        if not self._about().writes:
            raise Refused(403, "this page is read-only; start it with --page-writes")


def problem(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, _encode({"error": text}), JSON)


def _json(answer: object) -> HttpResponse:
    return HttpResponse(200, _encode(answer), JSON)


async def _stream(events: AsyncGenerator[bytes, None]) -> HttpStream:
    """Return a stream, whose first event is generated here: an error can still be answered."""
    first = await anext(events)

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            yield first
            async for each in events:
                yield each
        finally:
            await events.aclose()

    return HttpStream(chunks(), content_type=_EVENTS)
