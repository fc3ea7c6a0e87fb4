"""Profiles: /debug/pprof/ with kube-apiserver's paths, of what Python can measure.

| profile | content |
|---|---|
| `profile?seconds=30` | stacks of all threads, sampled 100 times a second; those that wait as well |
| `goroutine` | stacks of threads, and the coroutines on which asyncio tasks wait |
| `threadcreate` | stacks of threads |
| `heap`, `allocs` | live objects by type |
| `block`, `mutex` | empty: Python does not measure contention |

Each is a gzipped protobuf for `go tool pprof`, and text with `?debug=1`. There is no `trace`.
"""

from __future__ import annotations

import asyncio
import gc
import html
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Final

from ostinato.profiling import heap, pprof, stacks
from ostinato.profiling.pprof import ValueType
from ostinato.profiling.stacks import Stack
from ostinato.server.publish.publisher import PROFILES
from ostinato.server.request import Request, Response, text_response
from ostinato.world import World

_SECONDS: Final = 30
_MOST_SECONDS: Final = 300
_RATE: Final = 100  # samples a second
_SAMPLES: Final = ValueType("samples", "count")
_STACK_TYPES: Final[Mapping[str, str]] = {
    "goroutine": "goroutine",
    "threadcreate": "threadcreate",
    "block": "contentions",
    "mutex": "contentions",
}
_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "allocs": "Live objects by type, as in heap",
    "block": "Always empty: waiting for locks is not measured",
    "goroutine": "Stacks of all threads and of the coroutines on which asyncio tasks wait",
    "heap": "Live objects by type",
    "mutex": "Always empty: contention is not measured",
    "profile": f"Stacks of all threads, sampled for ?seconds={_SECONDS}",
    "symbol": "Present for compatibility: profiles contain the names of functions",
    "threadcreate": "Stacks of all threads",
}
_NO_SNIFFING: Final = ("X-Content-Type-Options", "nosniff")


class Profiles:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_sampling = False

    async def answer(self, path: str, request: Request) -> Response:
        """Return the response for a path that begins with `PROFILES`."""
        name = path.removeprefix(PROFILES).removeprefix("/")
        if path == PROFILES:
            body = f'<a href="{PROFILES}/">Found</a>.\n\n'.encode()
            return Response(302, body, "text/html; charset=utf-8", (("Location", f"{PROFILES}/"),))
        if not path.startswith(f"{PROFILES}/"):
            return text_response(404, "404 page not found\n")
        match name:
            case "":
                return Response(200, self._index().encode(), "text/html; charset=utf-8", (_NO_SNIFFING,))
            case "symbol":
                return text_response(200, "num_symbols: 1\n")
            case "profile":
                return await self._profile(request)
            case "heap" | "allocs":
                return self._heap(name, request)
            case "goroutine" | "threadcreate" | "block" | "mutex":
                return self._stacks(name, request)
            case _:
                unknown = text_response(404, "Unknown profile\n")
                return unknown.with_headers((("X-Go-Pprof", "1"),))

    def _index(self) -> str:
        counts = {name: sum(self._stack_counts(name).values()) for name in _STACK_TYPES}
        counts["heap"] = counts["allocs"] = len(gc.get_objects())
        rows = "".join(
            f"<tr><td>{counts.get(name, 0)}</td><td><a href='{name}?debug=1'>{name}</a></td></tr>\n"
            for name in _DESCRIPTIONS
        )
        about = "".join(f"<li>{name}: {html.escape(text)}</li>\n" for name, text in _DESCRIPTIONS.items())
        return (
            f"<html>\n<head>\n<title>{PROFILES}/</title>\n</head>\n<body>\n{PROFILES}/\n<br>\n"
            f"<table>\n<thead><td>Count</td><td>Profile</td></thead>\n{rows}</table>\n"
            f'<a href="goroutine?debug=2">all stacks</a>\n<ul>\n{about}</ul>\n</body>\n</html>\n'
        )

    async def _profile(self, request: Request) -> Response:
        seconds = min(_positive(request.parameter("seconds"), _SECONDS), _MOST_SECONDS)
        if self._is_sampling:
            failed = text_response(500, "Could not enable CPU profiling: cpu profiling already in use\n")
            return failed.with_headers((("X-Go-Pprof", "1"),))
        self._is_sampling = True
        clock = self._world.clock
        # In a thread of its own: the event loop's thread is what is measured.
        sampler = self._world.executor.thread("profile", lambda: stacks.sample(clock, seconds, _RATE))
        try:
            found = await sampler.join() or Counter()
        finally:
            sampler.stop()
            self._is_sampling = False
        period = 1_000_000_000 // _RATE
        samples = ((stack, (count, count * period)) for stack, count in found.items())
        types = (_SAMPLES, ValueType("cpu", "nanoseconds"))
        return _attached("profile", pprof.encode(types, samples, now=clock.wall(), seconds=seconds, period=period))

    def _stacks(self, name: str, request: Request) -> Response:
        found = self._stack_counts(name)
        if _positive(request.parameter("debug"), 0):
            text = f"{name} profile: total {sum(found.values())}\n{stacks.listed(found.most_common())}"
            return text_response(200, text)
        types = [ValueType(_STACK_TYPES[name], "count")]
        samples = ((stack, (count,)) for stack, count in found.items())
        return _attached(name, pprof.encode(types, samples, now=self._world.clock.wall()))

    def _stack_counts(self, name: str) -> Counter[Stack]:
        if name not in ("goroutine", "threadcreate"):
            return Counter()
        found = Counter(stacks.thread_stacks().values())
        if name == "goroutine":
            found += stacks.task_stacks(asyncio.get_running_loop())
        return found

    def _heap(self, name: str, request: Request) -> Response:
        if _positive(request.parameter("gc"), 0):
            gc.collect()
        if _positive(request.parameter("debug"), 0):
            return text_response(200, heap.summary())
        objects: Counter[Stack] = Counter()
        sizes: Counter[Stack] = Counter()
        for each in gc.get_objects():
            kind = (f"{type(each).__module__}.{type(each).__qualname__}",)
            objects[kind] += 1
            sizes[kind] += sys.getsizeof(each, 0)
        types = (ValueType("inuse_objects", "count"), ValueType("inuse_space", "bytes"))
        samples = ((kind, (count, sizes[kind])) for kind, count in objects.items())
        return _attached(name, pprof.encode(types, samples, now=self._world.clock.wall()))


def _attached(name: str, data: bytes) -> Response:
    headers = (("Content-Disposition", f'attachment; filename="{name}"'), _NO_SNIFFING)
    return Response(200, data, "application/octet-stream", headers)


def _positive(text: str, otherwise: int) -> int:
    """Return a positive number; otherwise for anything else, as Go's pprof does."""
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) > 0 else otherwise
