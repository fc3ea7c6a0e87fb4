"""Finalizers: clean up external resources before an object is deleted.

    async with ctx.finalizer(widget, "example.dev/cleanup") as deleting:
        if deleting:
            await delete_at_the_provider(widget)
            return

- If the object is not being deleted, the finalizer is added before the block runs, unless it is present.
- If it is being deleted, `deleting` is True, and the finalizer is removed at the end of the block.
- If the block raises, the finalizer stays and the reconcile is retried. The clean-up must therefore be idempotent.
- `deleting` is True as well for an object that never had the finalizer; nothing is removed then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import NotFound
from ostinato.api.object import Object, origin, set_origin
from ostinato.api.validation import names
from ostinato.cache.client import CachedClient
from ostinato.cache.own_writes.latest_writes import LatestWrites
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like


@asynccontextmanager
async def finalizer(
    client: CachedClient, instance: AnyObject, name: str, field_manager: str, latest: LatestWrites
) -> AsyncIterator[bool]:
    check_finalizer(name)
    if not access.is_being_deleted(instance):
        seen = latest.of(instance)
        if name not in seen.finalizers:
            await _write(client, instance, [*seen.finalizers, name], field_manager, latest)
        yield False
        return
    yield True
    seen = latest.of(instance)
    if name in seen.finalizers:
        try:
            kept = [each for each in seen.finalizers if each != name]
            await _write(client, instance, kept, field_manager, latest)
        except NotFound:
            return  # the finalizer was removed by another client, and the object is deleted


async def _write(
    client: CachedClient, instance: AnyObject, wanted: list[str], field_manager: str, latest: LatestWrites
) -> None:
    """Write the finalizers, conditional on the resourceVersion, and update the given object."""
    version = latest.of(instance).resource_version
    metadata = {"finalizers": wanted or None, "resourceVersion": version}
    answer = await client.patch(
        view_like(instance),
        access.key(instance),
        MergePatch({"metadata": metadata}),
        field_manager=field_manager,
    )
    finalizers, is_as_read = list(access.finalizers(answer)), version == access.resource_version(instance)
    if not is_as_read:  # other fields may have changed since it was read
        latest.wrote(instance, answer)
    if isinstance(instance, Object):
        instance.metadata.finalizers = finalizers
        if is_as_read:
            instance.metadata.resource_version = access.resource_version(answer)
            if origin(instance) is not None and (data := origin(answer)) is not None:
                set_origin(instance, data)
        return
    own = access.writable_metadata(instance)
    own["finalizers"] = finalizers
    if is_as_read:
        own["resourceVersion"] = access.resource_version(answer)


def check_finalizer(name: str) -> None:
    """Raise ValueError if the name is not valid for a finalizer."""
    problems = names.is_qualified_name(name)
    if not problems and "/" not in name:
        problems = ["it must have a domain prefix, such as example.dev/cleanup"]
    if problems:
        raise ValueError(f"{name!r} is not a valid finalizer: {'; '.join(problems)}")
