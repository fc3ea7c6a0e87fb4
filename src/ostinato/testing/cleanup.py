"""Cleanup on a real cluster: custom resources go while their controllers run, which may have finalizers on them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.client.views import MetadataOf
from ostinato.world import World

_SECONDS: Final = 5.0  # for controllers to remove their finalizers
_POLL: Final = 0.1


async def delete_objects(client: Client, namespace: str, definitions: Iterable[dict[str, Any]], world: World) -> None:
    """Delete the objects of custom kinds in a namespace; finalizers that remain are removed."""
    kinds = [_kind(each) for each in definitions if each["spec"]["scope"] == "Namespaced"]
    for kind in kinds:
        await client.delete_all_of(kind, namespace=namespace)
    end = world.clock.monotonic() + _SECONDS
    while left := [(kind, each) for kind in kinds for each in await client.list(kind, namespace=namespace)]:
        if world.clock.monotonic() > end:
            for kind, each in left:
                await _remove_finalizers(client, kind, each)
            return
        await world.clock.sleep(_POLL)


async def _remove_finalizers(client: Client, kind: Any, found: Any) -> None:
    with suppress(NotFound):
        await client.patch(kind, found.metadata, MergePatch({"metadata": {"finalizers": None}}))


def _kind(definition: dict[str, Any]) -> Any:
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    return MetadataOf(GroupVersionKind(spec["group"], version, spec["names"]["kind"]))
