"""Status writes: patches with the changed fields only.

The patch carries the uid: a recreated object of the same name is not written (`Invalid`). A deleted object is ignored.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.codec import to_dict
from ostinato.api.errors import NotFound
from ostinato.api.object import Object
from ostinato.api.patch import create_merge_patch
from ostinato.api.struct import BuiltinStruct
from ostinato.cache import CachedClient
from ostinato.client.patching import MergePatch


async def write_status(
    client: CachedClient,
    instance: Object,
    before: BuiltinStruct,
    after: BuiltinStruct,
    *,
    annotations: dict[str, str] | None = None,
) -> bool:
    """Patch the difference between two statuses, and annotations; return whether a patch was sent."""
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
