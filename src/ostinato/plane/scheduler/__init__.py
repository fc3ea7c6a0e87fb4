"""The scheduler: assigns Pods to nodes, like kube-scheduler.

    scheduler.add_to(manager)
    scheduler.add_to(manager, Profile(DEFAULT, default_plugins()), Profile("batch", (*default_plugins(), mine)))

A Pod selects a profile by `spec.schedulerName`; Pods with other names are ignored. Custom plugins are classes
(`Plugin`) or functions (`filter_by`, `score_by`).

| module | contains |
|---|---|
| `scheduler` | the scheduling loop: schedule, assume, bind, preempt |
| `queue` | activeQ, backoffQ and unschedulable Pods |
| `framework` | plugin interface, filtering and scoring |
| `plugins` | the default plugins |
| `cache` | snapshot of nodes and Pods, listers |
| `preempt`, `nominator` | victims and nominated Pods |
| `event_handlers`, `api_writes` | informer events, and writes to the API server |
"""

from __future__ import annotations

from typing import Final

from ostinato.manager import Manager
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer, filter_by, score_by
from ostinato.plane.scheduler.framework.local_results import WeightedPlugin
from ostinato.plane.scheduler.framework.runtime import Profile
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable
from ostinato.plane.scheduler.plugins import default_plugins
from ostinato.plane.scheduler.scheduler import Scheduler

__all__ = [
    "DEFAULT",
    "Cycle",
    "Filter",
    "NodeInfo",
    "Plugin",
    "PodInfo",
    "Profile",
    "Scheduler",
    "Scorer",
    "Status",
    "WeightedPlugin",
    "add_to",
    "default_plugins",
    "filter_by",
    "score_by",
    "unresolvable",
    "unschedulable",
]

DEFAULT: Final = "default-scheduler"


def add_to(manager: Manager, *profiles: Profile) -> Scheduler:
    """Add the scheduler to a manager. `profiles` default to the default profile of Kubernetes."""
    chosen = profiles or (Profile(DEFAULT, default_plugins()),)
    names = [profile.name for profile in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"add_to() got duplicate profile names: {', '.join(names)}; give each profile its own name")
    scheduler = Scheduler(chosen, {name: manager.recorder(name, core=False) for name in names})
    manager.add(scheduler)
    return scheduler
