"""The scheduler: decides on which node each Pod runs.

    scheduler.add_to(manager)
    scheduler.add_to(manager, Profile(DEFAULT, default_plugins()), Profile("batch", (*default_plugins(), mine)))

A Pod asks for a profile by `spec.schedulerName`; Pods that ask for another are left alone. Own plugins are classes
(`Plugin`) or functions (`filter_by`, `score_by`).
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
    """Have a manager schedule Pods by these profiles. Defaults to the one that every cluster has."""
    chosen = profiles or (Profile(DEFAULT, default_plugins()),)
    names = [profile.name for profile in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"two profiles have the same name, of {', '.join(names)}")
    scheduler = Scheduler(chosen, {name: manager.recorder(name, core=False) for name in names})
    manager.add(scheduler)
    return scheduler
