"""Set up, observe and clean up the server for one run of an operator."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Self

import msgspec

from bench.operators.gadget import Gadget, GadgetSpec, definition
from ostinato.api.errors import AlreadyExists, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.client.transport.protocol import Request, lines, path_of
from ostinato.kinds.core_v1 import ConfigMap

WRITERS = 16
TEXT = "x" * 200


class _Named(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _Status(msgspec.Struct, rename="camel"):
    config_map: str = ""


class _Seen(msgspec.Struct):
    metadata: _Named
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    object: _Seen


class _Versioned(msgspec.Struct, rename="camel"):
    resource_version: str


class _Page(msgspec.Struct):
    metadata: _Versioned


_EVENT, _PAGE = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Page)


class Filling:
    """The Gadgets in a namespace."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._client = Client.connect(Config.load(path=kubeconfig, namespace=namespace))
        self._gadgets = path_of("apis", "bench.example.dev", "v1", "namespaces", namespace, "gadgets")

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def fill(self, count: int) -> None:
        """Create the definition, the namespace and the Gadgets."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        for each in (definition(), namespace):
            with contextlib.suppress(AlreadyExists):
                await self._client.create(each)
        await self._served()
        missing = (
            Gadget(metadata=ObjectMeta(name=f"gadget-{number}"), spec=GadgetSpec(text=TEXT)) for number in range(count)
        )

        async def write() -> None:
            for each in missing:
                await self._client.create(each)

        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(write())

    async def _served(self) -> None:
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(NotFound):
                    async for _ in self._client.list(Gadget):
                        break
                    return
                await asyncio.sleep(0.1)

    async def converged(self, count: int) -> None:
        """Wait until this number of Gadgets has a status.

        Decodes as little of each event as possible, because it shares the processors with the measured process. If the
        server ends a slow watch, it is resumed.
        """
        done: set[str] = set()
        transport = self._client.transport
        async with await transport.request(Request("GET", self._gadgets, query=[("limit", "1")])) as answer:
            version = _PAGE.decode(await answer.read()).metadata.resource_version
        while len(done) < count:
            since = [("watch", "1"), ("resourceVersion", version)]
            async with await transport.request(Request("GET", self._gadgets, query=since, stream=True)) as answer:
                async for line in lines(answer.chunks()):
                    seen = _EVENT.decode(line).object
                    version = seen.metadata.resource_version
                    if seen.status.config_map:
                        done.add(seen.metadata.name)
                        if len(done) == count:
                            return

    async def check(self, count: int) -> None:
        """Raise AssertionError unless all objects have the expected state."""
        maps = {each.metadata.name: each async for each in self._client.list(ConfigMap, namespace=self.namespace)}
        gadgets = [each async for each in self._client.list(Gadget, namespace=self.namespace)]
        assert len(gadgets) == count
        for gadget in gadgets:
            made = maps[gadget.metadata.name]
            assert made.data == {"text": gadget.spec.text}, made
            assert [each.uid for each in made.metadata.owner_references] == [gadget.metadata.uid], made
            assert gadget.status is not None, gadget
            assert gadget.status.config_map == gadget.metadata.name, gadget
            assert gadget.status.observed_generation == gadget.metadata.generation, gadget

    async def empty(self) -> None:
        for kind in (Gadget, ConfigMap):
            await self._client.delete_all_of(kind, namespace=self.namespace)
