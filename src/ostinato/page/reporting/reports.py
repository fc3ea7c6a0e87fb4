"""Reports of a process to the page. Encoded as MessagePack where they cross a process boundary.

Under load there are thousands a second, and few are looked at: they are arrays of scalars, which the garbage collector
need not traverse, and the details of a run stay encoded until it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.controllers.current import Reconcile as Run
from ostinato.controllers.reports.observing import Placement, RunOutcome, RunResult
from ostinato.page.facts import ControllerStats, Reconcile, Ref, State, api_version_of

_MAX_ERROR: Final = 1_000  # characters


class Written(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An object at a resourceVersion.

    - `uid`: "" if it is unknown.
    - `resource_version`: "" for a binding, and for a removal whose response has none.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def of(cls, gvk: GroupVersionKind, key: NamespacedName, uid: str, resource_version: str) -> Written:
        return cls(api_version_of(gvk), gvk.kind, key.namespace, key.name, uid, resource_version)

    def state(self) -> State:
        return State(Ref(self.api_version, self.kind, self.namespace, self.name, self.uid), self.resource_version)


class Wrote(Written, frozen=True, array_like=True, gc=False):
    """A run wrote or deleted an object.

    - `at`: when the server answered.
    - `is_removal`: the object is gone: it was deleted, or its last finalizer was removed.
    """

    at: float
    run: str
    controller: str
    is_removal: bool = False

    @classmethod
    def by(cls, run: Run, written: Written, at: float, *, is_removal: bool) -> Wrote:
        found: tuple[Any, ...] = (*msgspec.structs.astuple(written), at, run.id, run.controller, is_removal)
        return cls(*found)


class _Details(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a run besides its result."""

    seconds: float
    waited: float
    error: str
    reasons: list[str]
    causes: list[Written]
    writes: list[Written]
    explanations: list[str]


class Ran(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that ended at `at`. `details`: encoded."""

    id: str
    at: float
    controller: str
    key: str
    result: RunResult
    details: bytes

    @classmethod
    def of(cls, at: float, run: Run, outcome: RunOutcome, writes: Sequence[Written]) -> Ran:
        """`writes`: those of the run, as far as they are known."""
        causes = [Written.of(each.gvk, each.key, "", each.resource_version) for each in run.why.known_causes]
        error = outcome.error[:_MAX_ERROR]
        details = (outcome.seconds, outcome.waited, error, run.why.reasons, causes, writes, run.explanations)
        return cls(run.id, at, run.controller, str(run.request), outcome.result, encode(details))

    @property
    def has_failed(self) -> bool:
        return self.result in ("error", "conflict")

    def reconcile(self) -> Reconcile:
        """Decode the run as a fact."""
        details = _decode_details(self.details)
        return Reconcile(
            id=self.id,
            at=self.at,
            controller=self.controller,
            key=self.key,
            seconds=details.seconds,
            waited=details.waited,
            result=self.result,
            error=details.error or None,
            reasons=details.reasons,
            causes=[each.state() for each in details.causes],
            writes=[each.state() for each in details.writes],
            explanations=details.explanations,
        )


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


class Placed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt of the scheduler."""

    at: float
    run: str
    placement: Placement


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """What a process did since its last reports. `dropped`: reports that were lost.

    `throttled`: responses with 429 by controller or component.
    """

    process: str
    runs: list[Ran] = []
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
_decode_details = msgspec.msgpack.Decoder(_Details).decode
