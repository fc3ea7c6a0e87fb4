"""Bugs of memory: what a process believes to know, and forgets, or never learns of."""

from __future__ import annotations

from typing import Any

from ostinato import Context, controller
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing.explore import create, delete, edit
from tests.zoo.animals import LEO, Animal, Beast, exists, part

MADE: set[str] = set()
GENERATIONS: dict[str, int] = {}
LAST: dict[str, int] = {}
NUMBERS: list[int] = []


@controller(Beast, owns=[ConfigMap], name="remembers-made")
async def remembers_made(leo: Beast, ctx: Context) -> None:
    key = f"{leo.metadata.uid} {leo.spec.size}"
    if key not in MADE:
        await ctx.apply(part(leo), owner=leo)
        MADE.add(key)


@controller(Beast, owns=[ConfigMap], name="looks")
async def looks(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="skips-generations")
async def skips_generations(leo: Beast, ctx: Context) -> None:
    """Remembers the generation before the work is done: an error is not tried again."""
    name = leo.metadata.uid
    if GENERATIONS.get(name) == leo.metadata.generation and await exists(ctx, leo.metadata.name):
        return
    GENERATIONS[name] = leo.metadata.generation
    await ctx.apply(part(leo), owner=leo)


@controller(Beast, owns=[ConfigMap], name="edge-triggered")
async def edge_triggered(leo: Beast, ctx: Context) -> None:
    """Adds what was added since the last run; a new process believes that all is new."""
    before = LAST.get(leo.metadata.uid, 0)
    found = await ctx.client.get(ConfigMap, leo.metadata.name, missing=None)
    size = int(found.data["size"]) if found is not None else 0
    LAST[leo.metadata.uid] = leo.spec.size
    await ctx.apply(part(leo, size=str(size + leo.spec.size - before)), owner=leo)


@controller(Beast, owns=[ConfigMap], name="numbers-in-memory")
async def numbers_in_memory(leo: Beast, ctx: Context) -> None:
    """Names new revisions by a counter in memory."""
    children = [
        each async for each in ctx.client.list(ConfigMap, namespace="default", labels={"beast": leo.metadata.name})
    ]
    if not any(each.data.get("size") == str(leo.spec.size) for each in children):
        NUMBERS.append(1)
        await ctx.apply(part(leo, f"rev{len(NUMBERS)}"), owner=leo)


@controller(Beast, owns=[ConfigMap], name="numbers-by-content")
async def numbers_by_content(leo: Beast, ctx: Context) -> None:
    for size in range(1, leo.spec.size + 1):
        await ctx.apply(part(leo, f"rev{size}", size=str(size)), owner=leo)


@controller(Beast, name="does-not-watch")
async def does_not_watch(leo: Beast, ctx: Context) -> None:
    await ctx.apply(part(leo), owner=leo)


def counting(name: str, *, keeps: bool) -> Any:
    """Return an operator that counts sizes; `keeps`: in the object instead of in its memory."""

    def operator() -> Any:
        seen: set[int] = set()

        @controller(Beast, owns=[ConfigMap], name=name)
        async def counts(leo: Beast, ctx: Context) -> None:
            done = set(map(int, leo.status.done)) if leo.status is not None and keeps else seen
            done.add(leo.spec.size)
            if keeps:
                await ctx.status(done=sorted(map(str, done)))
            await ctx.apply(part(leo, largest=str(max(done))), owner=leo)

        return counts

    return operator


ANIMALS = (
    Animal(
        name="remembers-made",
        source="k0sproject/k0smotron#1535 (state of the process)",
        bug="an object that was made once is not looked for again",
        buggy=remembers_made,
        repaired=looks,
    ),
    Animal(
        name="skips-generations",
        source="kubernetes-sigs/controller-runtime#403 (an error after the generation was noted)",
        bug="the generation is noted before the work is done",
        buggy=skips_generations,
        repaired=looks,
    ),
    Animal(
        name="edge-triggered",
        source="Sieve (OSDI '22), unobserved states",
        bug="the difference to the last state in memory is added",
        buggy=edge_triggered,
        repaired=looks,
    ),
    Animal(
        name="numbers-in-memory",
        source="argoproj/argo-rollouts#243",
        bug="names are numbered by a counter in memory",
        buggy=numbers_in_memory,
        repaired=numbers_by_content,
        scenario=(create(LEO), edit(LEO, size=2), delete(LEO)),
    ),
    Animal(
        name="does-not-watch",
        source="operator-framework/java-operator-sdk#149 (events that are not handled)",
        bug="what it has made is not watched, and never repaired",
        buggy=does_not_watch,
        repaired=looks,
    ),
    Animal(
        name="largest-in-memory",
        source="nolar/kopf#716",
        bug="the largest size so far is lost with the process",
        buggy=counting("largest-in-memory", keeps=False),
        repaired=counting("largest-in-status", keeps=True),
        scenario=(create(LEO), edit(LEO, size=3), edit(LEO, size=2)),
        options={"without": ["early-step", "unobserved", "server-restored", "lag", "relist", "watch-cut"]},
    ),
)
