"""Attachment of volumes to a node: waits for the attach/detach controller, and reports the volumes in use.

- A volume is in `status.volumesInUse` of the Node before its attachment is relied upon, and until it is unstaged: the
  controller does not detach it meanwhile.
- It is relied upon while it is in `status.volumesAttached`: what is to be detached leaves that list first.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Node
from ostinato.kinds.storage_v1 import VolumeAttachment
from ostinato.plane.csi import CsiError, attachment_name, unique_volume_name
from ostinato.world import Clock

_POLL: Final = 0.2  # seconds; doubled up to
_MAX_POLL: Final = 2.0
_TIMEOUT: Final = 120.0


class Attachments(Protocol):
    async def volume_attachment(self, name: str) -> VolumeAttachment | None: ...

    async def volumes_attached(self, node: str) -> set[str]: ...


async def wait_for_attachment(volume: tuple[str, str], node: str, objects: Attachments, clock: Clock) -> dict[str, str]:
    """Return the publish context of an attached volume; `CsiError` if it is not attached in time."""
    driver, handle = volume
    name, until, poll = attachment_name(handle, driver, node), clock.monotonic() + _TIMEOUT, _POLL
    while True:
        is_listed = unique_volume_name(driver, handle) in await objects.volumes_attached(node)
        found = await objects.volume_attachment(name)
        if is_listed and found is not None and found.metadata.deletion_timestamp is None and found.status.attached:
            return found.status.attachment_metadata
        if clock.monotonic() >= until:
            error = None if found is None else found.status.attach_error
            why = "" if error is None else f": {error.message or ''}"
            raise CsiError(
                f"timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}{why}"
            )
        await clock.sleep(poll)
        poll = min(2 * poll, _MAX_POLL)


class VolumesInUse:
    """`status.volumesInUse` of a Node. Writes are in order, one at a time."""

    def __init__(self, node: str, client: Client) -> None:
        self._node = node
        self._client = client
        self._names: set[str] | None = None  # None until it is known what an earlier agent has reported
        self._writing = asyncio.Lock()

    async def add(self, name: str, mounted: set[str]) -> None:
        """Report a volume before it is used. `mounted`: those that are recorded on disk."""
        async with self._writing:
            if self._names is None or name not in self._names:
                await self._write((self._names or set()) | mounted | {name})

    async def remove(self, name: str, mounted: set[str]) -> None:
        """Report that a volume is not in use any more."""
        async with self._writing:
            wanted = ((self._names or set()) | mounted) - {name}
            if wanted != self._names:
                await self._write(wanted)

    async def _write(self, names: set[str]) -> None:
        try:
            change = {"status": {"volumesInUse": sorted(names) or None}}
            await self._client.patch(Node, self._node, MergePatch(change), subresource="status")
        except (APIError, TransportError) as error:
            raise CsiError(f"Node {self._node}: status.volumesInUse not written: {error}") from None
        self._names = names
