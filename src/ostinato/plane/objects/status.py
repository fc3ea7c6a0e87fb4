"""Statuses: what a controller of the plane says of an object, written only where it differs from what was read.

The write is a patch of what has changed, for this very object: if it was deleted and made anew under the same name in
the meantime it is a `Conflict`, and the next reconcile sees the new one. Nothing is said of an object that is gone.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.codec import to_dict
from ostinato.api.errors import NotFound
from ostinato.api.object import Object
from ostinato.api.patch import create_merge_patch
from ostinato.api.struct import Struct
from ostinato.cache import CachedClient
from ostinato.client.patching import MergePatch


async def write_status(
    client: CachedClient, instance: Object, before: Struct, after: Struct, *, annotations: dict[str, str] | None = None
) -> bool:
    """Write what has changed from one status to another, and annotations; whether anything was written."""
    change: dict[str, Any] = create_merge_patch(to_dict(before), to_dict(after))
    if not change and not annotations:
        return False
    metadata: dict[str, Any] = {"uid": instance.metadata.uid}
    if annotations:
        metadata["annotations"] = annotations
    patch = MergePatch({"metadata": metadata, "status": change} if change else {"metadata": metadata})
    try:
        await client.patch(type(instance), instance.metadata, patch, subresource="status")
    except NotFound:
        return False
    return True
