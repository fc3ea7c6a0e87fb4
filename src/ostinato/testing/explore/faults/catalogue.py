"""Catalogue of all kinds of faults, by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ostinato.testing.explore.faults import people, processes, requests, servers, watches
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.plan import Fault

KINDS: dict[str, type[FaultKind]] = {
    kind.name: kind for module in (processes, requests, watches, people, servers) for kind in module.KINDS
}


def make(fault: Fault) -> FaultKind:
    """Return the kind of a fault; ValueError if there is none."""
    return KINDS[checked(fault.kind)](fault)


def checked(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"fault {name!r} does not exist; choose from {', '.join(KINDS)}")
    return name


def selected(only: Collection[str], without: Collection[str]) -> Sequence[type[FaultKind]]:
    """Return the kinds to explore, the most productive first."""
    names = [checked(each) for each in only] or list(KINDS)
    excluded = {checked(each) for each in without}
    return sorted((KINDS[name] for name in names if name not in excluded), key=lambda kind: kind.rank)
