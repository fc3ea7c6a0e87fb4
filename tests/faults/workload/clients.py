"""Clients that read and write the same few keys, and record what they asked and what they got."""

from __future__ import annotations

import enum
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from tests.faults.history.records import NEVER, OK, UNKNOWN, History, Operation, group_of
from tests.faults.workload.api import NAMESPACES, Api, Lost, Object, decode_list, decode_object, path_of, query

_NEWEST = re.compile(r"current: (\d+)")


class Random(Protocol):
    def random(self) -> float: ...
    def randrange(self, stop: int) -> int: ...


class Mix(enum.Enum):
    """What clients do."""

    HOSTILE = enum.auto()  # few keys, stale preconditions: many conflicts
    PRODUCTIVE = enum.auto()  # most operations are writes that succeed


class Shared:
    """What the clients of one run share: the history, the keys, and the states that any of them has seen."""

    def __init__(self, history: History, keys: int = 8, padding: int = 0, prefix: str = "") -> None:
        """`prefix`: of the names of the keys, for runs that share a server."""
        self.history = history
        self.keys = [f"{NAMESPACES[n % 2]}/{prefix}k{n}" for n in range(keys)]
        self._owned = frozenset(self.keys)
        self.seen: dict[str, int] = {}  # resourceVersion of each key; stale ones make conflicts
        self.newest = 1  # the largest resourceVersion that was seen
        self.values = 0
        self.padding = "x" * padding

    def owns(self, found: Object) -> bool:
        """Whether an object is one of this run."""
        return found.key in self._owned

    def value(self) -> int:
        self.values += 1
        return self.values

    def saw(self, key: str, version: int) -> None:
        self.seen[key] = version
        self.newest = max(self.newest, version)


class ClientTask:
    """One client: an operation at a time."""

    def __init__(
        self,
        name: str,
        api: Api,
        shared: Shared,
        rng: Random,
        clock: Callable[[], float],
        mix: Mix = Mix.HOSTILE,
    ) -> None:
        self._name = name
        self._api = api
        self._shared = shared
        self._rng = rng
        self._clock = clock
        self._mix = mix
        self._steps: list[tuple[float, Callable[[], Awaitable[object]]]] = [
            (0.28, self.update),
            (0.50, self.create),
            (0.62, self._delete),
            (0.82, self._get),
            (0.94, self._list),
            (1.00, self._pages),
        ]

    async def step(self) -> None:
        draw = self._rng.random()
        if self._mix is Mix.PRODUCTIVE and draw < 0.98:
            await self._write_known(draw)
            return
        for limit, run in self._steps:
            if draw < limit:
                await run()
                return

    async def _write_known(self, draw: float) -> None:
        """Create a key that is absent, as far as is known; else update it, or delete it now and then."""
        shared = self._shared
        key = shared.keys[self._rng.randrange(len(shared.keys))]
        if shared.seen.get(key) is None:
            done = await self.create(key)
        elif draw < 0.85:
            done = await self.update(key)
        else:
            done = await self._delete(key)
        if done.outcome in ("AlreadyExists", "Conflict", "NotFound"):
            await self._get(key)  # what another client has written

    def _key(self) -> str:
        keys = self._shared.keys
        draw = self._rng.random()  # some keys are hot
        return keys[int(draw * draw * len(keys))]

    def _begin(self, kind: str, key: str, **facts: object) -> Operation:
        history = self._shared.history
        operation = Operation(history.number(), self._name, kind, key, history.tick(), when=self._clock())
        for name, fact in facts.items():
            setattr(operation, name, fact)
        history.operations.append(operation)
        return operation

    async def _call(
        self, operation: Operation, method: str, path: str, query: str = "", body: bytes = b""
    ) -> bytes | None:
        """Send it; return the body of a success, else record the outcome and return None."""
        history = self._shared.history
        try:
            status, data = await self._api.call(method, path, query, body)
        except Lost:
            operation.returned = history.tick()
            await self._api.available()
            return None
        operation.returned = history.tick()
        if status < 300:
            operation.outcome = OK
            return data
        answer = decode_object(data)
        if operation.kind in ("get", "list") and answer.reason == "Timeout":
            found = _NEWEST.search(answer.message)
            operation.version = int(found[1]) if found else 0
        operation.denied = status == 503 and answer.message.startswith("the store cannot write")
        operation.outcome = UNKNOWN if status >= 500 and answer.reason != "Timeout" else answer.reason
        if operation.outcome == "Timeout" and operation.kind not in ("get", "list"):
            operation.outcome = UNKNOWN
        return None

    async def _write(self, kind: str, method: str, key: str, path: str, expected: int) -> Operation:
        value = self._shared.value()
        name = key.partition("/")[2]
        metadata: dict[str, object] = {"name": name, "labels": {"group": str(group_of(value))}}
        if expected:
            metadata["resourceVersion"] = str(expected)
        body: dict[str, object] = {"metadata": metadata, "data": {"value": str(value), "padding": self._shared.padding}}
        operation = self._begin(kind, key, value=value, expected=expected)
        data = await self._call(operation, method, path, "", msgspec.json.encode(body))
        if data is not None:
            operation.version = decode_object(data).version
            self._shared.saw(key, operation.version)
        return operation

    async def create(self, key: str = "") -> Operation:
        key = key or self._key()
        return await self._write("create", "POST", key, path_of(key.partition("/")[0] + "/"), 0)

    async def update(self, key: str = "") -> Operation:
        key = key or self._key()
        expected = self._shared.seen.get(key, 0)
        return await self._write("update", "PUT", key, path_of(key), expected if self._rng.random() < 0.9 else 0)

    async def _delete(self, key: str = "") -> Operation:
        key = key or self._key()
        expected = self._shared.seen.get(key, 0) if self._rng.random() < 0.5 else 0
        body = b'{"preconditions":{"resourceVersion":"%d"}}' % expected if expected else b""
        operation = self._begin("delete", key, expected=expected)
        await self._call(operation, "DELETE", path_of(key), "", body)
        if self._mix is Mix.PRODUCTIVE and operation.outcome in (OK, "NotFound"):
            self._shared.seen.pop(key, None)
        return operation

    async def _get(self, key: str = "") -> None:
        asked = "" if key else self._resource_version()
        key = key or self._key()
        operation = self._begin("get", key, asked=asked)
        data = await self._call(operation, "GET", path_of(key), query(resourceVersion=asked))
        if data is not None:
            found = decode_object(data)
            operation.version, operation.value = found.version, found.value
            self._shared.saw(key, found.version)
        elif self._mix is Mix.PRODUCTIVE and operation.outcome == "NotFound":
            self._shared.seen.pop(key, None)

    def _resource_version(self) -> str:
        draw = self._rng.random()
        if draw < 0.6:
            return ""
        if draw < 0.7:
            return "0"
        return str(
            max(1, self._shared.newest - self._rng.randrange(20) + (self._rng.randrange(12) if draw > 0.95 else 0))
        )

    def _scope(self) -> str:
        draw = self._rng.randrange(3)
        return f"{NAMESPACES[draw]}/" if draw < 2 else ""

    async def list_all(self) -> None:
        """Read all keys in their newest state."""
        operation = self._begin("list", "")
        data = await self._call(operation, "GET", path_of(""))
        if data is not None:
            self._read_items(operation, data)

    async def _list(self) -> None:
        asked, scope = self._resource_version(), self._scope()
        group = self._rng.randrange(3) if self._rng.random() < 0.25 else None
        is_exact = asked not in ("", "0") and self._rng.random() < 0.5
        match = None if asked == "" else "Exact" if is_exact else "NotOlderThan"
        operation = self._begin("list", scope, asked=asked, exact=is_exact, group=group)
        selector = None if group is None else f"group={group}"
        text = query(resourceVersion=asked, resourceVersionMatch=match, labelSelector=selector)
        data = await self._call(operation, "GET", path_of(scope), text)
        if data is not None:
            self._read_items(operation, data)

    def _read_items(self, operation: Operation, data: bytes) -> str:
        found = decode_list(data)
        operation.version = int(found.metadata.resource_version)
        items = {item.key: (item.version, item.value) for item in found.items if self._shared.owns(item)}
        operation.items = {**operation.items, **items}
        for key, (version, _) in items.items():
            if operation.asked == "":
                self._shared.saw(key, version)
        return found.metadata.continue_

    async def _pages(self) -> None:
        """A list in pages is one read; the pages after the first are of the same state."""
        scope = self._scope()
        operation = self._begin("list", scope)
        text = query(limit=2)
        while True:
            version = operation.version
            data = await self._call(operation, "GET", path_of(scope), text)
            if data is None:
                return
            token = self._read_items(operation, data)
            if version and version != operation.version:
                operation.items = {**operation.items, f"{scope}?": (1 << 60, 0)}  # two states: a violation of S6
            if not token:
                return
            operation.outcome, operation.returned = UNKNOWN, NEVER
            text = query(limit=2, **{"continue": token})
