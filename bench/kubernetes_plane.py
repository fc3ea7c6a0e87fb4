"""Kubernetes on loopback, as a peer of benchmarks: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

    python -m bench.kubernetes_plane up DIR [--bare] [--kcm-flag=--x=y] [--scheduler-flag=--x=y]
    python -m bench.kubernetes_plane down DIR

- The programs are those that `python -m bench.peers` builds. Their settings are their defaults, except addresses,
  certificates, the administrator's token and leader election, which is off.
- `up` returns when the API server is ready. DIR has `admin.kubeconfig`, `token`, `pids` (lines of PID and name) and a
  log of each program.
- `--bare` starts etcd and kube-apiserver alone.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from bench.peers import PEERS
from ostinato.certificates.generate import generate_certificate
from ostinato.world import World

SECONDS = 90  # until a program is ready
NAMES = ("127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc")


class Plane:
    """The programs of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()

    def up(self, *, bare: bool, kcm: Sequence[str], scheduler: Sequence[str]) -> None:
        if (self._directory / "pids").exists():
            raise SystemExit(f"{self._directory} is in use: `python -m bench.kubernetes_plane down DIR` first")
        self._directory.mkdir(parents=True, exist_ok=True)
        token = secrets.token_hex(16)
        self._write("token", token)
        self._write("tokens.csv", f'{token},admin,admin,"system:masters"\n')
        made = generate_certificate(World.real(), NAMES, timedelta(days=30))
        for name, data in (("server.crt", made.certificate), ("server.key", made.key), ("ca.crt", made.authorities)):
            self._write(name, data.decode())
        etcd = self._start_etcd()
        url = self._start_apiserver(etcd, token)
        self._write("admin.kubeconfig", _kubeconfig(url, token, made.authorities))
        if not bare:
            self._start_controllers(kcm)
            flags = ["--leader-elect=false", f"--secure-port={_free_port()}", "--bind-address=127.0.0.1"]
            self._start(
                "kube-scheduler", self._kubeconfig_flag(), f"--cert-dir={self._at('scheduler')}", *flags, *scheduler
            )

    def down(self) -> None:
        pids = self._directory / "pids"
        if not pids.exists():
            raise SystemExit(f"nothing runs in {self._directory}")
        for line in reversed(pids.read_text().splitlines()):
            _end(int(line.split()[0]))
        pids.unlink()

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
        flags = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
        flags += [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=peer={peer}", "--log-level=warn"]
        self._start("etcd", "--name=peer", f"--data-dir={self._at('etcd')}", *flags)
        _wait(f"{client}/health", 30)
        return client

    def _start_apiserver(self, etcd: str, token: str) -> str:
        port = _free_port()
        self._start(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self._at('server.crt')}",
            f"--tls-private-key-file={self._at('server.key')}",
            f"--token-auth-file={self._at('tokens.csv')}",
            f"--client-ca-file={self._at('ca.crt')}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._at('server.crt')}",
            f"--service-account-signing-key-file={self._at('server.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
        )
        _wait(f"https://127.0.0.1:{port}/readyz", SECONDS, token)
        return f"https://127.0.0.1:{port}"

    def _start_controllers(self, more: Sequence[str]) -> None:
        self._start(
            "kube-controller-manager",
            self._kubeconfig_flag(),
            f"--service-account-private-key-file={self._at('server.key')}",
            f"--root-ca-file={self._at('ca.crt')}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            f"--secure-port={_free_port()}",
            f"--cert-dir={self._at('kcm')}",
            "--bind-address=127.0.0.1",
            *more,
        )

    def _start(self, name: str, *flags: str) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(PEERS / name), *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        with (self._directory / "pids").open("a") as pids:
            pids.write(f"{process.pid} {name}\n")

    def _kubeconfig_flag(self) -> str:
        return f"--kubeconfig={self._at('admin.kubeconfig')}"

    def _at(self, name: str) -> str:
        return str(self._directory / name)

    def _write(self, name: str, text: str) -> None:
        file = self._directory / name
        file.touch(mode=0o600)
        file.write_text(text)


def _kubeconfig(url: str, token: str, authority: bytes) -> str:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "peer",
            "clusters": [{"name": "peer", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "admin"}}],
        }
    )


def _wait(url: str, seconds: float, token: str = "") -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5, context=context if token else None):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise SystemExit(f"{url} is not ready after {seconds:g} s: {error}; see the logs") from None
        time.sleep(0.05)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            os.kill(pid, 0)
            if _is_zombie(pid):
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("directory", type=Path)
    up.add_argument("--bare", action="store_true", help="start etcd and kube-apiserver alone")
    up.add_argument("--kcm-flag", action="append", default=[], help="flag of kube-controller-manager; may be repeated")
    up.add_argument("--scheduler-flag", action="append", default=[], help="flag of kube-scheduler; may be repeated")
    commands.add_parser("down").add_argument("directory", type=Path)
    options = parser.parse_args()
    plane = Plane(options.directory)
    if options.command == "up":
        plane.up(bare=options.bare, kcm=options.kcm_flag, scheduler=options.scheduler_flag)
    else:
        plane.down()


if __name__ == "__main__":
    main()
