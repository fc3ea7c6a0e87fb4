"""Disruption controller: maintains the status of PodDisruptionBudgets.

- `budget`: counts healthy Pods and writes how many disruptions are allowed; evictions use that.
- `expected_pods`: expected number of Pods, from the scale of their controllers.
- `stale_pods`: resets the condition DisruptionTarget of Pods that were not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.api.gvk import NamespacedName
from ostinato.api.text.go_format import quote
from ostinato.cache.events import Deleted, Event, Updated
from ostinato.cache.store.entry import Entry
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies, Recorder
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.kinds.policy_v1 import PodDisruptionBudget
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.disruption.budget import BudgetReconciler
from ostinato.plane.controllers.disruption.stale_pods import StaleDisruptionReconciler, may_have_disruption_target
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.ownership.event_handler import SelectingObjects

__all__ = ["BudgetReconciler", "StaleTargetReconciler", "add_to"]


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    (
        manager.build("disruption-controller")
        .watch_for(PodDisruptionBudget)
        .watches(PodState, handler=ForBudgets())
        .complete(BudgetReconciler())
    )
    (
        manager.build("stale-disruption-controller")
        .watch_for(PodState, predicates=[may_have_disruption_target])
        .complete(StaleDisruptionReconciler())
    )


class ForBudgets(Handler):
    """Enqueues the budgets that select a Pod, before and after the change."""

    def __init__(self) -> None:
        self._budgets = SelectingObjects(PodDisruptionBudget)
        self._recorder: Recorder | None = None

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._budgets.prepare(dependencies)
        self._recorder = dependencies.recorder

    def keys(self, event: Event) -> Keys:
        budgets = self._budgets.matching(event.object)
        if len(budgets) > 1 and not isinstance(event, Deleted):
            self._warn(event.object, budgets)
        if isinstance(event, Updated) and event.old.labels_json != event.new.labels_json:
            budgets += self._budgets.matching(event.old)
        return budgets

    def _warn(self, pod: Entry, budgets: Sequence[NamespacedName]) -> None:
        """Warn about a Pod with several budgets: its evictions are rejected."""
        assert self._recorder is not None, "prepare() runs before the first event"
        which, chosen = f"{quote(pod.key.namespace)}/{quote(pod.key.name)}", quote(min(budgets).name)
        note = f"Pod {which} matches multiple PodDisruptionBudgets.  Chose {chosen} arbitrarily."
        self._recorder.event(pod.read(PodState), "MultiplePodDisruptionBudgets", note, kind="Warning")
