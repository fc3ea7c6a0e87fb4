"""Workers of one API server, on etcd. Several servers: docs/how-to/run-several-api-servers.md, run by tests/docs."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from pathlib import Path

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import ConfigMap
from tests.cluster.running import running
from tests.etcd_cluster import EtcdCluster, needs_etcd

_READY = "process ended, restarting component=worker-"


@needs_etcd
def test_workers_share_a_port_and_are_restarted(tmp_path: Path) -> None:
    with EtcdCluster.start(tmp_path / "etcd") as etcd:
        options = ("apiserver", "--workers", "2", "--listen", "127.0.0.1:0", "--store", etcd.url)
        command = ("-m", "ostinato.cli", *options, "--state", str(tmp_path / "state"))
        with running(tmp_path / "log", *command) as program:
            program.wait_for_output("ready at")
            workers = _children(program.process.pid)
            assert len(workers) == 2
            asyncio.run(_write_on_many_connections(tmp_path / "state" / "admin.kubeconfig", "before"))
            _kill(workers[0])
            asyncio.run(_write_on_many_connections(tmp_path / "state" / "admin.kubeconfig", "after"))
            program.process.send_signal(signal.SIGINT)
            assert program.process.wait(60) == 0
            assert _READY in program.log()
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def _kill(pid: int) -> None:
    """Kill a process, and wait until its sockets are closed: until then it is offered connections."""
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([ended], [], [], 30)[0]
    os.close(ended)


def _children(parent: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


async def _write_on_many_connections(kubeconfig: Path, prefix: str) -> None:
    """Each client has its own connections: some to each worker. One writes, the next one reads it."""
    config = Config.load(path=kubeconfig)
    for i in range(8):
        made = ConfigMap(metadata=ObjectMeta(name=f"{prefix}-{i}", namespace="default"))
        async with Client.connect(config) as one, Client.connect(config) as other:
            await one.create(made)
            await other.get(ConfigMap, made.metadata.name, namespace="default")
