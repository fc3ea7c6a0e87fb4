"""An operator to test with: a Pond owns a ConfigMap, and is checked every hour."""

from __future__ import annotations

from typing import Annotated

from ostinato import Context, CustomResource, Ge, ObjectMeta, Result, Struct, controller
from ostinato.kinds.core_v1 import ConfigMap, Secret


class PondSpec(Struct):
    ducks: Annotated[int, Ge(0)] = 1


class PondStatus(Struct):
    ducks: int = 0
    checks: int = 0


class Pond(CustomResource, group="ponds.example.dev", version="v1"):
    spec: PondSpec
    status: PondStatus | None = None


def pond(name: str = "a", ducks: int = 1) -> Pond:
    return Pond(metadata=ObjectMeta(name=name), spec=PondSpec(ducks=ducks))


@controller(Pond, owns=[ConfigMap], runs_for_own_writes=False)
async def ponds(pond: Pond, ctx: Context) -> Result:
    data = {"ducks": str(pond.spec.ducks)}
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=pond.metadata.name), data=data), owner=pond)
    checks = 0 if pond.status is None else pond.status.checks
    await ctx.status(ducks=pond.spec.ducks, checks=checks + 1)
    ctx.event(pond, "Filled", f"{pond.spec.ducks} ducks")
    return Result(requeue_after=3600)


@controller(Pond)
async def thirsty(pond: Pond, ctx: Context) -> None:
    """Needs a permission that it does not declare."""
    await ctx.client.create(Secret(metadata=ObjectMeta(name=pond.metadata.name)))


@controller(Pond)
async def broken(pond: Pond, ctx: Context) -> None:
    raise KeyError(pond.metadata.name)
