"""The object tree: Deployments, their ReplicaSets and their Pods, by owner references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from ostinato.cli.demo.changes import ChangeWatcher, is_ready
from ostinato.cli.demo.screen import BAD, FAINT, GOOD, STRONG, Line, Span
from ostinato.kinds.apps_v1 import ReplicaSet
from ostinato.kinds.core_v1 import Pod

T = TypeVar("T", ReplicaSet, Pod)

_INDENT: Final = " " * 11  # where the lanes of the timeline begin


def render(watcher: ChangeWatcher, pids: Mapping[str, int]) -> Iterator[Line]:
    """Yield the lines of the tree. `pids`: process id of each Pod's container."""
    for deployment in watcher.deployments.values():
        wanted, available = deployment.spec.replicas, deployment.status.available_replicas or 0
        yield _row("", f"Deployment {deployment.metadata.name}", f"{available}/{wanted} available", available == wanted)
        owned = _owned(watcher.replica_sets.values(), deployment.metadata.uid)
        for number, replica_set in enumerate(owned):
            last = number == len(owned) - 1
            yield _replica_set(replica_set, "└─ " if last else "├─ ")
            pods = _owned(watcher.pods.values(), replica_set.metadata.uid)
            for place, pod in enumerate(pods):
                stem = ("   " if last else "│  ") + ("└─ " if place == len(pods) - 1 else "├─ ")
                yield _pod(pod, stem, pids.get(pod.metadata.name))


def _owned(objects: Iterable[T], owner: str) -> list[T]:
    return [each for each in objects if any(reference.uid == owner for reference in each.metadata.owner_references)]


def _replica_set(replica_set: ReplicaSet, stem: str) -> Line:
    wanted, ready = replica_set.spec.replicas or 0, replica_set.status.ready_replicas or 0
    return _row(stem, f"ReplicaSet {replica_set.metadata.name}", f"{ready}/{wanted} ready", wanted and ready == wanted)


def _pod(pod: Pod, stem: str, pid: int | None) -> Line:
    ready = is_ready(pod)
    state = f"{pod.status.phase} on {pod.spec.node_name}" + (f", process {pid}" if pid else "")
    return _row(stem, f"Pod {pod.metadata.name}", state, ready)


def _row(stem: str, name: str, state: str, good: object) -> Line:
    kind, _, rest = name.partition(" ")
    gap = " " * max(2, 46 - len(stem) - len(name))
    mark = Span("● ", GOOD if good else FAINT if state.startswith("0/0") else BAD)
    return (Span(_INDENT + stem, FAINT), mark, Span(f"{kind} ", FAINT), Span(rest, STRONG), Span(gap + state))
