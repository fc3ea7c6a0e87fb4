"""Control plane beside Kubernetes with kwok: the same Deployments, and how cost grows with their number."""

from __future__ import annotations

from bench.peers import Missing
from bench.plane import DEFAULT, OURS, RAISED, Load, Measured, Step, rest, run
from bench.suite.context import Context
from bench.suite.peer_cache import PeerCache
from bench.suite.results import Figure

SMALL, WHOLE = Load(100, 10, 100), Load(1000, 100, 100)
QUICK_SMALL, QUICK_WHOLE = Load(10, 5, 10), Load(40, 10, 20)
CAP = 400.0  # seconds of each step that a peer may take
SMALL_ROUNDS, ROUNDS = 3, 2

_OF_DEFAULT = ("plane-available", "plane-deleted", "plane-memory", "plane-cpu")
_OF_RAISED = ("plane-available-raised", "plane-deleted-raised", "plane-memory-raised")
_OF_PROCESSES = ("plane-processes-available", "plane-processes-deleted")
_OF_SMALL = ("plane-small-available", "plane-small-deleted")


def measure(context: Context) -> None:
    small, whole = (QUICK_SMALL, QUICK_WHOLE) if context.quick else (SMALL, WHOLE)
    if context.wants(*_OF_SMALL):
        _beside(context, small, RAISED, SMALL_ROUNDS)
    if context.wants(*_OF_DEFAULT, *_OF_RAISED):
        ours = _ours(context, whole, ROUNDS)
        for name, rows in ((RAISED, _OF_RAISED), (DEFAULT, _OF_DEFAULT)):
            if context.wants(*rows):
                _report(context, rows, ours, *_peer(context, name, whole))
    if context.wants(*_OF_PROCESSES):
        sides = [[run(OURS, whole, rests=False, options=("--processes", number))] for number in ("2", "1")]
        _report(context, _OF_PROCESSES, *sides)
    if context.wants("plane-rest"):
        _rest(context, whole.nodes)


def _beside(context: Context, load: Load, peer: str, rounds: int) -> None:
    """Measure both sides in alternation."""
    ours: list[Measured] = []
    theirs: list[Measured] = []
    reason = ""
    for _ in range(min(context.rounds, rounds)):
        ours.append(run(OURS, load, rests=False))
        try:
            theirs.append(run(peer, load, real=context.options.real or None, cap=CAP, rests=False))
        except Missing as error:
            reason = str(error)
    for each in (ours[-1:], theirs[-1:]):
        for measured in each:
            context.plane(measured)
    _report(context, _OF_SMALL, ours, theirs, reason=reason)


def _rest(context: Context, nodes: int) -> None:
    peer, reason = [], ""
    try:
        peer = [rest(RAISED, nodes, real=context.options.real or None)]
    except Missing as error:
        reason = str(error)
    context.values("plane-rest", [rest(OURS, nodes)], peer, reason)


def _ours(context: Context, load: Load, rounds: int) -> list[Measured]:
    found = [run(OURS, load, rests=False) for _ in range(min(context.rounds, rounds))]
    context.plane(min(found, key=lambda each: each.available.seconds))
    return found


def _peer(context: Context, name: str, load: Load) -> tuple[list[Measured], str, str]:
    """Return the run of a peer, when it was stored if it is an earlier one, and why there is none."""
    cache = PeerCache()
    if context.options.peer_cache and (stored := cache.find(name, load)) is not None:
        context.plane(stored.measured)
        return [stored.measured], stored.date, ""
    try:
        measured = run(name, load, real=context.options.real or None, cap=CAP, rests=False)
    except Missing as error:
        return [], "", str(error)
    context.plane(measured)
    if not context.quick:
        cache.store(measured)
    return [measured], "", ""


def _report(
    context: Context,
    rows: tuple[str, ...],
    ours: list[Measured],
    peer: list[Measured],
    since: str = "",
    reason: str = "",
) -> None:
    for row in rows:
        name = row.removesuffix("-raised").rpartition("-")[2]
        step = {"available": "available", "deleted": "deleted"}.get(name)
        figure = Figure(
            row=row,
            ours=[_value(each, name) for each in ours],
            peer=[_value(each, name) for each in peer],
            at_least=step is not None and any(_is_capped(getattr(each, step), each) for each in peer),
            peer_from=since,
            problem=reason,
        )
        context.figure(figure)


def _value(measured: Measured, name: str) -> float:
    if name in {"available", "deleted"}:
        step: Step = getattr(measured, name)
        return step.seconds
    if name == "cpu":
        return measured.available.cpu + measured.deleted.cpu
    value: float = getattr(measured, name)
    return value


def _is_capped(step: Step, measured: Measured) -> bool:
    return step.reached < measured.pods and step.seconds >= CAP
