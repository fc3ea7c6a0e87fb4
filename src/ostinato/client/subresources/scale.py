"""Scale subresource: the desired and the current number of replicas of any scalable kind.

await client.scale.set(Deployment, "web", 3)
scale = await client.scale.get(Unstructured.of("example.dev/v1", "Widget"), "a")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.codec import from_json
from ostinato.client.discovery.paths import Key
from ostinato.client.patching import MergePatch
from ostinato.client.requests import Content, Requests, Target
from ostinato.client.views import Json, Kind, view_of

if TYPE_CHECKING:
    from ostinato.kinds.autoscaling_v1 import Scale


class Scales:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def get(self, kind: Kind[Any], name: Key, *, namespace: str | None = None) -> Scale:
        return _read(await self._requests.send("GET", await self._target(kind, name, namespace)))

    async def set(
        self, kind: Kind[Any], name: Key, replicas: int, *, namespace: str | None = None, resource_version: str = ""
    ) -> Scale:
        """Set the desired number of replicas. `resource_version`: precondition. Defaults to none."""
        wanted: Json = {"spec": {"replicas": replicas}}
        if resource_version:
            wanted["metadata"] = {"resourceVersion": resource_version}
        patch = MergePatch(wanted)
        target = await self._target(kind, name, namespace)
        content = Content(body=patch.body(), content_type=patch.content_type)
        return _read(await self._requests.send("PATCH", target, content))

    async def _target(self, kind: Kind[Any], name: Key, namespace: str | None) -> Target:
        info = await self._requests.resolve(view_of(kind))
        return self._requests.target(info, name, namespace, "scale")


def _read(data: bytes) -> Scale:
    from ostinato.kinds.autoscaling_v1 import Scale  # noqa: PLC0415 - imported on first use

    return from_json(Scale, data)
