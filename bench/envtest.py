"""Start of the programs of `ostinato envtest`, and suites on them, beside etcd and kube-apiserver.

    python -m bench.envtest [--real DIR] [--rounds 5] [--suite PROGRAM --directory DIR]

- Each round starts a pair as envtest does, with its flags and its polling interval, and stops it. Rounds alternate.
- `--real`: directory with etcd and kube-apiserver.
- `--suite`: a test program in Go (`go test -c`), run in `--directory` once per round instead.
- CPU is that of all processes, from the start to the end.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import socket
import ssl
import statistics
import subprocess
import tempfile
import time
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from ostinato.certificates.generate import generate_certificate
from ostinato.cli.envtest.assets import write_assets
from ostinato.world import World

INTERVAL = 0.1  # seconds between two health checks, as in envtest
SECONDS = 120


class Round(NamedTuple):
    wall: float  # until ready; for a suite, until its end
    cpu: float
    memory: float = 0.0  # MiB of both processes when ready


def main() -> None:
    parser = argparse.ArgumentParser(description="measure the programs of ostinato envtest")
    parser.add_argument("--real", type=Path, help="directory with etcd and kube-apiserver")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--suite", type=Path, help="test program in Go that uses envtest")
    parser.add_argument("--directory", type=Path, default=Path(), help="working directory of the suite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        assets = {"ostinato": write_assets(Path(place) / "assets")}
        if options.real is not None:
            assets["etcd + kube-apiserver"] = options.real.resolve()
        rounds: dict[str, list[Round]] = {name: [] for name in assets}
        for _ in range(options.rounds):
            for name, directory in assets.items():
                rounds[name].append(_suite(options, directory) if options.suite else start_pair(directory))
    print(f"median (least) of {options.rounds}, load average {os.getloadavg()[0]:.1f}")
    for name, measured in rounds.items():
        walls, cpus = [each.wall for each in measured], [each.cpu for each in measured]
        memory = statistics.median(each.memory for each in measured)
        print(
            f"{name:22} {'suite' if options.suite else 'ready'} {statistics.median(walls):6.2f} s ({min(walls):.2f})"
            f"   CPU {statistics.median(cpus):6.2f} s ({min(cpus):.2f})" + (f"   {memory:.0f} MiB" if memory else "")
        )


def start_pair(assets: Path) -> Round:
    with tempfile.TemporaryDirectory() as place:
        for name in ("data", "certs"):
            (Path(place) / name).mkdir(mode=0o700)
        made = generate_certificate(World.real(), ["127.0.0.1", "localhost"], timedelta(days=1))
        for name, data in (("apiserver.crt", made.certificate), ("apiserver.key", made.key)):
            (Path(place) / "certs" / name).write_bytes(data)
        ports = [_free_port() for _ in range(3)]
        before, began = _cpu(), time.monotonic()
        etcd = _start(assets / "etcd", *_etcd_flags(place, ports), url=f"http://127.0.0.1:{ports[0]}/health")
        flags = _apiserver_flags(place, ports)
        apiserver = _start(assets / "kube-apiserver", *flags, url=f"https://127.0.0.1:{ports[2]}/healthz")
        wall = time.monotonic() - began
        memory = sum(map(_memory, (etcd, apiserver)))
        for process in (apiserver, etcd):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(SECONDS)
        return Round(wall, _cpu() - before, memory)


def _etcd_flags(place: str, ports: list[int]) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
    flags = [f"--data-dir={place}/data", "--unsafe-no-fsync=true", f"--listen-peer-urls={peer}"]
    return [*flags, f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]


def _apiserver_flags(place: str, ports: list[int]) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{ports[0]}",
        f"--cert-dir={place}/certs",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[2]}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer=https://127.0.0.1:{ports[2]}/",
        f"--service-account-key-file={place}/certs/apiserver.crt",
        f"--service-account-signing-key-file={place}/certs/apiserver.key",
    ]


def _start(program: Path, *flags: str, url: str) -> subprocess.Popen[bytes]:
    """Ask for the help, as envtest does, start the program and wait until it is ready."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([program, "--help"], check=True, timeout=SECONDS, **quiet)  # type: ignore[call-overload]
    process = subprocess.Popen([program, *flags], process_group=0, **quiet)  # type: ignore[call-overload]
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while True:
        try:
            with urllib.request.urlopen(url, context=context if url.startswith("https") else None):
                return process  # type: ignore[no-any-return]
        except OSError:
            assert process.poll() is None, f"{program} exited with {process.returncode}"
            time.sleep(INTERVAL)


def _suite(options: argparse.Namespace, assets: Path) -> Round:
    before, began = _cpu(), time.monotonic()
    subprocess.run(
        [options.suite.resolve()],
        cwd=options.directory,
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return Round(time.monotonic() - began, _cpu() - before)


def _cpu() -> float:
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
