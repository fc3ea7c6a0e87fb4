"""VolumeAttributesClass protection controller: keeps the finalizer while a volume or a claim refers to the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Entry, Event, Updated, by
from ostinato.cache.store.indexes import IndexBy
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import VolumeAttributesClass
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.protection import add_finalizer, has_finalizer, remove_finalizer
from ostinato.plane.objects.indexes import ensure_index

FINALIZER: Final = "kubernetes.io/vac-protection"


def _classes_of(instance: PersistentVolume | PersistentVolumeClaim) -> set[str]:
    """Return the classes that a volume has, or that a claim has, had or is to get."""
    names = [instance.spec.volume_attributes_class_name]
    if isinstance(instance, PersistentVolumeClaim):
        names.append(instance.status.current_volume_attributes_class_name)
        if instance.status.modify_volume_status is not None:
            names.append(instance.status.modify_volume_status.target_volume_attributes_class_name)
    return {name for name in names if name}


def _of_volume(entry: Entry) -> list[str]:
    return [*_classes_of(entry.read(PersistentVolume))] if b"AttributesClassName" in entry.data else []


def _of_claim(entry: Entry) -> list[str]:
    return [*_classes_of(entry.read(PersistentVolumeClaim))] if b"AttributesClassName" in entry.data else []


def _classes_in(event: Event, classes_of: Callable[[Entry], list[str]]) -> Iterable[NamespacedName]:
    """Return the classes that an object refers to, or did before the event."""
    entries = [event.old, event.new] if isinstance(event, Updated) else [event.object]
    return [NamespacedName("", name) for entry in entries for name in classes_of(entry)]


_VOLUMES: Final[IndexBy] = by("attributes classes", _of_volume)
_CLAIMS: Final[IndexBy] = by("attributes classes", _of_claim)


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    ensure_index(manager.informers.of(PersistentVolume), _VOLUMES)
    ensure_index(manager.informers.of(PersistentVolumeClaim), _CLAIMS)

    (
        manager.build("volumeattributesclass-protection-controller")
        .watch_for(VolumeAttributesClass)
        .watches(PersistentVolume, handler=ForEvent(partial(_classes_in, classes_of=_of_volume)))
        .watches(PersistentVolumeClaim, handler=ForEvent(partial(_classes_in, classes_of=_of_claim)))
        .complete(AttributesClassProtection())
    )


class AttributesClassProtection:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.get(VolumeAttributesClass, request, missing=None)
        if found is None:
            return
        if found.metadata.deletion_timestamp is None:
            await add_finalizer(ctx.client, found, FINALIZER)
        elif has_finalizer(found, FINALIZER) and not await self._is_used(request.name, ctx):
            await remove_finalizer(ctx.client, found, FINALIZER)

    async def _is_used(self, name: str, ctx: Context) -> bool:
        return bool(
            await ctx.client.list(PersistentVolume, index=(_VOLUMES.name, name))
            or await ctx.client.list(PersistentVolumeClaim, index=(_CLAIMS.name, name))
        )
