"""An operator that counts its reconciles in the object, and so never comes to rest."""

from __future__ import annotations

from tests.unit.testing.explore.operators import Pond

from ostinato import Context, Result, controller
from ostinato.client.patching import MergePatch


@controller(Pond, name="restless")
async def restless(parent: Pond, ctx: Context) -> Result:
    count = int(parent.metadata.annotations.get("count", "0")) + 1
    await ctx.client.patch(Pond, parent.metadata, MergePatch({"metadata": {"annotations": {"count": str(count)}}}))
    return Result(requeue_after=1)
