"""EventRateLimit: limits the rate of Event writes per server, namespace, user, or source and object.

Each limit is a token bucket of `burst` tokens refilled with `qps` per second; keyed limits keep the `cacheSize` latest
buckets. Dry runs take no token. As in kube-apiserver, Events of events.k8s.io are not limited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.errors import TooManyRequests
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.resources.strategy import Json
from ostinato.world import Clock

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_CACHE_SIZE = 4096
_SOURCE = (("source", "component"), ("source", "host"))
_OBJECT = tuple(("involvedObject", field) for field in ("kind", "namespace", "name", "uid", "apiVersion"))


class Limit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    type: str
    qps: int
    burst: int
    cache_size: int = 0


class EventRateLimit(Plugin):
    covers = resources("events")

    def __init__(self, clock: Clock, limits: list[Limit]) -> None:
        self._limiters = [_Limiter(clock, limit) for limit in limits]

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation not in ("CREATE", "UPDATE") or options.dry_run:
            return
        assert obj is not None
        reached = [why for limiter in self._limiters if (why := limiter.refusal(context, obj))]
        if reached:
            raise TooManyRequests.overloaded(reached[0] if len(reached) == 1 else f"[{', '.join(reached)}]")


class _Limiter:
    def __init__(self, clock: Clock, limit: Limit) -> None:
        self._clock = clock
        self._limit = limit
        self._key = _KEYS[limit.type]
        self._most = 1 if limit.type == "Server" else limit.cache_size or _CACHE_SIZE
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by key: tokens, time of the last update

    def refusal(self, context: Context, event: Json) -> str:
        """Take a token; the rejection message if there is none, else ""."""
        key, now = self._key(context, event), self._clock.monotonic()
        tokens, since = self._buckets.get(key, (float(self._limit.burst), now))
        tokens = min(float(self._limit.burst), tokens + (now - since) * self._limit.qps)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return "" if allowed else f"limit reached on type {self._limit.type} for key {key}"


def _source_and_object(_: Context, event: Json) -> str:
    return "".join(str((event.get(part) or {}).get(field, "")) for part, field in (*_SOURCE, *_OBJECT))


_KEYS: dict[str, Callable[[Context, Json], str]] = {
    "Server": lambda _, __: "",
    "Namespace": lambda context, _: context.route.namespace,
    "User": lambda context, _: context.request.user.name if context.request.user else "",
    "SourceAndObject": _source_and_object,
}
LIMIT_TYPES = tuple(_KEYS)
