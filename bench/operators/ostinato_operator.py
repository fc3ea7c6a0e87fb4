"""Ostinato's operator: `python -m bench.operators.ostinato_operator KUBECONFIG NAMESPACE WORKERS WAY`. The ways are:

- `apply`: server-side apply.
- `create`: reads, then creates or updates, with the requests of controller-runtime's `CreateOrUpdate`.
- `post`: creates unconditionally, like kopf's operator, and does not watch ConfigMaps.
- `handlers`: the handlers of kopf's operator, with `ostinato.on`.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from bench.operators.gadget import Gadget
from ostinato import Context, Manager, ObjectMeta, controller, on
from ostinato.api.errors import AlreadyExists
from ostinato.api.owners import set_controller_reference
from ostinato.cache.informers import InformerSettings
from ostinato.client import Config
from ostinato.controllers.controller import Controller
from ostinato.frontends.handlers.objects.children import adopt
from ostinato.frontends.handlers.operator import Handlers
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import CacheOptions


def wanted(gadget: Gadget) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=gadget.metadata.name), data={"text": gadget.spec.text})


async def apply(gadget: Gadget, ctx: Context) -> None:
    made = await ctx.apply(wanted(gadget), owner=gadget)
    await ctx.status(config_map=made.metadata.name)


async def create(gadget: Gadget, ctx: Context) -> None:
    found = await ctx.client.get(ConfigMap, gadget.metadata, missing=None)
    if found is None:
        found = wanted(gadget)
        found.metadata.namespace = gadget.metadata.namespace
        set_controller_reference(gadget, found)
        found = await ctx.client.create(found)
    elif found.data != wanted(gadget).data or set_controller_reference(gadget, found):
        found.data = wanted(gadget).data
        found = await ctx.client.update(found)
    await ctx.status(config_map=found.metadata.name)


async def post(gadget: Gadget, ctx: Context) -> None:
    made = wanted(gadget)
    made.metadata.namespace = gadget.metadata.namespace
    set_controller_reference(gadget, made)
    with suppress(AlreadyExists):
        await ctx.client.create(made)
    await ctx.status(config_map=made.metadata.name)


def gadgets_controller(way: str, workers: int) -> Controller:
    reconcile = {"apply": apply, "create": create, "post": post}[way]
    owns = [] if way == "post" else [ConfigMap]
    made = controller(Gadget, name="gadgets", owns=owns, max_concurrent=workers, runs_for_own_writes=False)
    return made(reconcile)


def gadgets_handlers(workers: int) -> Handlers:
    handlers = Handlers("gadgets")

    @on.startup(registry=handlers)
    def configure(settings: Any) -> None:
        settings.batching.worker_limit = workers

    @on.resume(Gadget, registry=handlers)
    @on.create(Gadget, registry=handlers)
    @on.update(Gadget, registry=handlers)
    async def gadgets(name: str, spec: Any, meta: Any, patch: Any, body: Any, ctx: Context) -> None:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": spec["text"]}}
        adopt(made, body)
        with suppress(AlreadyExists):
            await ctx.client.create(made)
        patch.status["configMap"] = name
        patch.status["observedGeneration"] = meta["generation"]

    return handlers


def main() -> None:
    kubeconfig, namespace, workers, way = sys.argv[1:]
    gadgets = gadgets_handlers(int(workers)) if way == "handlers" else gadgets_controller(way, int(workers))
    caches = CacheOptions(defaults=InformerSettings(namespaces=(namespace,)))
    Manager(Config.load(path=kubeconfig), caches=caches).add(gadgets).run()


if __name__ == "__main__":
    main()
