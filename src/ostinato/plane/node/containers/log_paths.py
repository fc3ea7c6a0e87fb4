"""Paths of container logs: NAMESPACE_POD_UID/CONTAINER/ATTEMPT.log, as kubelet's /var/log/pods."""

from __future__ import annotations

from pathlib import Path

from ostinato.kinds.core_v1 import Pod


def directory_of(logs: Path, pod: Pod) -> Path:
    """Return the log directory of a Pod."""
    known = pod.metadata
    return logs / f"{known.namespace}_{known.name}_{known.uid}"


def log_of(logs: Path, pod: Pod, container: str, attempt: int) -> Path:
    return directory_of(logs, pod) / container / f"{attempt}.log"
