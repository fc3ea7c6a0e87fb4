"""kwok beside Kubernetes: simulated nodes for kube-scheduler and kube-controller-manager.

`started(...)` starts Kubernetes without nodes, then kwok with its fast stages, and creates the Nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.peers import Command, kwok, stages
from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import Node, NodeStatus

RAISED = ("--kube-api-qps=1000", "--kube-api-burst=2000")  # of kube-controller-manager and kube-scheduler
DEFAULTS = "kube-controller-manager 20 requests/s (burst 30) per controller, kube-scheduler 50/s (burst 100)"
ANNOTATION = "kwok.x-k8s.io/node"
_WRITERS = 16


@contextlib.contextmanager
def started(command: Command, nodes: int, directory: Path, *, raised: bool) -> Iterator[tuple[list[int], Path]]:
    """Start the peer; yield the PIDs of all its processes and the kubeconfig."""
    program, place = kwok(), directory / "kubernetes"
    flags = [f"--{name}-flag={flag}" for name in ("kcm", "scheduler") for flag in RAISED] if raised else []
    (directory / "stages.yaml").write_text(stages())
    subprocess.run([*command, "up", str(place), *flags], check=True, stdout=subprocess.DEVNULL)
    try:
        kubeconfig = place / "admin.kubeconfig"
        pids = [int(line.split()[0]) for line in (place / "pids").read_text().splitlines()]
        start = [str(program), f"--kubeconfig={kubeconfig}", f"--config={directory / 'stages.yaml'}"]
        start += [f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake", "--manage-all-nodes=false"]
        start += ["--cidr=10.240.0.0/16", "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40"]
        environment = {**os.environ, "HOME": str(directory)}  # its configuration directory
        with (directory / "kwok.log").open("wb") as log:
            process = subprocess.Popen(start, stdout=log, stderr=log, env=environment)
        try:
            asyncio.run(_create(kubeconfig, nodes))
            yield [*pids, process.pid], kubeconfig
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
    finally:
        subprocess.run([*command, "down", str(place)], check=False, stdout=subprocess.DEVNULL, stderr=sys.stderr)


async def _create(kubeconfig: Path, count: int) -> None:
    numbers = iter(range(count))
    async with Client.connect(Config.load(path=kubeconfig)) as client, asyncio.TaskGroup() as group:
        for _ in range(_WRITERS):
            group.create_task(_create_some(client, numbers))


async def _create_some(client: Client, numbers: Iterator[int]) -> None:
    for number in numbers:
        await client.create(_node(number))


def _node(number: int) -> Node:
    name = f"node-{number}"
    amounts = {"cpu": Quantity("32"), "memory": Quantity("64Gi"), "pods": Quantity("110")}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, annotations={ANNOTATION: "fake"}),
        status=NodeStatus(capacity=amounts, allocatable=amounts),
    )
