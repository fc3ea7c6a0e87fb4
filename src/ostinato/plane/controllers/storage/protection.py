"""Protection finalizers: keep an object until it is no longer in use.

The API server adds the finalizer at creation; controllers restore it, and remove it from a terminating object that is
unused.
"""

from __future__ import annotations

from typing import TypeVar

from ostinato.api.errors import NotFound
from ostinato.api.object import Object
from ostinato.cache import CachedClient
from ostinato.client.patching import MergePatch

O = TypeVar("O", bound=Object)  # noqa: E741


def has_finalizer(instance: Object, finalizer: str) -> bool:
    return finalizer in instance.metadata.finalizers


async def add_finalizer(client: CachedClient, instance: Object, finalizer: str) -> None:
    """Add the finalizer if it is missing."""
    if not has_finalizer(instance, finalizer):
        await _write(client, instance, [*instance.metadata.finalizers, finalizer])


async def remove_finalizer(client: CachedClient, instance: Object, finalizer: str) -> None:
    """Remove the finalizer if it is present."""
    if has_finalizer(instance, finalizer):
        await _write(client, instance, [each for each in instance.metadata.finalizers if each != finalizer])


async def _write(client: CachedClient, instance: Object, finalizers: list[str]) -> None:
    metadata = {"finalizers": finalizers or None, "resourceVersion": instance.metadata.resource_version}
    try:
        await client.patch(type(instance), instance.metadata, MergePatch({"metadata": metadata}))
    except NotFound:
        return
