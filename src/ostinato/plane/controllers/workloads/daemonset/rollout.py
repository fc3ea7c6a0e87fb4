"""Rolling updates of a DaemonSet: which Pods to create and delete. Pure functions.

First each eligible node gets exactly one Pod. Then Pods of older revisions are replaced:

- Without surge, old Pods are deleted while at most `maxUnavailable` nodes have no available Pod. Unavailable old Pods
  are always replaced.
- With surge, new Pods are created beside old ones on up to `maxSurge` nodes; an old Pod is deleted when the new one is
  available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ostinato.api.intstr import scaled_value
from ostinato.kinds.apps_v1 import DaemonSet
from ostinato.plane.controllers.workloads.daemonset.placement import NodeFit
from ostinato.plane.controllers.workloads.daemonset.pods import DaemonPod

Test = Callable[[DaemonPod], bool]


class Changes(msgspec.Struct):
    """Changes to apply: nodes that get a Pod, and Pods to delete."""

    nodes: list[str] = []
    pods: list[DaemonPod] = []

    def __bool__(self) -> bool:
        return bool(self.nodes or self.pods)


class PodChecks(msgspec.Struct, frozen=True):
    """Predicates on Pods."""

    is_updated: Test
    is_available: Test


def max_surge(owner: DaemonSet, nodes: int) -> int:
    """Return the resolved maxSurge."""
    strategy = owner.spec.update_strategy
    rolling = None if strategy is None or strategy.type != "RollingUpdate" else strategy.rolling_update
    return 0 if rolling is None or rolling.max_surge is None else scaled_value(rolling.max_surge, nodes, round_up=True)


def max_unavailable(owner: DaemonSet, nodes: int) -> int:
    """Return the resolved maxUnavailable."""
    strategy = owner.spec.update_strategy
    rolling = None if strategy is None or strategy.type != "RollingUpdate" else strategy.rolling_update
    if rolling is None or rolling.max_unavailable is None:
        return 0
    return scaled_value(rolling.max_unavailable, nodes, round_up=True)


def needed_on_node(
    node: str, fit: NodeFit, pods: Sequence[DaemonPod] | None, checks: PodChecks, *, surging: bool
) -> Changes:
    """Return the changes for one node. `pods`: its unfinished Pods; None if it never had any."""
    if fit is NodeFit.SHOULD_RUN and pods is None:
        return Changes(nodes=[node])
    staying = [pod for pod in pods or () if not pod.is_terminating]
    staying.sort(key=lambda pod: pod.age)
    if fit is NodeFit.MUST_LEAVE:
        return Changes(pods=staying)
    if not surging:
        return Changes(pods=staying[1:])
    if not staying:
        return Changes(nodes=[node] if fit is NodeFit.SHOULD_RUN else [])
    new = [pod for pod in staying if checks.is_updated(pod)]
    old = [pod for pod in staying if not checks.is_updated(pod)]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not old[0].is_ready or checks.is_available(new[0])):
        surplus.append(old[0])
    return Changes(pods=surplus)


def replacement_changes(on: Mapping[str, Sequence[DaemonPod]], checks: PodChecks, allowed: int) -> Changes:
    """Return the old Pods to delete now. `on`: Pods by node, eligible nodes included."""
    missing = 0
    broken: list[DaemonPod] = []
    candidates: list[DaemonPod] = []
    for pods in on.values():
        pair = _pair(pods, checks)
        if pair is None or (pair.new is None) == (pair.old is None):
            missing += 1
        elif pair.old is None:
            missing += not checks.is_available(_present(pair.new))
        elif not checks.is_available(pair.old):
            broken.append(pair.old)
            missing += 1
        else:
            candidates.append(pair.old)
    return Changes(pods=[*broken, *candidates[: max(allowed - missing, 0)]])


def surge_changes(
    on: Mapping[str, Sequence[DaemonPod]], fits: Mapping[str, NodeFit], checks: PodChecks, allowed: int, desired: int
) -> Changes:
    """Return the new Pods to create beside old ones now, and the old ones to delete."""
    changes = Changes()
    surging = available = 0
    candidates: list[str] = []
    misplaced: list[DaemonPod] = []
    for node, pods in on.items():
        pair = _pair(pods, checks)
        if pair is None:
            surging += 1
            continue
        shown = pair.old or pair.new
        available += shown is not None and checks.is_available(shown)
        if pair.old is None:
            continue
        belongs = fits.get(node) is NodeFit.SHOULD_RUN
        if pair.new is not None:
            if checks.is_available(pair.new):
                changes.pods.append(pair.old)
            else:
                surging += 1
        elif checks.is_available(pair.old):
            if belongs:
                candidates.append(node)
            else:
                misplaced.append(pair.old)
        elif belongs:
            changes.nodes.append(node)
        else:
            changes.pods.append(pair.old)
    changes.pods += misplaced[: max(available - desired, 0)]
    changes.nodes += candidates[: max(allowed - surging, 0)]
    return changes


class _Pair(msgspec.Struct):
    new: DaemonPod | None = None
    old: DaemonPod | None = None


def _pair(pods: Sequence[DaemonPod], checks: PodChecks) -> _Pair | None:
    """Return the new and the old Pod of a node that are not terminating; None if there are two of a kind."""
    pair = _Pair()
    for pod in pods:
        if pod.is_terminating:
            continue
        if checks.is_updated(pod):
            if pair.new is not None:
                return None
            pair.new = pod
        else:
            if pair.old is not None:
                return None
            pair.old = pod
    return pair


def _present(pod: DaemonPod | None) -> DaemonPod:
    assert pod is not None, "a pair has at least one Pod"
    return pod
