"""Answers about Pods: logs as they are written, usage over time, and where the scheduler placed them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.quantity import Quantity
from ostinato.client.client import Client
from ostinato.client.subresources.pods import LogOptions
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.page.answers.query import NotFound, Query
from ostinato.page.facts import Fact, Ref
from ostinato.page.history.runs import Placements
from ostinato.page.watching.cluster import Cluster
from ostinato.world import Clock

_TAIL: Final = 1_000  # lines
_OPENED: Final = b":\n\n"  # a comment: answers the request before there is a line
_MAX_LINE: Final = 16 << 10  # characters
_MAX_PREVIOUS: Final = 4 << 20  # bytes of the log of a previous container, which is read at once
_MAX_PODS: Final = 50  # with usage
_MAX_SAMPLES: Final = 180
_SAMPLE: Final = 5.0  # seconds between two samples
_METRICS: Final = Unstructured.of("metrics.k8s.io/v1beta1", "PodMetrics")
_encode = msgspec.json.Encoder().encode


class UsageSample(Fact, frozen=True):
    at: float
    cpu: float  # cores
    memory: float  # bytes


class Usage(Fact, frozen=True):
    samples: list[UsageSample]
    error: str | None = None


class NodeVerdict(Fact, frozen=True, kw_only=True):
    node: str
    plugin: str
    reason: str
    score: int | None = None


class ReasonCount(Fact, frozen=True):
    reason: str
    n: int


class Attempt(Fact, frozen=True, kw_only=True):
    at: float
    result: str
    message: str
    nodes: list[NodeVerdict]
    counts: list[ReasonCount]


class Scheduling(Fact, frozen=True, kw_only=True):
    pod: Ref
    node: str | None
    attempts: list[Attempt]


class PodFacts:
    def __init__(self, clock: Clock, client: Client, cluster: Cluster, placements: Placements) -> None:
        self._clock = clock
        self._client = client
        self._cluster = cluster
        self._placements = placements
        self._usage: OrderedDict[tuple[str, str], deque[UsageSample]] = OrderedDict()

    async def log(self, query: Query) -> AsyncGenerator[bytes, None]:
        """Yield the log as server-sent events until the container ends."""
        name, namespace = query.segment("name"), query.segment("namespace")
        options: LogOptions = {"tail_lines": _TAIL}
        if container := query.text("container"):
            options["container"] = container
        previous = query.flag("previous")
        if previous:
            options |= {"previous": True, "limit_bytes": _MAX_PREVIOUS}
        yield _OPENED
        try:
            if previous:
                text = await self._client.pods.log(name, namespace=namespace, **options)
                yield _lines(text.splitlines()[-_TAIL:])
            else:
                async with aclosing(self._client.pods.follow(name, namespace=namespace, **options)) as lines:  # type: ignore[type-var]
                    async for line in lines:
                        yield _lines([line])
        except (APIError, TransportError) as error:
            yield b"event: problem\ndata: " + _encode({"error": str(error)}) + b"\n\n"
        yield b"event: end\ndata: {}\n\n"

    async def usage(self, query: Query) -> Usage:
        """Take a sample, unless the last one is recent; return all that are known."""
        where = (query.segment("namespace"), query.segment("name"))
        samples = self._usage.setdefault(where, deque(maxlen=_MAX_SAMPLES))
        self._usage.move_to_end(where)
        if len(self._usage) > _MAX_PODS:
            self._usage.popitem(last=False)
        now, error = self._clock.wall(), None
        if not samples or now - samples[-1].at >= _SAMPLE:
            try:
                found = await self._client.get(_METRICS, where[1], namespace=where[0])
                samples.append(_sample(now, found))
            except (APIError, TransportError) as problem:
                error = f"no usage: {problem}"
        return Usage([*samples], error)

    def scheduling(self, query: Query) -> Scheduling:
        wanted = Ref("v1", "Pod", query.required("namespace"), query.required("name"))
        entry = self._cluster.find(wanted)
        if entry is None:
            raise NotFound(f"{wanted} does not exist")
        node = (entry.dict().get("spec") or {}).get("nodeName")
        attempts = [
            Attempt(
                at=each.at,
                result="scheduled" if each.placement.node else "unschedulable",
                message=each.placement.message,
                nodes=[
                    *(
                        NodeVerdict(node=verdict.node, plugin=verdict.plugin, reason=verdict.reason)
                        for verdict in each.placement.verdicts
                    ),
                    *(
                        NodeVerdict(node=name, plugin="", reason="", score=score)
                        for name, score in each.placement.scores.items()
                    ),
                ],
                counts=[ReasonCount(reason, n) for reason, n in each.placement.counts.items()],
            )
            for each in reversed(self._placements.of(entry.uid))
        ]
        return Scheduling(pod=Ref("v1", "Pod", wanted.namespace, wanted.name, entry.uid), node=node, attempts=attempts)


def _lines(lines: list[str]) -> bytes:
    return b"event: lines\ndata: " + _encode({"lines": [each[:_MAX_LINE] for each in lines]}) + b"\n\n"


def _sample(now: float, metrics: dict[str, Any]) -> UsageSample:
    usage = [each.get("usage") or {} for each in metrics.get("containers") or ()]
    return UsageSample(now, _sum(usage, "cpu"), _sum(usage, "memory"))


def _sum(usage: list[dict[str, Any]], name: str) -> float:
    return sum(Quantity.from_json(each.get(name)).nanos for each in usage) / 1e9
