"""Names of components and runtimes, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ostinato.plane.controllers import CONTROLLERS

SCHEDULER: Final = "scheduler"
SERVICES: Final = "services"
DNS: Final = "dns"
PARTS: Final = (*CONTROLLERS, SCHEDULER, SERVICES, DNS)
RUNTIMES: Final = ("containerd", "process", "simulated")


def check(nodes: int, runtime: str, without: Collection[str]) -> None:
    """Raise ValueError for an invalid number of nodes, an unknown runtime, or an unknown component."""
    if unknown := sorted(set(without) - set(PARTS)):
        raise ValueError(f"unknown component {unknown[0]!r}; choose from {', '.join(PARTS)}")
    if nodes < 0:
        raise ValueError(f"nodes is {nodes}; it must not be negative")
    if runtime not in RUNTIMES:
        raise ValueError(f"unknown runtime {runtime!r}; choose from {', '.join(RUNTIMES)}")
