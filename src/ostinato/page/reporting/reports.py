"""Reports of a process to the page. Encoded as MessagePack where they cross a process boundary."""

from __future__ import annotations

import msgspec

from ostinato.controllers.reports.observing import Placement
from ostinato.page.facts import ControllerStats, Reconcile, Ref


class Wrote(msgspec.Struct, frozen=True, array_like=True):
    """A run wrote or deleted an object.

    - `at`: when the server answered.
    - `resource_version`: "" for a binding, and for a removal whose response has none.
    - `is_removal`: the object is gone: it was deleted, or its last finalizer was removed.
    """

    at: float
    run: str
    controller: str
    ref: Ref
    resource_version: str
    is_removal: bool = False


class Watches(msgspec.Struct, frozen=True, array_like=True):
    """The events of a kind enqueue keys of a controller."""

    controller: str
    api_version: str
    kind: str
    primary: bool


class HotLoop(msgspec.Struct, frozen=True, array_like=True):
    """A run of a hot loop. `fields`: those that the last write changed."""

    run: str
    controller: str
    ref: Ref
    text: str
    fields: list[str]


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """An attempt of the scheduler."""

    at: float
    run: str
    placement: Placement


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """What a process did since its last reports. `dropped`: reports that were lost.

    `throttled`: responses with 429 by controller or component.
    """

    process: str
    runs: list[Reconcile] = []
    wrote: list[Wrote] = []
    controllers: list[ControllerStats] = []
    ended: list[str] = []
    watches: list[Watches] = []
    hot_loops: list[HotLoop] = []
    placed: list[Placed] = []
    throttled: dict[str, int] = {}
    dropped: int = 0


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Reports).decode
