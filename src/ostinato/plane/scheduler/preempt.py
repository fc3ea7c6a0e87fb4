"""Preemption (DefaultPreemption): selects a node and victims for an unschedulable Pod.

- Candidates are nodes whose rejection is resolvable.
- On each candidate all Pods of lower priority are removed in a dry run. If the Pod fits, as many as possible are
  reprieved: first those whose PodDisruptionBudget would be violated, each group by importance. The rest are the
  victims.
- The best candidate has the fewest budget violations; then the lowest highest victim priority; then the lowest sum of
  priorities; then the fewest victims; then the latest start time of its most important victims.
- The number of candidates is limited; the search starts at a random node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.selectors.labels import Selector
from ostinato.kinds.policy_v1 import PodDisruptionBudget
from ostinato.plane.objects.pod_state import PodState, condition
from ostinato.plane.scheduler.cache.affinity_terms import selector_of
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import Filter
from ostinato.plane.scheduler.framework.runtime import FitError
from ostinato.plane.scheduler.framework.search import run_filters_with_nominated_pods
from ostinato.plane.scheduler.framework.status import Diagnosis, Status, unresolvable
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.world.rng import Rng

NAME: Final = "DefaultPreemption"
_NO_VICTIMS: Final = unresolvable(NAME, "No preemption victims found for incoming pod")
_NOT_HELPFUL: Final = unresolvable(NAME, "Preemption is not helpful for scheduling")
_MIN_CANDIDATES: Final = 100  # kube-scheduler's minCandidateNodesAbsolute
_MIN_CANDIDATES_PERCENT: Final = 10  # kube-scheduler's minCandidateNodesPercentage
_OFFSET: Final = 2**31  # makes priorities positive, so that the sum grows with each victim
# kube-scheduler reports deallocation of resource claims first; they are not supported here.
_NO_CLAIMS: Final = "no new claims to deallocate"


class Victims(msgspec.Struct, frozen=True):
    """Victims on a node, most important first."""

    node: NodeInfo
    pods: list[PodInfo]
    violations: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """`victims` of the best candidate; without one, `message` is the reason.

    `keeps_nomination`: whether an earlier nomination stays valid.
    """

    victims: Victims | None = None
    message: str = ""
    keeps_nomination: bool = False


class Preemption:
    def __init__(self, snapshot: Snapshot, listers: Listers, nominator: Nominator, rng: Rng) -> None:
        self._snapshot = snapshot
        self._listers = listers
        self._nominator = nominator
        self._rng = rng

    def find(self, fit_error: FitError) -> Outcome:
        """Select node and victims for an unschedulable Pod."""
        pod, diagnosis = fit_error.cycle.pod, fit_error.diagnosis
        if diagnosis.pre_filter_status is not None and not diagnosis.pre_filter_status.resolvable:
            return Outcome(message="not found", keeps_nomination=True)  # upstream's message
        why = self._ineligible_reason(pod, diagnosis)
        if why:
            return Outcome(message=_message(why), keeps_nomination=True)
        nodes = [node for node in self._snapshot.nodes if _may_help(diagnosis.status_of(node.name))]
        candidates, statuses = self._dry_run_preemption(pod, fit_error.filters, nodes)
        if not candidates:
            diagnosis_after = Diagnosis(len(self._snapshot.nodes), statuses, _NOT_HELPFUL)
            return Outcome(message=_message(diagnosis_after.message()))
        return Outcome(victims=min(candidates, key=self._cost))

    def _ineligible_reason(self, pod: PodInfo, diagnosis: Diagnosis) -> str:
        """Return why the Pod is not eligible to preempt; "" if it is."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        name = self._nominator.node_of(pod.uid)
        node = self._snapshot.node(name) if name else None
        if node is None:
            return ""
        status = diagnosis.status_of(name)
        if status is not None and not status.resolvable:
            return ""
        for other in node.pods.values():
            if other.priority < pod.priority and other.is_being_deleted and self._is_preempted(other):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _dry_run_preemption(
        self, pod: PodInfo, filters: Sequence[Filter], nodes: Sequence[NodeInfo]
    ) -> tuple[list[Victims], dict[str, Status]]:
        if min(self._snapshot.priorities, default=pod.priority) >= pod.priority:
            return [], dict.fromkeys([node.name for node in nodes], _NO_VICTIMS)
        statuses: dict[str, Status] = {}
        if not nodes:
            return [], statuses
        wanted = min(max(len(nodes) * _MIN_CANDIDATES_PERCENT // 100, _MIN_CANDIDATES), len(nodes))
        start = self._rng.randrange(len(nodes))
        budgets = list(self._listers.all(PodDisruptionBudget))
        candidates: list[Victims] = []
        for node in (*nodes[start:], *nodes[:start]):
            found = self._select_victims(pod, filters, node, budgets)
            if isinstance(found, Status):
                statuses[node.name] = found
                continue
            candidates.append(found)
            if len(candidates) >= wanted and any(not each.violations for each in candidates):
                break
        return candidates, statuses

    def _select_victims(
        self, pod: PodInfo, filters: Sequence[Filter], node: NodeInfo, budgets: Sequence[PodDisruptionBudget]
    ) -> Victims | Status:
        potential = [each for each in node.pods.values() if each.priority < pod.priority]
        if not potential:
            return _NO_VICTIMS
        dry_run = _DryRun(filters, node, [*self._nominator.nominated_pods_for(pod).get(node.name, ())])
        for each in potential:
            dry_run.remove(each)
        status = dry_run.filter_status()
        if status is not None:
            return status
        potential.sort(key=self._importance)
        violating, others = _split_by_budget(potential, budgets)
        victims: list[PodInfo] = []
        violations = 0
        for each in violating:
            if not dry_run.reprieve(each):
                victims.append(each)
                violations += 1
        victims += [each for each in others if not dry_run.reprieve(each)]
        victims.sort(key=self._importance)
        return Victims(node, victims, violations) if victims else _NO_VICTIMS

    def _cost(self, victims: Victims) -> tuple[int, int, int, int, float]:
        """Sort key of candidates: the lowest is best."""
        pods = victims.pods
        highest = pods[0].priority
        began = min(self._started(each) for each in pods if each.priority == highest)
        return victims.violations, highest, sum(each.priority + _OFFSET for each in pods), len(pods), -began

    def _importance(self, pod: PodInfo) -> tuple[int, float]:
        """Sort key of Pods: the lowest is the most important."""
        return -pod.priority, self._started(pod)

    def _started(self, pod: PodInfo) -> float:
        known = self._listers.pod(PodState, pod)
        started = None if known is None else known.status.start_time
        return started.timestamp() if started is not None else float("inf")

    def _is_preempted(self, pod: PodInfo) -> bool:
        known = self._listers.pod(PodState, pod)
        target = None if known is None else condition(known, "DisruptionTarget")
        return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


class _DryRun:
    """Dry run of filters on a node without some of its Pods."""

    def __init__(self, filters: Sequence[Filter], node: NodeInfo, nominated: list[PodInfo]) -> None:
        self._node = node.copy()
        self._filters = [each.copy() for each in filters]
        self._nominated = nominated

    def remove(self, pod: PodInfo) -> None:
        self._node.remove(pod)
        for each in self._filters:
            each.remove_pod(pod, self._node)

    def reprieve(self, pod: PodInfo) -> bool:
        """Add a removed Pod back; return whether the incoming Pod still fits. If not, it is removed again."""
        self._node.add(pod)
        for each in self._filters:
            each.add_pod(pod, self._node)
        if self.filter_status() is None:
            return True
        self.remove(pod)
        return False

    def filter_status(self) -> Status | None:
        return run_filters_with_nominated_pods(self._filters, self._node, self._nominated)


def _message(why: str) -> str:
    return f"{_NO_CLAIMS}, preemption: {why}"


def _may_help(status: Status | None) -> bool:
    return status is not None and status.resolvable


def _split_by_budget(
    pods: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split Pods into those whose eviction violates a budget, in order, and the others."""
    left = [each.status.disruptions_allowed or 0 for each in budgets]
    selectors = [_selector(each) for each in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        is_violated = False
        for at, budget in enumerate(budgets):
            selector = selectors[at]
            if not pod.labels or budget.metadata.namespace != pod.namespace or selector.empty:
                continue
            if not selector.matches(pod.labels) or pod.name in budget.status.disrupted_pods:
                continue
            left[at] -= 1
            is_violated = is_violated or left[at] < 0
        (violating if is_violated else others).append(pod)
    return violating, others


def _selector(budget: PodDisruptionBudget) -> Selector:
    wanted = budget.spec.selector
    return selector_of(None if wanted is None else to_dict(wanted))
