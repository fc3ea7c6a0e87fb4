"""Observing: what controllers report to a live view of them (`ostinato.page`) while they run.

- Without an observer, nothing is computed: `Dependencies.observer` is None.
- An observer must be fast and must not raise or block: it is called from the loops that it observes.
- A run (`Reconcile`) names its causes as objects with resourceVersions; each of its writes has the resourceVersion that
  the server assigned. That links a write to the run that made it, and the run to the writes that caused it.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.recorder import OwnDeletion, OwnWrite
from ostinato.controllers.current import Reconcile
from ostinato.controllers.guards.hot_loop import Loop
from ostinato.controllers.reports.metrics import ControllerStatistics

RunResult = Literal["success", "error", "requeue", "conflict"]


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """How a run ended.

    - `seconds`: its duration. `waited`: how long its key waited in the queue before.
    - `error`: the message of an error or a conflict. Defaults to "".
    """

    result: RunResult
    seconds: float
    waited: float
    error: str = ""


class Verdict(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a plugin of a scheduler rejected a node."""

    node: str
    plugin: str
    reason: str


class Placement(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One attempt of a scheduler to place a Pod.

    - `node`: the selected node; "" if there is none. `message`: why not.
    - `verdicts`: of some of the rejected nodes. `counts`: of all of them, the number of nodes by reason.
    - `scores`: of some of the feasible nodes.
    """

    pod: NamespacedName
    uid: str
    node: str = ""
    message: str = ""
    verdicts: list[Verdict] = []
    counts: dict[str, int] = {}
    scores: dict[str, int] = {}


class Observer(Protocol):
    """Receives the reports of controllers and of the scheduler."""

    def started(self, controller: str, statistics: ControllerStatistics, /) -> None:
        """A controller starts; its statistics may be read at any time until `ended`."""

    def ended(self, controller: str, /) -> None: ...

    def watches(self, controller: str, kind: GroupVersionKind, /, *, primary: bool) -> None:
        """The events of a kind enqueue keys of the controller. `primary`: it is the kind that it reconciles."""

    def wrote(self, run: Reconcile, write: OwnWrite, /) -> None:
        """The server accepted a write; if it changed nothing, the resourceVersion is an earlier one."""

    def deleted(self, run: Reconcile, deletion: OwnDeletion, /) -> None:
        """The server accepted a deletion; if it changed nothing, the resourceVersion is an earlier one."""

    def finished(self, run: Reconcile, outcome: RunOutcome, /) -> None: ...

    def throttled(self, controller: str, /) -> None:
        """The server rejected a request with 429, which is sent again. `controller`: "" outside of reconciles."""

    def hot_loop(self, run: Reconcile, loop: Loop, /) -> None:
        """The run is one of a hot loop."""

    def placed(self, run: Reconcile, placement: Placement, /) -> None:
        """A scheduler has decided on a Pod; if it selected a node, the Pod is bound to it next."""
