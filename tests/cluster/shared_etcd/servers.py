"""kube-apiserver and this server on one etcd: each can be stopped and started again."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests.cluster.shared_etcd.api import Api
from tests.conftest import started_apiserver

_SECONDS = 90
ENCRYPTION = """kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [secrets, gadgets.example.com]
  providers:
  - aesgcm: {keys: [{name: one, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]}
  - identity: {}
"""


class SharedEtcd:
    """The etcd of a kube-apiserver that `command up DIR --bare` has started."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        self._command = command
        self._directory = directory
        self._kube = directory / "kube"
        self.encryption = directory / "encryption.yaml"
        self._flags: list[str] = []  # of kube-apiserver
        self._number = 0
        self.etcd = ""

    @classmethod
    @contextmanager
    def start(cls, command: Sequence[str], directory: Path) -> Iterator[SharedEtcd]:
        """Start etcd; kube-apiserver is stopped."""
        found = cls(command, directory)
        found.encryption.write_text(ENCRYPTION)
        subprocess.run([*command, "up", str(found._kube), "--bare"], check=True, timeout=600)
        try:
            pids = dict(reversed(line.split()) for line in (found._kube / "pids").read_text().splitlines())
            found._flags = Path(f"/proc/{pids['kube-apiserver']}/cmdline").read_text().split("\0")[:-1]
            found._flags[0] = os.readlink(f"/proc/{pids['kube-apiserver']}/exe")
            servers = next(each for each in found._flags if each.startswith("--etcd-servers="))
            found.etcd = servers.partition("://")[2]
            _end(int(pids["kube-apiserver"]))
            yield found
        finally:
            subprocess.run([*command, "down", str(found._kube)], check=False, timeout=60)

    @contextmanager
    def kube_apiserver(self, *options: str) -> Iterator[Api]:
        flags = [each for each in self._flags if not each.startswith("--secure-port=")]
        port = _free_port()
        own = [f"--secure-port={port}", f"--encryption-provider-config={self.encryption}", *options]
        with (self._directory / "kube-apiserver.log").open("ab") as log:
            process = subprocess.Popen([*flags, *own], stdout=log, stderr=log)
        try:
            url = f"https://127.0.0.1:{port}"
            _wait_ready(url, process, self._directory / "kube-apiserver.log")
            with closing(Api(url, (self._kube / "token").read_text())) as api:
                yield api
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @contextmanager
    def ostinato(self, *options: str) -> Iterator[Api]:
        self._number += 1
        place = self._directory / f"ostinato-{self._number}"
        place.mkdir()
        state = place / "state"
        state.mkdir(mode=0o700)
        first = self._directory / "ostinato-1" / "state"
        for name in ("ca.crt", "ca.key", "sa.key"):
            if self._number > 1:
                (state / name).write_bytes((first / name).read_bytes())
                (state / name).chmod(0o600)
        own = ["--encryption-provider-config", str(self.encryption), *options]
        store = ["--store", f"etcd://{self.etcd}"]
        with started_apiserver(place, own, store) as server, closing(Api(server.url, server.token)) as api:
            yield api


def _end(pid: int) -> None:
    """End a process that is not a child of this one."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and Path(f"/proc/{pid}").exists():
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return
            time.sleep(0.05)


def _wait_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    until = time.monotonic() + _SECONDS
    while True:
        with suppress(OSError), urllib.request.urlopen(f"{url}/readyz", timeout=2, context=context) as answer:
            if answer.status == 200:
                return
        if process.poll() is not None or time.monotonic() > until:
            raise AssertionError(f"kube-apiserver is not ready: {log.read_text()[-3000:]}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
