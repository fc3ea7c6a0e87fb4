"""Reports of a process to the page, encoded as MessagePack: all that was collected in one call.

Under load there are thousands a second, and few are looked at. So they are arrays, and what is only shown stays encoded
until then: runs (`Ran`) except for their writes, decisions of the scheduler (`Placed`). The process that collects them
has them as `Ended` and `Attempt`, which are encoded alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import Final, Generic, TypeVar

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.controllers.reasons import Cause, Why
from ostinato.controllers.reports.observing import Placement, RunOutcome
from ostinato.page.facts import ControllerStats, Reconcile, Ref, State

MAX_WRITES: Final = 50  # shown with a run
FAILED: Final = ("error", "conflict")  # results of runs


class Wrote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run wrote or deleted an object.

    - `uid`: "" if it is unknown.
    - `resource_version`: "" for a binding, and for a removal whose response has none.
    - `at`: when the server answered.
    - `is_removal`: the object is gone: it was deleted, or its last finalizer was removed.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    at: float
    run: str
    controller: str
    is_removal: bool = False

    def state(self) -> State:
        return State(Ref(self.api_version, self.kind, self.namespace, self.name, self.uid), self.resource_version)


class RunName(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names a run. `key`: text if it is not the key of an object."""

    id: str
    controller: str
    key: NamespacedName | str


class Details(RunName, frozen=True, array_like=True, gc=False):
    """What is known of a run when it begins, and what it explained."""

    why: Why
    explanations: list[str]


class Ended(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that ended at `at`, in the process that reports it.

    - `writes`: those that were not sent before. `earlier`: those that were, as many as are shown.
    """

    writes: Sequence[Wrote]
    at: float
    outcome: RunOutcome
    earlier: Sequence[Wrote]
    details: Details


class Ran(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A run that ended at `at`, as it was received: see `Ended`."""

    _writes: msgspec.Raw
    at: float
    outcome: RunOutcome
    _earlier: msgspec.Raw
    _details: msgspec.Raw

    @property
    def has_failed(self) -> bool:
        return self.outcome.result in FAILED

    def name(self) -> RunName:
        """Decode which run it is."""
        return _decode_name(self._details)

    def reconcile(self) -> Reconcile:
        """Decode the run as a fact."""
        details, outcome = _decode_details(self._details), self.outcome
        writes = islice(chain(_decode_writes(self._earlier), _decode_writes(self._writes)), MAX_WRITES)
        return Reconcile(
            id=details.id,
            at=self.at,
            controller=details.controller,
            key=str(details.key),
            seconds=outcome.seconds,
            waited=outcome.waited,
            result=outcome.result,
            error=outcome.error or None,
            reasons=[*details.why.reasons],
            causes=[_state(each) for each in details.why.known_causes],
            writes=[each.state() for each in writes],
            explanations=details.explanations,
        )


class Writes(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first field of `Ended`."""

    writes: list[Wrote]


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


class Attempt(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt of the scheduler to place the Pod with this uid."""

    at: float
    uid: str
    placement: Placement


class Placed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An attempt of the scheduler, as it was received."""

    at: float
    uid: str
    _placement: msgspec.Raw

    def detached(self) -> Placed:
        """Return a copy that does not keep the other reports in memory."""
        return Placed(self.at, self.uid, self._placement.copy())

    def attempt(self) -> Attempt:
        """Decode the decision."""
        return Attempt(self.at, self.uid, _decode_placement(self._placement))


PlacedT = TypeVar("PlacedT")


class Reports(msgspec.Struct, Generic[PlacedT], frozen=True, kw_only=True):
    """What a process did since its last reports. `Received` and `Collected` are its two forms.

    - `runs`: an array of them, encoded.
    - `failed`: the number of `runs` that failed.
    - `wrote`: the writes of runs that have not ended, or of tasks that outlived them; others are in `runs`.
    - `throttled`: responses with 429 by controller or component.
    - `dropped`: reports that were lost.
    """

    process: str
    runs: msgspec.Raw
    failed: int = 0
    wrote: list[Wrote] = []
    controllers: list[ControllerStats] = []
    ended: list[str] = []
    watches: list[Watches] = []
    hot_loops: list[HotLoop] = []
    placed: PlacedT
    throttled: dict[str, int] = {}
    dropped: int = 0


Collected = Reports[msgspec.Raw]
Received = Reports[list[Placed]]


def _state(cause: Cause) -> State:
    return State(Ref.of(cause.gvk, cause.key), cause.resource_version)


class EncodedItems:
    """Items of an array, each encoded when it is added. What it was made of need not be kept."""

    def __init__(self) -> None:
        self.count = 0
        self._data = bytearray()

    def add(self, item: object) -> bool:
        """Return False if the item cannot be encoded, such as text with half of a surrogate pair."""
        size = len(self._data)
        try:
            _encode_into(item, self._data, -1)
        except (TypeError, ValueError):
            del self._data[size:]
            return False
        self.count += 1
        return True

    def take(self) -> msgspec.Raw:
        """Remove all items; return them as an array."""
        array = _ARRAY + self.count.to_bytes(4, "big") + self._data
        self.count, self._data = 0, bytearray()
        return msgspec.Raw(array)


_ARRAY: Final = b"\xdd"  # of MessagePack, with a length of four bytes
_encoder = msgspec.msgpack.Encoder()
_encode_into = _encoder.encode_into
encode = _encoder.encode
decode = msgspec.msgpack.Decoder(Received).decode
decode_writes = msgspec.msgpack.Decoder(list[Writes]).decode  # of runs, and nothing else of them
decode_runs = msgspec.msgpack.Decoder(list[Ran]).decode
_decode_writes = msgspec.msgpack.Decoder(list[Wrote]).decode
_decode_name = msgspec.msgpack.Decoder(RunName).decode
_decode_details = msgspec.msgpack.Decoder(Details).decode
_decode_placement = msgspec.msgpack.Decoder(Placement).decode
