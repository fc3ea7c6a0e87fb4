"""The sandbox of a Pod: a pause container that holds the namespaces which the Pod's containers share.

These are IPC and UTS (host name) and, with `shareProcessNamespace`, PID. A Pod with a single container needs no
sandbox: the container has its own namespaces.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.runtimes import Launch
from ostinato.plane.node.runtimes.process.program import Program
from ostinato.plane.node.runtimes.process.security import Identity

NAME: Final = ".sandbox"  # not a valid container name, so it cannot collide
_NOBODY: Final = 65535
SECURITY: Final[dict[str, Any]] = {
    "user": _NOBODY,
    "group": _NOBODY,
    "groups": [],
    "capabilities": 0,
    "no_new_privileges": True,
    "seccomp": None,
}


def is_needed(pod: Pod) -> bool:
    spec = pod.spec
    return bool(spec.share_process_namespace) or len(spec.containers) + len(spec.init_containers) > 1


def launch_of(pod: Pod, attempt: int) -> Launch:
    container = Container(name=NAME, working_dir="/")
    return Launch(pod=pod, container=container, attempt=attempt, command=["sleep", "infinity"])


def program_of(launch: Launch) -> Program:
    return Program(
        command=list(launch.command),
        environment={"PATH": os.defpath},
        directory="/",
        runs_as=Identity(_NOBODY, _NOBODY, []),
        stop_signal=signal.SIGTERM,
        image=None,
    )
