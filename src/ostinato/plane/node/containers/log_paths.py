"""Where the logs of containers are: a directory a Pod, one a container in it, and a file for each time it ran."""

from __future__ import annotations

from pathlib import Path

from ostinato.kinds.core_v1 import Pod


def directory_of(logs: Path, pod: Pod) -> Path:
    """Of all logs of a Pod."""
    known = pod.metadata
    return logs / f"{known.namespace}_{known.name}_{known.uid}"


def log_of(logs: Path, pod: Pod, container: str, attempt: int) -> Path:
    return directory_of(logs, pod) / container / f"{attempt}.log"
