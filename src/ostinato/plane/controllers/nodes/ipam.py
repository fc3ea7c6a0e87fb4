"""Node IPAM controller: gives each Node a Pod CIDR of each IP family, from the ranges of the cluster.

- Off unless the cluster has ranges (`Options.pod_ranges`).
- A Node that has Pod CIDRs keeps them: the API server does not change them either. Those of a deleted Node are free.
- Ranges of Services are not used for Pods.
- A Node gets CIDRs of all families or none. Without a free one it has the Event CIDRNotAvailable, and is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Final

from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.cache import Deleted, Entry, Event
from ostinato.cache.readable_store import ReadableStore
from ostinato.client.patching import StrategicMergePatch
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.core_v1 import Node
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.network.cidr_pool import CidrPool
from ostinato.plane.network.pod_cidrs import Network

_logger = logging.getLogger("ostinato.plane.nodes")

_RETRY: Final = 10.0  # seconds until a Node without Pod CIDRs is tried again


def add_to(manager: Manager, options: Options) -> None:
    if not options.pod_ranges:
        return
    pools = [each.pool(options.service_ranges) for each in options.pod_ranges]
    reconciler = NodeIpam(pools, manager.informers.of(Node).store)
    (
        manager.build("node-ipam-controller")
        .watches(Node, handler=ForEvent(reconciler.changed))
        .with_options(max_concurrent=1)
        .complete(reconciler)
    )


class NodeIpam:
    def __init__(self, pools: list[CidrPool], nodes: ReadableStore) -> None:
        self._pools = pools
        self._nodes = nodes
        self._of_nodes: dict[str, tuple[Network, ...]] = {}
        self._is_complete = False  # the CIDRs of all Nodes are known

    def changed(self, event: Event) -> Iterable[NamespacedName]:
        if isinstance(event, Deleted):
            self._release(event.key.name)
            return ()
        return () if self._record(event.object) else (event.key,)

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        if not self._is_complete:
            for entry in self._nodes.entries():
                self._record(entry)
            self._is_complete = True
        node = await ctx.client.get(Node, request, missing=None)
        if node is None or node.spec.pod_cidrs:
            return None
        taken = self._of_nodes.get(request.name) or self._take()  # a patch without an answer is sent again
        if not taken:
            ctx.event(node, "CIDRNotAvailable", f"Node {request.name} status is now: CIDRNotAvailable")
            return Result(requeue_after=_RETRY)
        self._of_nodes[request.name] = taken
        texts = [str(each) for each in taken]
        patch = StrategicMergePatch({"spec": {"podCIDR": texts[0], "podCIDRs": texts}})
        try:
            await ctx.client.patch(Node, request, patch)
        except NotFound:
            self._release(request.name)
        except APIError:
            self._release(request.name)  # the next event shows which it has
            raise
        return None

    def _take(self) -> tuple[Network, ...]:
        """Take a CIDR of each pool; none if one of them has no free one."""
        chosen = [pool.take() for pool in self._pools]
        taken = tuple(each for each in chosen if each is not None)
        if len(taken) == len(chosen):
            return taken
        for each in taken:
            self._free(each)
        return ()

    def _record(self, entry: Entry) -> bool:
        """Occupy the CIDRs of a Node; return whether it has any."""
        spec = entry.read(Node).spec
        found = [*spec.pod_cidrs] or ([spec.pod_cidr] if spec.pod_cidr else [])
        networks = tuple(ip_network(each, strict=False) for each in found)
        if networks and networks != self._of_nodes.get(entry.key.name):
            self._release(entry.key.name)
            self._of_nodes[entry.key.name] = networks
            for each in networks:
                if not any(pool.occupy(each) for pool in self._pools):
                    _logger.info("pod CIDR outside of the cluster's node=%s cidr=%s", entry.key.name, each)
        return bool(networks)

    def _release(self, name: str) -> None:
        for each in self._of_nodes.pop(name, ()):
            self._free(each)

    def _free(self, network: Network) -> None:
        """Free what no other Node has."""
        if all(network not in each for each in self._of_nodes.values()):
            for pool in self._pools:
                pool.release(network)
