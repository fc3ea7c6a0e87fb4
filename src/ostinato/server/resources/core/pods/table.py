"""Table rows of Pods."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, Cells, age, condition_status, name_of, since

_COMPLETED = {"type": "Completed", "status": "True"}
_FINISHED = {
    "Succeeded": [{**_COMPLETED, "reason": "Succeeded", "message": "The pod has completed successfully."}],
    "Failed": [{**_COMPLETED, "reason": "Failed", "message": "The pod failed."}],
}


def pod_conditions(obj: Json) -> list[Json]:
    """The conditions of a row: a finished Pod is marked, so that clients can hide it."""
    return _FINISHED.get((obj.get("status") or {}).get("phase", ""), [])


def pod(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    summary = _Summary(obj)
    restarts = str(summary.restarts)
    if summary.restarts and summary.restarted:
        restarts = f"{restarts} ({since(summary.restarted, now)} ago)"
    addresses = status.get("podIPs") or [{}]
    return [
        name_of(obj),
        f"{summary.ready}/{summary.total}",
        summary.reason,
        restarts,
        age(obj, now),
        addresses[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(obj, spec.get("readinessGates") or ()),
    ]


def _readiness_gates(obj: Json, gates: Any) -> str:
    if not gates:
        return NONE
    met = sum(condition_status(obj, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


class _Summary:
    """The summary of a Pod for its row. Init containers determine it until they have finished."""

    def __init__(self, obj: Json) -> None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        self.total = len(spec.get("containers") or ())
        self.ready = 0
        self.restarts = 0
        self.restarted = ""  # when a container last terminated before a restart
        self.reason = status.get("reason") or status.get("phase", "")
        if any(
            c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated"
            for c in status.get("conditions") or ()
        ):
            self.reason = "SchedulingGated"
        init = spec.get("initContainers") or ()
        self._sidecars = {c.get("name") for c in init if c.get("restartPolicy") == "Always"}
        self.total += len(self._sidecars)
        sidecar_restarts, sidecar_restarted, initializing = self._initialize(status, len(init))
        if not initializing or condition_status(obj, "Initialized") == "True":
            self.restarts, self.restarted = sidecar_restarts, sidecar_restarted
            self._run(obj, status)
        if obj["metadata"].get("deletionTimestamp"):
            if status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif status.get("phase") not in ("Succeeded", "Failed"):
                self.reason = "Terminating"

    def _initialize(self, status: Json, count: int) -> tuple[int, str, bool]:
        """Process the init containers: restarts of sidecars, time of the last one, and whether one blocks the Pod."""
        restarts, restarted = 0, ""
        for i, container in enumerate(status.get("initContainerStatuses") or ()):
            sidecar = container.get("name") in self._sidecars
            ended = _ended(container)
            self.restarts += container.get("restartCount", 0)
            self.restarted = max(self.restarted, ended)
            if sidecar:
                restarts += container.get("restartCount", 0)
                restarted = max(restarted, ended)
            state = container.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting") or {}
            if terminated is not None and not terminated.get("exitCode"):
                continue
            if sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.reason = "Init:" + _why(terminated)
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = "Init:" + waiting["reason"]
            else:
                self.reason = f"Init:{i}/{count}"
            return restarts, restarted, True
        return restarts, restarted, False

    def _run(self, obj: Json, status: Json) -> None:
        running, failure = False, ""
        for container in reversed(status.get("containerStatuses") or ()):
            self.restarts += container.get("restartCount", 0)
            self.restarted = max(self.restarted, _ended(container))
            state = container.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting") or {}
            if waiting.get("reason"):
                self.reason = waiting["reason"]
            elif terminated is not None:
                self.reason = _why(terminated)
                if terminated.get("exitCode"):
                    failure = self.reason
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":  # the first container has completed, but others may run
            if running and condition_status(obj, "Ready") == "True":
                self.reason = "Running"
            elif failure:
                self.reason = failure
            elif running:
                self.reason = "NotReady"


def _ended(container: Json) -> str:
    """When the container's previous run ended. All times are UTC with seconds, so they compare as text."""
    finished: str = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
    return finished


def _why(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


CELLS: dict[tuple[str, str], Cells] = {("", "pods"): pod}
