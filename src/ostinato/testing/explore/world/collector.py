"""Garbage collection in a world: what its owners left behind is deleted, as kube-controller-manager does.

- An object whose owners are all gone is deleted, and so are its dependents, unless its finalizers say otherwise: of a
  Job, too, whose Pods are orphans if a user deletes it. An owner in another namespace does not exist.
- Foreground deletion: dependents go first, then the finalizer. Orphaning: dependents lose the reference.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ostinato.api.errors import APIError
from ostinato.client.options import Propagation
from ostinato.client.patching import MergePatch
from ostinato.testing.explore.world.disk import Place
from ostinato.testing.explore.world.objects import KnownObjects, Metadata
from ostinato.testing.explore.world.outcome import Problem

if TYPE_CHECKING:
    from ostinato.testing.explore.world.run import Run

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


def has_garbage(objects: KnownObjects) -> bool:
    """Whether there is something to collect, or to do before an object can be deleted."""
    waiting = (each.finalizers for each in objects.metadata.values() if each.deletion_timestamp)
    return bool(objects.dangling()) or any(FOREGROUND in each or ORPHAN in each for each in waiting)


async def collect(run: Run) -> None:
    """Collect what is garbage now."""
    objects = run.objects
    for place in objects.dangling():
        abroad = [each for each in objects.metadata[place].owner_references if each.uid in objects.uids]
        if abroad:
            text = (
                f"{place[0]} {place[1]} is garbage: its owner {abroad[0].kind} {abroad[0].name} has another namespace"
            )
            run.object_to(Problem("orphans", text))
        await _delete(run, place)
    for place, each in list(objects.metadata.items()):
        if not each.deletion_timestamp:
            continue
        if FOREGROUND in each.finalizers:
            dependents = objects.dependents(each.uid)
            for dependent in dependents:
                if not objects.metadata[dependent].deletion_timestamp:
                    await _delete(run, dependent)
            if not objects.dependents(each.uid):
                await _remove_finalizer(run, place, FOREGROUND)
        if ORPHAN in each.finalizers:
            for dependent in objects.dependents(each.uid):
                await _orphan(run, dependent, each.uid)
            await _remove_finalizer(run, place, ORPHAN)


async def _delete(run: Run, place: Place) -> None:
    metadata = run.objects.metadata.get(place)
    if metadata is None:
        return
    client = run.client.in_namespace(metadata.namespace) if metadata.namespace else run.client
    view = run.view(run.objects.kinds[place[0]])
    with suppress(APIError):
        await client.delete(view, metadata.name, propagation=_propagation(metadata), missing_ok=True)
        run.collected(place, metadata)


def _propagation(metadata: Metadata) -> Propagation:
    if ORPHAN in metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in metadata.finalizers else "Background"


async def _remove_finalizer(run: Run, place: Place, finalizer: str) -> None:
    metadata = run.objects.metadata.get(place)
    if metadata is not None:
        left = [each for each in metadata.finalizers if each != finalizer]
        await _patch(run, place, {"finalizers": left})


async def _orphan(run: Run, place: Place, uid: str) -> None:
    metadata = run.objects.metadata[place]
    left = [
        {
            "apiVersion": each.api_version,
            "kind": each.kind,
            "name": each.name,
            "uid": each.uid,
            "controller": each.controller,
        }
        for each in metadata.owner_references
        if each.uid != uid
    ]
    await _patch(run, place, {"ownerReferences": left})


async def _patch(run: Run, place: Place, metadata: dict[str, object]) -> None:
    known = run.objects.metadata[place]
    client = run.client.in_namespace(known.namespace) if known.namespace else run.client
    with suppress(APIError):
        await client.patch(run.view(run.objects.kinds[place[0]]), known.name, MergePatch({"metadata": metadata}))
