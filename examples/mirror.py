"""Secrets of one cluster, mirrored to another: an operator that is connected to two API servers.

    $ SOURCE_KUBECONFIG=hub.kubeconfig ostinato run --kubeconfig edge.kubeconfig examples/mirror.py

Label a Secret in the source cluster, and it appears in the cluster of the operator, in the same namespace:

    $ kubectl --kubeconfig hub.kubeconfig label secret registry example.dev/mirror=true

- The manager is connected to the cluster that it writes to. The caches of the source are added to it: they are synced
  before the first reconcile, and need read access only.
- Level-based: each reconcile compares source and copy, so that a change, a deletion and a removed label on either side
  are corrected, also those that happened while the operator was down.
- Only Secrets with the label of the operator are overwritten or deleted in the target cluster.
"""

import os

from ostinato import CachedClient, Client, Informers, Manager, NamespacedName, ObjectMeta
from ostinato.client import Config
from ostinato.controllers import Context, Controller, Request, having_labels
from ostinato.crd import Access
from ostinato.kinds.core_v1 import Secret

WANTED = "example.dev/mirror"  # on a Secret of the source cluster
COPY = "example.dev/mirrored"  # on its copy


def add_mirror(manager: Manager, source: Client) -> Controller:
    """Add the controller, and the caches of the source cluster that it reads."""
    there = Informers(source)
    sources = CachedClient(source, there)

    async def mirror(request: Request, ctx: Context) -> None:
        secret = await sources.get(Secret, request, missing=None)
        copy = await ctx.client.get(Secret, request, missing=None)
        if secret is not None and secret.metadata.labels.get(WANTED) == "true":
            if copy is not None and COPY not in copy.metadata.labels:
                ctx.event(copy, "NotMirrored", f"Secret {request} exists and is not a copy", kind="Warning")
                return
            labels = {COPY: "true"}
            metadata = ObjectMeta(name=request.name, namespace=request.namespace, labels=labels)
            await ctx.apply(Secret(metadata=metadata, type=secret.type, data=secret.data))
        elif copy is not None and COPY in copy.metadata.labels:
            await ctx.client.delete(copy, missing_ok=True)

    manager.add(there)
    return (
        manager.build("mirror")
        .watches(Secret, map_to=same_name, informers=there)
        .watches(Secret, map_to=same_name, predicates=[having_labels(COPY)])
        .needs(Access(groups=("",), resources=("secrets",), verbs=("create", "patch", "delete")))
        .complete(mirror)
    )


def same_name(secret: Secret) -> list[NamespacedName]:
    return [NamespacedName(secret.metadata.namespace, secret.metadata.name)]


if "SOURCE_KUBECONFIG" in os.environ:
    manager = Manager()
    add_mirror(manager, Client.connect(Config.load(path=os.environ["SOURCE_KUBECONFIG"]), world=manager.world))
    manager.run()
