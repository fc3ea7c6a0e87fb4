"""The programs of `ostinato envtest`, started as envtest starts them."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli.envtest.assets import write_assets

SECONDS = 60
TOKEN = "token-for-tests"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    if request.config.getoption("--cluster"):
        pytest.skip("the programs are this package's")
    return write_assets(tmp_path_factory.mktemp("assets"))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Programs:
    """etcd and kube-apiserver with their directories, each in a process group of its own, as envtest starts them."""

    def __init__(self, assets: Path, place: Path, *flags: str) -> None:
        self._assets = assets
        self._place = place
        self._ports = _free_port(), _free_port()
        self._flags = flags
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("data", "certs"):
            (place / name).mkdir(mode=0o700, parents=True)
        (place / "tokens.csv").write_text(f'{TOKEN},admin,admin-uid,"system:masters"\n')

    def command(self, program: str) -> list[str]:
        """The command line, with the flags of envtest."""
        etcd, apiserver = (f"127.0.0.1:{port}" for port in self._ports)
        if program == "etcd":
            flags = [f"--data-dir={self._place / 'data'}", f"--listen-client-urls=http://{etcd}"]
            flags += [f"--advertise-client-urls=http://{etcd}", "--listen-peer-urls=http://127.0.0.1:0"]
            flags += ["--unsafe-no-fsync=true"]
        else:
            flags = [
                f"--etcd-servers=http://{etcd}",
                f"--cert-dir={self._place / 'certs'}",
                "--authorization-mode=RBAC",
            ]
            flags += ["--bind-address=127.0.0.1", f"--secure-port={self._ports[1]}", *self._flags]
            flags += ["--disable-admission-plugins=ServiceAccount", f"--token-auth-file={self._place / 'tokens.csv'}"]
            flags += [f"--service-account-issuer=https://{apiserver}/"]
        return [str(self._assets / program), *flags]

    def start(self, program: str) -> None:
        with self.log(program).open("ab") as log:
            self._processes[program] = subprocess.Popen(
                self.command(program), stdout=log, stderr=log, process_group=0, env={**os.environ}
            )

    def stop(self, program: str, number: int = signal.SIGTERM) -> int:
        """Send a signal to the process group, as envtest does, and return the exit code."""
        process = self._processes.pop(program)
        os.killpg(process.pid, number)
        return process.wait(SECONDS)

    def kill(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(SECONDS)

    def log(self, program: str) -> Path:
        return self._place / f"{program}.log"

    def wait_until_ready(self) -> None:
        """Poll anonymously without verification, as envtest does."""
        for path, tls, port in (("/health", None, self._ports[0]), ("/healthz", _unverified(), self._ports[1])):
            until = time.monotonic() + SECONDS
            while True:
                try:
                    if _get(port, path, tls)[0] == 200:
                        break
                except OSError:
                    pass
                logs = [log.read_text() for log in self._place.glob("*.log")]
                assert time.monotonic() < until, logs
                for process in self._processes.values():
                    assert process.poll() is None, logs
                time.sleep(0.05)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request as an administrator, verifying the certificate."""
        verified = ssl.create_default_context(cafile=self._place / "certs" / "apiserver.crt")
        status, data = _get(self._ports[1], path, verified, method, body)
        return status, json.loads(data)

    def is_closed(self) -> bool:
        """Whether nothing listens on either port."""
        for port in self._ports:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return False
        return True


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _get(
    port: int, path: str, tls: ssl.SSLContext | None, method: str = "GET", body: object = None
) -> tuple[int, bytes]:
    connection: http.client.HTTPConnection
    headers = {"Content-Type": "application/json"}
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=SECONDS, context=tls)
        if tls.verify_mode == ssl.CERT_REQUIRED:
            headers["Authorization"] = f"Bearer {TOKEN}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def programs(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    flags = ("--service-cluster-ip-range=10.9.0.0/16", "--feature-gates=A=true")
    programs = Programs(assets, tmp_path_factory.mktemp("programs") / "a b", *flags)
    try:
        programs.start("etcd")
        programs.start("kube-apiserver")
        programs.wait_until_ready()
        yield programs
    finally:
        programs.kill()


def test_a_second_pair_runs_beside_the_first_until_its_parent_is_killed(
    assets: Path, programs: Programs, tmp_path: Path
) -> None:
    second = Programs(assets, tmp_path)
    commands = [second.command("etcd"), second.command("kube-apiserver")]
    script = (
        "import subprocess\n"
        f"made = [subprocess.Popen(command, process_group=0) for command in {commands!r}]\n"
        "print(*(each.pid for each in made), flush=True)\n"
        "made[0].wait()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        second.wait_until_ready()
    finally:
        parent.kill()
        parent.wait(SECONDS)
    until = time.monotonic() + SECONDS
    while not all(map(_has_exited, children)):
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.stdout.close()
    assert second.is_closed()
    assert programs.ask("GET", "/api/v1/namespaces/default")[0] == 200


def _has_exited(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_flags_have_their_effect(programs: Programs) -> None:
    namespace = "/api/v1/namespaces/default"
    service = programs.ask("GET", f"{namespace}/services/kubernetes")[1]
    assert service["spec"]["clusterIP"] == "10.9.0.1"
    assert programs.ask("POST", f"{namespace}/serviceaccounts", {"metadata": {"name": "sa"}})[0] == 201
    token = programs.ask("POST", f"{namespace}/serviceaccounts/sa/token", {"spec": {}})[1]["status"]["token"]
    issuer = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["iss"]
    assert f"--service-account-issuer={issuer}" in programs.command("kube-apiserver")
    privileged = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [privileged]}}
    assert programs.ask("POST", f"{namespace}/pods", pod)[0] == 422


def test_a_second_server_on_the_same_data_exits_with_the_flag_to_use(programs: Programs) -> None:
    command = programs.command("kube-apiserver")
    port = next(flag for flag in command if flag.startswith("--secure-port="))
    other = [flag if flag != port else f"--secure-port={_free_port()}" for flag in command]
    done = subprocess.run(other, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert re.search(r"in use by process \d+; choose another directory with --data-dir of etcd\n$", done.stderr)


def test_objects_outlive_restarts_of_either_program_and_of_both(programs: Programs) -> None:
    """The last test that uses the pair: it stops both."""
    config_maps = "/api/v1/namespaces/default/configmaps"
    assert programs.ask("POST", config_maps, {"metadata": {"name": "one"}})[0] == 201
    assert programs.stop("kube-apiserver") == 0
    programs.start("kube-apiserver")
    programs.wait_until_ready()
    assert programs.ask("GET", f"{config_maps}/one")[0] == 200

    programs.stop("etcd", signal.SIGKILL)  # the server has its store and goes on
    assert programs.ask("POST", config_maps, {"metadata": {"name": "two"}})[0] == 201
    programs.stop("kube-apiserver", signal.SIGKILL)
    assert programs.is_closed()
    programs.start("kube-apiserver")  # waits for etcd
    programs.start("etcd")
    programs.wait_until_ready()
    assert [programs.ask("GET", f"{config_maps}/{name}")[0] for name in ("one", "two")] == [200, 200]
    assert programs.stop("etcd") == 0
    assert programs.stop("kube-apiserver") == 0
    log = programs.log("kube-apiserver").read_text()
    assert log.count("flag is not supported and has no effect program=kube-apiserver flag=--feature-gates\n") == 3
    assert "Traceback" not in log
    assert programs.log("etcd").read_text() == ""
