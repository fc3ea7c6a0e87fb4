"""Small operators for tests of the explorer: one that forgets half of its work after a crash, and its repair."""

from __future__ import annotations

from ostinato import Context, CustomResource, ObjectMeta, Struct, controller
from ostinato.api.owners import set_controller_reference
from ostinato.kinds.core_v1 import ConfigMap


class PondSpec(Struct):
    size: int = 1


class PondStatus(Struct):
    size: int = 0


class Pond(CustomResource, group="explored.dev", version="v1"):
    spec: PondSpec
    status: PondStatus | None = None


def pond(name: str = "a", size: int = 1) -> Pond:
    return Pond(metadata=ObjectMeta(name=name), spec=PondSpec(size=size))


def child(parent: Pond, name: str) -> ConfigMap:
    made = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"size": str(parent.spec.size)})
    set_controller_reference(parent, made)
    return made


@controller(Pond, owns=[ConfigMap], name="forgetful")
async def forgetful(parent: Pond, ctx: Context) -> None:
    """Creates the second child only together with the first."""
    name = parent.metadata.name
    if await ctx.client.get(ConfigMap, name, missing=None) is None:
        await ctx.client.create(child(parent, name))
        await ctx.client.create(child(parent, f"{name}-two"))


@controller(Pond, owns=[ConfigMap], name="careful")
async def careful(parent: Pond, ctx: Context) -> None:
    for name in (parent.metadata.name, f"{parent.metadata.name}-two"):
        wanted = ConfigMap(metadata=ObjectMeta(name=name), data={"size": str(parent.spec.size)})
        await ctx.apply(wanted, owner=parent)
    await ctx.status(size=parent.spec.size)
