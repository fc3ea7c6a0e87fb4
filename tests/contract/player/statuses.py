"""Statuses that a kubelet writes: of a ready node, and of a Pod through its life cycle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from tests.contract.player.paths import Object

FINISHED: Final = ("Succeeded", "Failed")


class Moment(NamedTuple):
    """A step of a Pod's life cycle."""

    after: float  # seconds after its start
    phase: str
    ready: bool = False
    exit_code: int | None = None


def course(words: Sequence[str]) -> list[Moment]:
    """The life cycle of a Pod with this behaviour."""
    running = Moment(0, "Running", ready=True)
    for word in words:
        match word.partition(":"):
            case "hold", _, _:
                return []
            case "never-ready", _, _:
                return [Moment(0, "Running")]
            case "slow", _, _:
                return [Moment(0, "Running"), Moment(2, "Running", ready=True)]
            case "succeed", _, _:
                return [running, Moment(0.4, "Succeeded", exit_code=0)]
            case "fail", _, code:
                return [running, Moment(0.4, "Failed", exit_code=int(code or 1))]
        if later := re.fullmatch(r"ready-then-fail-after-(\d+)s", word):
            return [running, Moment(int(later[1]), "Failed", exit_code=1)]
    return [running]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def microseconds() -> str:
    return _now().replace("Z", ".000000Z")


def node_status(name: str, number: int) -> Object:
    """The status of a ready node; its address is derived from the number."""
    reasons = {
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
        "Ready": "KubeletReady",
    }
    now = _now()
    return {
        "conditions": [
            {
                "type": kind,
                "status": "True" if kind == "Ready" else "False",
                "reason": reason,
                "message": "scripted",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, reason in reasons.items()
        ],
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.{number // 250 % 250}.{number % 250 + 1}"},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": {"kubeletVersion": "v1.36.4", "operatingSystem": "linux", "architecture": "amd64"},
    }


def pod_status(pod: Object, moment: Moment, words: Sequence[str], address: str) -> Object:
    """A Pod's status, as a kubelet would write it."""
    meta, now = pod["metadata"], _now()
    done = moment.phase in FINISHED
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(moment.phase, "ContainersNotReady")
    ready = {"status": "True"} if moment.ready else {"status": "False", "reason": reason}
    conditions = {
        "PodReadyToStartContainers": {"status": "False" if done else "True"},
        "Initialized": {"status": "True", **({"reason": reason} if moment.phase == "Succeeded" else {})},
        "ContainersReady": ready,
        "Ready": ready,
    }
    if "disrupted" in words and moment.phase == "Failed":
        conditions["DisruptionTarget"] = {"status": "True", "reason": "TerminationByKubelet"}
    code = moment.exit_code
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "scripted",
            "containerID": f"scripted://{meta['uid']}",
            "ready": moment.ready,
            "started": not done,
            "restartCount": next((int(word[9:]) for word in words if word.startswith("restarts:")), 0),
            "state": {"terminated": ended} if done else {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    status = {
        "phase": moment.phase,
        "conditions": [{"type": kind, "lastTransitionTime": now, **part} for kind, part in conditions.items()],
        "hostIP": "192.168.0.1",
        "hostIPs": [{"ip": "192.168.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "observedGeneration": meta.get("generation"),
        "containerStatuses": containers,
    }
    return status if pod["status"].get("startTime") else {**status, "startTime": now}
