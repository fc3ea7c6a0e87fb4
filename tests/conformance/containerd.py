"""A containerd of the suite's own: private directories and socket, a bridge for Pods, and the suite's images."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.registry import HOST, running_registry
from tests.conformance.suite import MissingError, Suite

_PLUGINS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_BRIDGE: Final = "cni-conformance"
_SUBNETS: Final = {"10.99.0.0/16": "0.0.0.0/0", "fd00:10:99::/64": "::/0"}  # of Pods, by IP family, with default routes
_START_SECONDS: Final = 60
_CONFIG: Final = """version = 2
root = "{directory}/root"
state = "{directory}/state"
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{directory}/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


@contextlib.contextmanager
def running_containerd(suite: Suite, directory: Path, *, is_dual_stack: bool = False) -> Iterator[Path]:
    """Start containerd with the suite's images and yield its socket; containers and mounts are removed at the end.

    `is_dual_stack`: Pods have an IPv6 address as well. Defaults to False.
    """
    archives = sorted(suite.images.glob("*.tar"))
    with (
        running_registry(suite.images) as url,
        running_daemon(directory, archives, is_dual_stack=is_dual_stack) as socket,
    ):
        _write_registry(directory, url)
        yield socket


@contextlib.contextmanager
def running_daemon(directory: Path, archives: Sequence[Path], *, is_dual_stack: bool = False) -> Iterator[Path]:
    """Start containerd with the images of archives and yield its socket; `MissingError` if a program is missing."""
    for name in ("containerd", "ctr", "runc"):
        if shutil.which(name) is None:
            raise MissingError(f"no {name}; install containerd and runc")
    _write_configuration(directory, is_dual_stack=is_dual_stack)
    socket = directory / "containerd.sock"
    with (directory / "containerd.log").open("ab") as log:
        daemon = subprocess.Popen(
            ["containerd", "--config", str(directory / "config.toml")], stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_ready(daemon, socket)
        for archive in archives:
            _ctr(socket, "images", "import", str(archive))
        yield socket
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(30)
        kill_shims(socket)
        _unmount_below(directory)
        subprocess.run(["ip", "link", "delete", _BRIDGE], capture_output=True, check=False)


def _write_configuration(directory: Path, *, is_dual_stack: bool) -> None:
    plugins = next((each for each in _PLUGINS if (each / "bridge").exists()), None)
    if plugins is None:
        raise MissingError("no CNI plugins; install containernetworking-plugins")
    (directory / "cni").mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(_CONFIG.format(directory=directory, plugins=plugins))
    network = network_configuration(directory, is_dual_stack=is_dual_stack)
    (directory / "cni" / "10-conformance.conflist").write_text(json.dumps(network))


def network_configuration(directory: Path, *, is_dual_stack: bool) -> dict[str, Any]:
    """Return the CNI configuration of a bridge whose Pods have an address of one IP family, or of each."""
    subnets = dict(list(_SUBNETS.items())[: 2 if is_dual_stack else 1])
    bridge = {
        "type": "bridge",
        "bridge": _BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(directory / "addresses"),
            "ranges": [[{"subnet": each}] for each in subnets],
            "routes": [{"dst": each} for each in subnets.values()],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "conformance", "plugins": [bridge, ports]}


def _write_registry(directory: Path, url: str) -> None:
    """Have containerd pull from the suite's registry instead of the public one."""
    hosts = directory / "registries" / HOST
    hosts.mkdir(parents=True, exist_ok=True)
    (hosts / "hosts.toml").write_text(f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n')


def _wait_until_ready(daemon: subprocess.Popen[bytes], socket: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and daemon.poll() is None:
        with contextlib.suppress(subprocess.SubprocessError):
            _ctr(socket, "version")
            return
        time.sleep(0.2)
    raise MissingError(f"containerd did not start; see {socket.with_name('containerd.log')}")


def _ctr(socket: Path, *arguments: str) -> str:
    command = ["ctr", "--address", str(socket), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def kill_shims(socket: Path) -> None:
    """Kill the shims of a containerd, which outlive it, and the containers that are their children."""
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (directory / "cmdline").read_bytes().split(b"\0")
            if not words[0].endswith(b"containerd-shim-runc-v2") or str(socket).encode() not in words:
                continue
            children = [pid for each in directory.glob("task/*/children") for pid in each.read_text().split()]
            for pid in (*children, directory.name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


def _unmount_below(directory: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in sorted((each for each in mounts if each.startswith(f"{directory}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)
