"""Scene of one scenario: its namespace, variables, nodes, and the objects to clean up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.contract.player.history import History
from tests.contract.player.normalise import Normaliser, in_order
from tests.contract.player.observer import Observed
from tests.contract.player.paths import Json, Object
from tests.contract.player.server import PATCH_TYPES, WATCHED
from tests.contract.player.stage import Stage
from tests.contract.player.templates import substitute

_LEAST, _MOST = 0.05, 0.5  # interval in seconds between checks of watched objects
_MOMENT = 0.1  # maximum lag of a watch, in seconds


class Scene:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._run = "".join(random.choices("bcdfghjklmnpqrstvwxz", k=7))
        self.namespace = f"plane-{self._run}"
        self.variables: dict[str, Json] = {"ns": self.namespace, "run": self._run}
        if stage.agents:
            self.variables["node"] = stage.pool[0]
        self.cluster_scoped: list[str] = []  # paths of objects, deleted at the end
        self.mark = 0  # index of the first event of the history
        self._nodes: list[str] = []

    async def begin(self, nodes: Object | None) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.stage.server.call("POST", "/api/v1/namespaces", body)
        if nodes:
            await self.add_nodes(substitute(nodes, self.variables))
        needed = [("ServiceAccount", "default")]
        if self.stage.agents:
            needed.append(("ConfigMap", "kube-root-ca.crt"))

        async def furnished() -> bool:
            return all([await self.found({"kind": kind, "name": name}) for kind, name in needed])

        await self.until("ServiceAccount", furnished, 5)
        await self.settle(0.3, 3)

    async def end(self) -> None:
        server = self.stage.server
        pods = await server.path("Pod", self.namespace)
        self.stage.nodes.end(self.namespace)
        await server.call("DELETE", f"/api/v1/namespaces/{self.namespace}")
        if self.stage.agents:  # agents terminate the containers before the Pods are removed
            await server.call("DELETE", pods, {"gracePeriodSeconds": 1})

        async def emptied() -> bool:
            if not self.stage.agents:
                await server.call("DELETE", pods, {"gracePeriodSeconds": 0})
            return not await server.items("Pod", self.namespace)

        if not await self.until("Pod", emptied, 20 if self.stage.agents else 8):
            for pod in await server.items("Pod", self.namespace):
                path = f"{pods}/{pod['metadata']['name']}"
                await server.call("PATCH", path, {"metadata": {"finalizers": None}}, PATCH_TYPES["merge"])
                await server.call("DELETE", path, {"gracePeriodSeconds": 0})
        for path in reversed(self.cluster_scoped):
            await server.call("DELETE", path)
        for name in self._nodes:
            await self.stage.nodes.remove(name)

    async def add_nodes(self, nodes: Object) -> None:
        named = {f"{name}-{self._run}": spec for name, spec in nodes.items()}
        self._nodes += named
        await self.stage.nodes.add(named)

    async def found(self, step: Object) -> list[Object]:
        """The current objects that a step selects by name or selector."""
        server, kind = self.stage.server, step["kind"]
        if "name" in step:
            code, body = await server.call("GET", await server.path(kind, self.namespace, step["name"]))
            return [body] if code == 200 else []
        items = await server.items(kind, self.namespace, step.get("selector", ""))
        mine = self.stage.pool if self.stage.agents else self._nodes
        return [item for item in items if kind != "Node" or item["metadata"]["name"] in mine]

    def events(self) -> list[Observed]:
        return self.stage.observer.events(self.namespace)

    def history(self) -> History:
        """The history since the mark."""
        return History(self.events(), self.mark)

    def normal(self, answer: Json) -> Json:
        stage = self.stage
        normalise = Normaliser(self._run, self.namespace, self.events(), stage.pool, agents=stage.agents)
        return in_order(normalise(answer))

    async def until(self, kind: str, condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        """Whether a condition on objects of a kind became true in time."""
        end = time.monotonic() + seconds
        news = self.stage.observer.news(self.namespace)
        while True:
            news.clear()
            if await condition():
                return True
            if time.monotonic() > end:
                return False
            await asyncio.sleep(_LEAST)
            if kind in WATCHED:  # other kinds are polled
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(_MOST, end - time.monotonic())):
                        await news.wait()

    async def catch_up(self) -> None:
        """Wait until the watches have caught up with reads."""
        for _ in range(5):
            left = _MOMENT - self.stage.observer.quiet(self.namespace)
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def settle(self, quiet: float, seconds: float) -> None:
        """Wait until nothing was written for a while and no node action is pending, or until the timeout."""
        begun = time.monotonic()
        while (now := time.monotonic()) - begun < seconds:
            since = min(now - begun, self.stage.observer.quiet(self.namespace))
            if since >= quiet and not self.stage.nodes.pending(self.namespace):
                return
            await asyncio.sleep(max(quiet - since, 0.05))
