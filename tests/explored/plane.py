"""The control plane as an operator of three processes: controllers, scheduler, agents of two simulated nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ostinato.controllers import ControllerOptions
from ostinato.manager import ClientOptions, Manager, ReportingOptions
from ostinato.plane import scheduler
from ostinato.plane.access import identities
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers, ignore_warning
from ostinato.plane.node import fleet
from ostinato.testing.explore import Process

NODES = 2


def plane(only: Collection[str] = ()) -> list[Process]:
    """Return the processes. `only`: controllers to run besides that of nodes. Defaults to all."""
    without = frozenset(CONTROLLERS) - {"node-lifecycle-controller", *only} if only else frozenset()

    def controllers(manager: Manager) -> None:
        add_controllers(manager, Options(), without=without)

    def nodes(manager: Manager) -> None:
        fleet.add_to(manager, NODES, "simulated")

    options: dict[str, Any] = {
        "client": ClientOptions(
            field_manager=FIELD_MANAGER, identities=identities.user_of_runnable, warn=ignore_warning
        ),
        "reporting": ReportingOptions(core_events=True),
        "controllers": ControllerOptions(error_events=False),
    }
    return [
        Process("controllers", controllers, options),
        Process("scheduler", scheduler.add_to, options),
        Process("nodes", nodes, options, elects=False),
    ]
