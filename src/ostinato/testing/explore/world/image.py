"""Image: the store that every world of an exploration starts from: bootstrap objects, definitions, given objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.api.scheme import Scheme
from ostinato.client.client import Client
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request.known_applies import KnownApplies
from ostinato.testing.explore.scenario import manifest_of
from ostinato.testing.explore.world.disk import Disk, Entries, Objects
from ostinato.testing.explore.world.objects import uids_of
from ostinato.testing.snapshot import NAMESPACE, snapshot
from ostinato.webhook.webhooks import Webhooks
from ostinato.world import Simulation


class KnownKinds(Scheme):
    """The kinds of an image, so that clients need no discovery."""

    def __init__(self, infos: Mapping[GroupVersionKind, KindInfo]) -> None:
        super().__init__()
        self._infos = infos

    def recognizes(self, gvk: GroupVersionKind) -> bool:
        return gvk in self._infos or super().recognizes(gvk)

    def info(self, gvk: GroupVersionKind) -> KindInfo:
        found = self._infos.get(gvk)
        return super().info(gvk) if found is None else found


_ESTABLISHED = 30.0  # virtual seconds


class Image(NamedTuple):
    """
    - `version`, `objects`: the store.
    - `kinds`: by collection, the kind in its storage version.
    - `infos`: names and scope of the kinds.
    - `entries`: of the objects, as servers have them; grows with the first world.
    - `uids`: of the objects.
    - `applies`: what the servers of worlds have made of equal requests.
    """

    version: int
    objects: Objects
    kinds: dict[str, GroupVersionKind]
    infos: dict[GroupVersionKind, KindInfo]
    entries: Entries
    uids: frozenset[str]
    applies: KnownApplies


def make_image(definitions: Iterable[dict[str, Any]], given: Sequence[Any], webhooks: Sequence[Webhooks] = ()) -> Image:
    """Start a server, install the definitions, create the given objects, and take its store.

    `webhooks`: of the operator; they are registered at the end.
    """
    simulation = Simulation("image")

    async def main() -> Image:
        base = await snapshot(simulation)
        version, objects = base.load()
        disk = Disk(version, {(name, key): (at, data) for name, key, at, data in objects}, lambda _: None)
        server = Server(simulation, disk)
        await server.start(bootstrapped=True)
        async with Client(InProcessTransport(server), world=simulation, namespace=NAMESPACE) as client:
            for definition in definitions:
                await client.create(definition)
                name = definition["metadata"]["name"]
                await client.wait_for(CustomResourceDefinition, name, "Established", timeout=_ESTABLISHED)
            for each in given:
                await client.create(manifest_of(each))
            for configuration in (each for some in webhooks for each in some.configurations()):
                await client.create(configuration)
        stored = [each for each in server.registry if each.collection is not None]
        kinds = {
            each.collection.name: each.collection.kind or each.gvk for each in stored if each.collection is not None
        }
        infos = {
            each.gvk: KindInfo(each.gvk, each.gvr.resource, each.gvk.kind.lower(), each.namespaced)
            for each in server.registry
        }
        await server.close()
        return Image(
            disk.version, disk.objects, kinds, infos, Entries(disk.objects), uids_of(disk.objects), KnownApplies()
        )

    return simulation.run(main())
