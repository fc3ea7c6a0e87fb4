"""PersistentVolume protection controller: keeps the finalizer while the volume is bound to a claim."""

from __future__ import annotations

from typing import Final

from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import PersistentVolume
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.protection import add_finalizer, remove_finalizer

FINALIZER: Final = "kubernetes.io/pv-protection"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    manager.build("pv-protection-controller").watch_for(PersistentVolume).complete(VolumeProtection())


class VolumeProtection:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        volume = await ctx.client.get(PersistentVolume, request, missing=None)
        if volume is None:
            return
        if volume.metadata.deletion_timestamp is None:
            await add_finalizer(ctx.client, volume, FINALIZER)
        elif volume.status.phase != "Bound":
            await remove_finalizer(ctx.client, volume, FINALIZER)
