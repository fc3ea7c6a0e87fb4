"""Fault exploration: an operator in every world that a cluster can put it into, until one breaks it.

    from ostinato.testing.explore import create, delete, edit, explore

    explore(websites, scenario=[create(site), edit(site, replicas=3), delete(site)], worlds=2000)

- `scenario` has the steps of users, `faults` what goes wrong, `oracles` what must be true nevertheless.
- `world` runs one world, `explorer` decides which ones, `shrink` finds the shortest one, `output` shows it.
"""

from ostinato.testing.explore.api import Explored, Options, Unsurvived, explore
from ostinato.testing.explore.invariants import always, eventually
from ostinato.testing.explore.operators import Process
from ostinato.testing.explore.scenario import Step, call, create, delete, delete_children, edit, patch, wait
from ostinato.testing.explore.world.external import ExternalUnavailable
from ostinato.testing.explore.world.settings import Timing

__all__ = [
    "Explored",
    "ExternalUnavailable",
    "Options",
    "Process",
    "Step",
    "Timing",
    "Unsurvived",
    "always",
    "call",
    "create",
    "delete",
    "delete_children",
    "edit",
    "eventually",
    "explore",
    "patch",
    "wait",
]
