"""Finalizers: clean up what is outside of Kubernetes before an object goes.

    async with ctx.finalizer(widget, "example.dev/cleanup") as deleting:
        if deleting:
            await forget_at_the_provider(widget)
            return

- While nobody deletes the object, the finalizer is put on it, once, before the block runs.
- When somebody has, `deleting` is True, and at the end of the block the finalizer is taken away; then the object goes.
- A block that raises keeps the finalizer, and is tried again. So the clean-up may run more than once: what is gone
  already must be no error.
- An object that is deleted before it ever had the finalizer comes with `deleting` too; nothing is then taken away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ostinato.api import access, names
from ostinato.api.access import AnyObject
from ostinato.api.errors import NotFound
from ostinato.api.object import Object, origin, remember
from ostinato.cache.client import CachedClient
from ostinato.cache.own_writes.latest_writes import LatestWrites
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like


@asynccontextmanager
async def finalizer(
    client: CachedClient, instance: AnyObject, name: str, field_manager: str, latest: LatestWrites
) -> AsyncIterator[bool]:
    _check_name(name)
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
            return  # somebody else has taken it away, and the object has gone


async def _write(
    client: CachedClient, instance: AnyObject, wanted: list[str], field_manager: str, latest: LatestWrites
) -> None:
    """Write the list, if nobody has changed the object since it was last seen, and note it in the object."""
    version = latest.of(instance).resource_version
    metadata = {"finalizers": wanted or None, "resourceVersion": version}
    answer = await client.patch(
        view_like(instance),
        access.key(instance),
        MergePatch({"metadata": metadata}),
        field_manager=field_manager,
    )
    finalizers, is_as_read = list(access.finalizers(answer)), version == access.resource_version(instance)
    if not is_as_read:  # somebody may have changed something else since it was read
        latest.wrote(instance, answer)
    if isinstance(instance, Object):
        instance.metadata.finalizers = finalizers
        if is_as_read:
            instance.metadata.resource_version = access.resource_version(answer)
            if origin(instance) is not None and (data := origin(answer)) is not None:
                remember(instance, data)
        return
    own = access.writable_metadata(instance)
    own["finalizers"] = finalizers
    if is_as_read:
        own["resourceVersion"] = access.resource_version(answer)


def _check_name(name: str) -> None:
    problems = names.is_qualified_name(name)
    if not problems and "/" not in name:
        problems = ["it needs the name of a domain in front, such as example.dev/cleanup"]
    if problems:
        raise ValueError(f"{name!r} cannot be a finalizer: {'; '.join(problems)}")
