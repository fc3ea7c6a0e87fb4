"""Results of probes, counted for kubelet's `/metrics/probes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ostinato.kinds.core_v1 import Pod
from ostinato.metrics import Family, Sample
from ostinato.plane.node.probes.outcome import Outcome

_RESULTS: Final = {"success": "successful", "failure": "failed", "error": "unknown"}
_HELP: Final = "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result."


class ProbeResults:
    """Counts the results of the containers of one node, until their probes end."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], dict[tuple[str, str], int]] = {}  # by Pod uid and container
        self._pods: dict[tuple[str, str], Pod] = {}

    def count(self, pod: Pod, container: str, kind: str, outcome: Outcome) -> None:
        key = pod.metadata.uid, container
        self._pods[key] = pod
        counts = self._counts.setdefault(key, {})
        result = kind.capitalize(), _RESULTS[outcome.result]
        counts[result] = counts.get(result, 0) + 1

    def forget(self, pod: Pod, container: str) -> None:
        """The probes of a container have ended."""
        self._counts.pop((pod.metadata.uid, container), None)
        self._pods.pop((pod.metadata.uid, container), None)

    def families(self) -> Iterator[Family]:
        samples = []
        for (uid, container), counts in self._counts.items():
            about = self._pods[uid, container].metadata
            whose = {"container": container, "namespace": about.namespace, "pod": about.name, "pod_uid": uid}
            for (kind, result), number in counts.items():
                labels = {**whose, "probe_type": kind, "result": result}
                samples.append(Sample("prober_probe_total", labels, number))
        yield Family("prober_probe_total", "counter", _HELP, samples)
