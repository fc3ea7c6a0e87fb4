"""Adoption and release: set and remove the controller reference of an existing object.

Both are conditional on the resourceVersion that was read: of two controllers that adopt an object concurrently, one
gets a `Conflict`.
"""

from __future__ import annotations

import copy
from typing import TypeVar

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.owners import (
    OwnerError,
    is_controlled_by,
    owner_references,
    remove_owner_reference,
    set_controller_reference,
)
from ostinato.cache.client import CachedClient
from ostinato.client.patching import MergePatch
from ostinato.client.requests import view_like

A = TypeVar("A", bound=AnyObject)


async def adopt(client: CachedClient, instance: A, owner: AnyObject, field_manager: str) -> A:
    """Set the controller reference of an object, and return it; `AlreadyOwned` if it has another controller."""
    if is_controlled_by(instance, owner):
        return instance
    for each in (owner, instance):
        if access.is_being_deleted(each):
            raise OwnerError(
                f"{access.describe(instance)} cannot be adopted by {access.describe(owner)}: "
                f"{access.describe(each)} is being deleted"
            )
    adopted = copy.deepcopy(instance)
    set_controller_reference(owner, adopted)
    return await _write(client, adopted, field_manager)


async def release(client: CachedClient, instance: A, owner: AnyObject, field_manager: str) -> A:
    """Remove the owner reference from an object, and return it."""
    released = copy.deepcopy(instance)
    if not remove_owner_reference(owner, released):
        return instance
    return await _write(client, released, field_manager)


async def _write(client: CachedClient, instance: A, field_manager: str) -> A:
    references = [to_dict(each) for each in owner_references(instance)]
    change = {"metadata": {"ownerReferences": references or None, "resourceVersion": access.resource_version(instance)}}
    written: A = await client.patch(
        view_like(instance),
        access.key(instance),
        MergePatch(change),
        field_manager=field_manager,
    )
    return written
