"""CRI configurations of sandboxes and containers, computed from Pods and launch requests. Pure functions."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import Container, Pod, ResourceRequirements
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.plane.node.runtimes import Launch, Mount
from ostinato.plane.node.runtimes.containerd.security import container_security, sandbox_security
from ostinato.plane.node.runtimes.pod_names import dns_config, hostname_of

UID: Final = "io.kubernetes.pod.uid"
NAME: Final = "io.kubernetes.container.name"

_PERIOD: Final = 100_000  # microseconds of the CPU quota period
_PROTOCOLS: Final = {"TCP": 0, "UDP": 1, "SCTP": 2}
_SIGNALS: Final = (
    *("", "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT"),
    *("SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT"),
    *("SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2"),
    *("SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", *(f"SIGRTMIN+{n}" for n in range(1, 16))),
    *(*(f"SIGRTMAX-{n}" for n in range(14, 0, -1)), "SIGRTMAX"),
)


class SandboxNames(msgspec.Struct, frozen=True):
    """What the names in a sandbox depend on: the host's resolv.conf and the cluster DNS, if there is one."""

    resolv_conf: str = ""
    cluster: ClusterDns | None = None

    @property
    def domain(self) -> str:
        return "" if self.cluster is None else self.cluster.domain


def labels(pod: Pod) -> dict[str, str]:
    """Return the labels that identify everything of a Pod."""
    known = pod.metadata
    return {"io.kubernetes.pod.name": known.name, "io.kubernetes.pod.namespace": known.namespace, UID: known.uid}


def sandbox_config(pod: Pod, attempt: int, names: SandboxNames, logs: Path | None = None) -> dict[str, Any]:
    """`names`: of the machine and the cluster. `logs`: log directory of the Pod."""
    known = pod.metadata
    config: dict[str, Any] = {
        "metadata": {"name": known.name, "namespace": known.namespace, "uid": known.uid, "attempt": attempt},
        "hostname": "" if pod.spec.host_network else hostname_of(pod, names.domain),
        "log_directory": "" if logs is None else str(logs),
        "dns_config": dns_config(pod, names.resolv_conf, names.cluster),
        "labels": {**known.labels, **labels(pod)},
        "annotations": dict(known.annotations),
        "port_mappings": [
            {
                "protocol": _PROTOCOLS.get(port.protocol or "TCP", 0),
                "container_port": port.container_port,
                "host_port": port.host_port,
                "host_ip": port.host_ip or "",
            }
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port
        ],
        "linux": {"security_context": sandbox_security(pod)},
    }
    context = pod.spec.security_context
    if context is not None and context.sysctls:
        config["linux"]["sysctls"] = {each.name: each.value for each in context.sysctls}
    return config


def container_config(launch: Launch, image: dict[str, Any], target: str | None, memory: int) -> dict[str, Any]:
    """`image`: its ImageStatus. `target`: container whose PID namespace is joined. `memory`: bytes of the host.

    Mounts of images name the image by its id.
    """
    pod, container = launch.pod, launch.container
    config: dict[str, Any] = {
        "metadata": {"name": container.name, "attempt": launch.attempt},
        "image": {"image": image["id"], "user_specified_image": container.image or ""},
        "command": list(launch.command),
        "args": list(launch.arguments),
        "working_dir": container.working_dir or "",
        "envs": [{"key": name, "value": _encoded(value)} for name, value in launch.environment.items()],
        "mounts": [_mount(each) for each in launch.mounts],
        "labels": {**labels(pod), NAME: container.name},
        "annotations": {"io.kubernetes.container.restartCount": str(launch.attempt)},
        "log_path": "" if launch.log is None else str(Path(launch.log.parent.name) / launch.log.name),
        "stdin": bool(container.stdin),
        "stdin_once": bool(container.stdin_once),
        "tty": bool(container.tty),
        "linux": {
            "resources": resources(pod, container, memory),
            "security_context": container_security(pod, container, image, target),
        },
    }
    signal = None if container.lifecycle is None else container.lifecycle.stop_signal
    if signal in _SIGNALS:
        config["stop_signal"] = _SIGNALS.index(signal)
    return config


def _mount(mount: Mount) -> dict[str, Any]:
    if mount.image:
        config = {"container_path": mount.target, "image": {"image": mount.image}, "readonly": True}
        return config | ({"image_sub_path": mount.sub_path} if mount.sub_path else {})
    return {"container_path": mount.target, "host_path": str(mount.source), "readonly": mount.read_only}


def _encoded(value: str) -> str:
    return b64encode(value.encode()).decode()


# Resources


def resources(pod: Pod, container: Container, memory: int) -> dict[str, Any]:
    """Return the resource limits of a container. `memory`: bytes of the host."""
    own = container.resources or ResourceRequirements()
    whole = pod.spec.resources or ResourceRequirements()
    limits = {**whole.limits, **own.limits}
    requests = own.requests or {name: limits[name] for name in ("cpu",) if name in limits}
    config: dict[str, Any] = {
        "cpu_shares": _shares(_milli_cpu(requests)),
        "cpu_period": _PERIOD,
        "oom_score_adj": _oom_score(pod, own, memory),
    }
    if limit := _milli_cpu(limits):
        config["cpu_quota"] = max(limit * _PERIOD // 1000, 1000)
    if "memory" in limits:
        config["memory_limit_in_bytes"] = limits["memory"].value()
    return config


def machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _milli_cpu(amounts: Mapping[str, Quantity]) -> int:
    return amounts["cpu"].milli_value() if "cpu" in amounts else 0


def _shares(milli: int) -> int:
    return min(max(milli * 1024 // 1000, 2), 262_144)


def _oom_score(pod: Pod, own: ResourceRequirements, memory: int) -> int:
    """Return oom_score_adj, as kubelet computes it from the QoS class and the memory request."""
    if pod.status.qos_class == "Guaranteed":
        return -997
    if pod.status.qos_class == "BestEffort" or "memory" not in own.requests:
        return 1000 if pod.status.qos_class == "BestEffort" else 999
    return min(max(1000 - 1000 * own.requests["memory"].value() // memory, 3), 999)
