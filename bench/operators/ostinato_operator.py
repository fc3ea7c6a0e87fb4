"""Ostinato's operator: `python -m bench.operators.ostinato_operator KUBECONFIG NAMESPACE WORKERS`."""

from __future__ import annotations

import sys

from bench.operators.gadget import Gadget
from ostinato import Context, Manager, ObjectMeta, controller
from ostinato.cache.informers import Settings
from ostinato.client import Config
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import CacheOptions


async def reconcile(gadget: Gadget, ctx: Context) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(name=gadget.metadata.name), data={"text": gadget.spec.text})
    made = await ctx.apply(wanted, owner=gadget)
    await ctx.status(config_map=made.metadata.name)


def main() -> None:
    kubeconfig, namespace, workers = sys.argv[1:]
    gadgets = controller(Gadget, name="gadgets", owns=[ConfigMap], max_concurrent=int(workers))(reconcile)
    caches = CacheOptions(defaults=Settings(namespaces=(namespace,)))
    Manager(Config.load(path=kubeconfig), caches=caches).add(gadgets).run()


if __name__ == "__main__":
    main()
