"""Read the objects that Pods refer to: ConfigMaps, Secrets, claims, Services and tokens.

Objects are read from the API server, not from a cache: a Pod may be bound right after they were created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ostinato.api.object import Object
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.kinds.core_v1 import (
    ConfigMap,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Secret,
    Service,
    ServiceAccountTokenProjection,
)
from ostinato.kinds.node_v1 import RuntimeClass
from ostinato.kinds.storage_v1 import CSIDriver, VolumeAttachment
from ostinato.plane.node.volumes.contents import Token
from ostinato.plane.node.volumes.tokens import PodTokens
from ostinato.world import World

Kind = TypeVar("Kind", bound=Object)


class ObjectReader:
    """Reads on behalf of one node. Missing objects are None."""

    def __init__(self, client: Client, world: World) -> None:
        self._client = client
        self._tokens = PodTokens(client, world)

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return await self._get(ConfigMap, name, namespace)

    async def secret(self, namespace: str, name: str) -> Secret | None:
        return await self._get(Secret, name, namespace)

    async def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return await self._get(PersistentVolumeClaim, name, namespace)

    async def persistent_volume(self, name: str) -> PersistentVolume | None:
        return await self._get(PersistentVolume, name, "")

    async def runtime_handler(self, name: str) -> str:
        """Return the handler of a RuntimeClass; `NotFound` if it does not exist."""
        return (await self._client.get(RuntimeClass, name)).handler

    async def token(self, pod: Pod, asked: ServiceAccountTokenProjection) -> str:
        return await self._tokens.get(pod, asked)

    async def issue_token(self, pod: Pod, asked: ServiceAccountTokenProjection) -> Token:
        """Return a token with its expiration."""
        return await self._tokens.issue(pod, asked)

    async def csi_driver(self, name: str) -> CSIDriver | None:
        return await self._get(CSIDriver, name, "")

    async def volume_attachment(self, name: str) -> VolumeAttachment | None:
        return await self._get(VolumeAttachment, name, "")

    async def volumes_attached(self, node: str) -> set[str]:
        """Return the unique names of the volumes that are attached to a node."""
        found = await self._get(Node, node, "")
        return set() if found is None else {each.name for each in found.status.volumes_attached}

    async def set_claim_status(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        """Merge fields into the status of a claim."""
        change = MergePatch({"status": status})
        await self._client.patch(PersistentVolumeClaim, name, change, namespace=namespace, subresource="status")

    def forget_tokens(self, pod: Pod) -> None:
        """Drop the cached tokens of a Pod."""
        self._tokens.forget(pod)

    async def services(self, pod: Pod) -> list[Service]:
        """Return the Services whose variables the Pod gets: those of its namespace, and the API server's."""
        found = []
        if pod.spec.enable_service_links is not False:
            found = [*await self._client.list(Service, namespace=pod.metadata.namespace)]
        api = await self._get(Service, "kubernetes", "default")
        if api is not None and all(each.metadata.name != "kubernetes" for each in found):
            found.append(api)
        return found

    async def _get(self, kind: type[Kind], name: str, namespace: str) -> Kind | None:
        if not name:
            return None
        return await self._client.get(kind, name, namespace=namespace, missing=None)
