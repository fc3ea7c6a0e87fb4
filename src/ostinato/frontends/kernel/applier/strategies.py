"""Update strategies: what is done about an existing object that differs from the desired one.

| method | existing objects |
|---|---|
| `InPlace` | are updated |
| `OnDelete` | are left as they are, until somebody deletes them |
| `Recreate` | are deleted, and created again when they are gone |
| `RollingInPlace` | are updated one after the other, while all updated ones are ready |
| `RollingRecreate` | are recreated one after the other, while all updated ones are ready |

Objects that do not exist are created at once, with every strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from ostinato.controllers.objects.readiness import Readiness, readiness_of

K = TypeVar("K", bound=Hashable)
Method = Literal["InPlace", "OnDelete", "Recreate", "RollingInPlace", "RollingRecreate"]
Gate = Callable[[dict[str, Any]], Readiness]


class Strategy(msgspec.Struct, frozen=True):
    """
    - `method`: see the module. Defaults to "InPlace".
    - `ready`: the readiness of an updated object, for rolling methods. Defaults to `readiness_of`.
    """

    method: Method = "InPlace"
    ready: Gate = readiness_of

    @property
    def is_rolling(self) -> bool:
        return self.method in ("RollingInPlace", "RollingRecreate")

    @property
    def recreates(self) -> bool:
        return self.method in ("Recreate", "RollingRecreate")


IN_PLACE = Strategy()


class Roll(NamedTuple, Generic[K]):
    """The next step of a rolling update: an object to update, or one to wait for, or neither: all are updated."""

    next: K | None
    waiting: K | None = None
    message: str = ""


def next_in_roll(items: Iterable[K], is_updated: Callable[[K], bool], ready: Callable[[K], Readiness]) -> Roll[K]:
    """Return the first item that is not updated, unless an updated one is not ready."""
    first: K | None = None
    for item in items:
        if not is_updated(item):
            first = item if first is None else first
        elif not (found := ready(item)):
            return Roll(None, item, str(found))
    return Roll(first)
