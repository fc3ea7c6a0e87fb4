"""Animals of the zoo, and what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ostinato import Context, CustomResource, ObjectMeta, Struct
from ostinato.api.meta import Condition
from ostinato.api.owners import set_controller_reference
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing.explore import Step, create, delete, edit


class Animal(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `source`: where the pattern was seen.
    - `bug`: what is wrong, in a sentence.
    - `buggy`, `repaired`: operators.
    - `external`: fakes of systems outside of the cluster.
    - `options`: further options of the exploration.
    """

    name: str
    source: str
    bug: str
    buggy: Any
    repaired: Any
    scenario: Sequence[Step] = ()
    external: Mapping[str, Callable[[], Any]] = {}
    options: Mapping[str, Any] = {}

    @property
    def steps(self) -> Sequence[Step]:
        return self.scenario or LIFE


class BeastSpec(Struct):
    size: int = 1
    color: str = "grey"


class BeastStatus(Struct):
    phase: str = ""
    size: int = 0
    id: str = ""
    done: list[str] = []
    observed_generation: int = 0
    conditions: list[Condition] = []


class Beast(CustomResource, group="zoo.dev", version="v1"):
    spec: BeastSpec
    status: BeastStatus | None = None


def beast(name: str = "leo", **spec: Any) -> Beast:
    return Beast(metadata=ObjectMeta(name=name), spec=BeastSpec(**spec))


LEO = beast()
LIFE = (create(LEO), edit(LEO, size=2), delete(LEO))
LIVES = (*LIFE, create(LEO))


def part(owner: Beast, suffix: str = "", **data: str) -> ConfigMap:
    """Return a ConfigMap of a beast, without an owner reference."""
    name = f"{owner.metadata.name}-{suffix}" if suffix else owner.metadata.name
    values = data or {"size": str(owner.spec.size)}
    return ConfigMap(
        metadata=ObjectMeta(name=name, namespace="default", labels={"beast": owner.metadata.name}), data=values
    )


def owned(owner: Beast, suffix: str = "", **data: str) -> ConfigMap:
    """Return a ConfigMap with an owner reference."""
    made = part(owner, suffix, **data)
    set_controller_reference(owner, made)
    return made


async def exists(ctx: Context, name: str) -> bool:
    return await ctx.client.get(ConfigMap, name, missing=None) is not None


class Cloud:
    """A system outside of the cluster: things by name, and whether a thing exists twice."""

    def __init__(self) -> None:
        self.things: dict[str, int] = {}
        self.numbered: list[str] = []

    def state(self) -> object:
        return sorted(self.things.items()), len(self.numbered)

    async def put(self, name: str, size: int) -> None:
        """Create or change a thing."""
        self.things[name] = size

    async def add(self, name: str) -> None:
        """Create a thing; it must not exist."""
        if name in self.things:
            raise FileExistsError(name)
        self.things[name] = 1

    async def new(self, label: str) -> str:
        """Create a thing with an id of the system's own choice."""
        self.numbered.append(label)
        return f"thing-{len(self.numbered)}"

    async def count(self, label: str) -> int:
        return self.numbered.count(label)

    async def find(self, label: str) -> str:
        return f"thing-{self.numbered.index(label) + 1}" if label in self.numbered else ""

    async def remove(self, name: str) -> None:
        """Delete a thing; it must exist."""
        del self.things[name]

    async def drop(self, label: str) -> None:
        """Delete all things with a label."""
        self.numbered = [each for each in self.numbered if each != label]
        self.things.pop(label, None)


CLOUD: Mapping[str, Callable[[], Any]] = {"cloud": Cloud}
