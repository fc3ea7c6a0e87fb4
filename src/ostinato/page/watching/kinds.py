"""The kinds that the page watches.

- Of a control plane: every kind that can be listed and watched, in its preferred version. Not Events: they are read for
  the object that is shown. Of Leases only those of elections, not the heartbeats of nodes.
- Of an operator: the kinds of its controllers, and those below them that Kubernetes creates. Watching costs the API
  server, and a cluster may be large.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.client.discovery.discovery import Catalogue

EVENTS: Final = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})
LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
NODE_LEASES: Final = "kube-node-lease"
SECRET: Final = GroupKind("", "Secret")

# The kinds of objects that Kubernetes creates for those of a kind.
_BELOW: Final = {
    GroupKind("apps", "Deployment"): (GroupVersionKind("apps", "v1", "ReplicaSet"),),
    GroupKind("batch", "CronJob"): (GroupVersionKind("batch", "v1", "Job"),),
    GroupKind("apps", "ReplicaSet"): (GroupVersionKind("", "v1", "Pod"),),
    GroupKind("apps", "StatefulSet"): (GroupVersionKind("", "v1", "Pod"),),
    GroupKind("apps", "DaemonSet"): (GroupVersionKind("", "v1", "Pod"),),
    GroupKind("batch", "Job"): (GroupVersionKind("", "v1", "Pod"),),
}


def watched_kinds(catalogue: Catalogue) -> list[GroupVersionKind]:
    """Return all kinds of a server that are watched."""
    found: dict[GroupKind, GroupVersionKind] = {}
    for version in catalogue.versions:
        for resource in version.resources:
            gvk = resource.info.gvk
            if gvk.group_kind not in EVENTS and {"list", "watch"} <= set(resource.verbs):
                found.setdefault(gvk.group_kind, gvk)
    return [*found.values()]


def with_kinds_below(kinds: Iterable[GroupVersionKind]) -> list[GroupVersionKind]:
    """Return kinds with those of the objects that Kubernetes creates for them."""
    found: dict[GroupKind, GroupVersionKind] = {}
    waiting = [*kinds]
    while waiting:
        gvk = waiting.pop()
        if gvk.group_kind not in found and gvk.group_kind not in EVENTS:
            found[gvk.group_kind] = gvk
            waiting += _BELOW.get(gvk.group_kind, ())
    return [*found.values()]


def missing(known: Collection[GroupVersionKind], wanted: Iterable[GroupVersionKind]) -> list[GroupVersionKind]:
    """Return the wanted kinds that are not known in any version."""
    groups = {each.group_kind for each in known}
    return [each for each in wanted if each.group_kind not in groups]
