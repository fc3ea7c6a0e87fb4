"""What people do inside Pods with kubectl, against `ostinato up` with a node whose containers are processes."""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ostinato.client import Client, Config
from tests.cluster.planes import PlaneProcess
from tests.cluster.test_plane import Kubectl

SECONDS = 60
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  terminationGracePeriodSeconds: 1
  hostNetwork: true  # servers of the tests listen on this machine
  containers:
  - {name: a, image: "busybox:1", command: [sh, -c, 'echo up; echo aside >&2; exec sleep 600']}
  - {name: b, image: "busybox:1", command: [sh, -c, 'while read line; do echo "heard $line"; done'], stdin: true}
"""
CRASHING = """
apiVersion: v1
kind: Pod
metadata: {name: crashing}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1", command: [sh, -c, 'date +%N; echo over; sleep 1; exit 1']}]
"""
OLD_PROTOCOL = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@pytest.fixture(scope="module")
def binary() -> str:
    """kubectl, of OSTINATO_KUBECTL if that names one."""
    found = os.environ.get("OSTINATO_KUBECTL") or shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on PATH, and OSTINATO_KUBECTL names none")
    return found


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    process = PlaneProcess(
        tmp_path_factory.mktemp("plane"), "--nodes", "1", "--runtime", "process", "--store", "memory"
    )
    process.start()
    yield process
    assert process.stop() == 0, process.log()[-2000:]


class Inside(Kubectl):
    """kubectl in a namespace with a Pod that runs."""

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """A command that goes on."""
        return subprocess.Popen(
            [*self._command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"HOME": str(self._home), "PATH": "/usr/bin:/bin", **environment},
        )

    def old(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """In the protocol of older ones."""
        return subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={"HOME": str(self._home), "PATH": "/usr/bin:/bin", **OLD_PROTOCOL},
        )


@pytest.fixture(scope="module")
def kubectl(binary: str, plane: PlaneProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    home = tmp_path_factory.mktemp("home")
    admin = Kubectl(binary, plane.kubeconfig, "default", home)
    admin("create", "namespace", "inside")
    made = Inside(binary, plane.kubeconfig, "inside", home)
    made.until(lambda: made.run("get", "serviceaccount", "default").returncode == 0, "the service account")
    made("apply", "-f", "-", stdin=POD)
    made("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    yield made
    made("delete", "pods", "--all", "--timeout=60s")


def test_logs_of_one_container_and_of_all(kubectl: Inside) -> None:
    kubectl.until(lambda: "aside" in kubectl("logs", "p", "-c", "a"), "what the container says")
    assert sorted(kubectl("logs", "p", "-c", "a").splitlines()) == ["aside", "up"]
    assert "[pod/p/a] up" in kubectl("logs", "p", "--all-containers", "--prefix")
    assert kubectl("logs", "p", "-c", "a", "--tail=0") == ""
    assert kubectl("logs", "p", "-c", "a", "--limit-bytes=2", "--timestamps").startswith("20")
    failed = kubectl.run("logs", "p", "-c", "a", "--previous")
    assert 'previous terminated container "a" in pod "p" not found' in failed.stderr


def test_logs_are_followed_and_those_of_the_run_before_are_kept(kubectl: Inside) -> None:
    kubectl("apply", "-f", "-", stdin=CRASHING)
    kubectl.until(
        lambda: kubectl.json("get", "pod", "crashing")["status"].get("containerStatuses", [{}])[0].get("restartCount"),
        "a restart",
    )
    first = kubectl("logs", "crashing", "--previous")
    followed = kubectl("logs", "crashing", "--follow")
    assert [text.splitlines()[1] for text in (first, followed)] == ["over", "over"]
    kubectl("delete", "pod", "crashing", "--timeout=60s")


def test_exec_has_input_output_and_codes(kubectl: Inside) -> None:
    done = kubectl.run("exec", "p", "-c", "a", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.returncode, done.stdout) == (42, "out\n")
    assert done.stderr == "err\ncommand terminated with exit code 42\n"
    assert (
        kubectl("exec", "-i", "p", "-c", "a", "--", "sh", "-c", "cat; echo end", stdin="one\ntwo\n")
        == "one\ntwo\nend\n"
    )
    assert len(kubectl("exec", "p", "-c", "a", "--", "sh", "-c", "yes 0123456 | head -c 3000000")) == 3_000_000
    failed = kubectl.run("exec", "p", "-c", "a", "--", "no-such-command")
    assert failed.returncode == 1
    assert "error executing command in container" in failed.stderr


def test_exec_in_the_older_protocol(kubectl: Inside) -> None:
    done = kubectl.old("exec", "-i", "p", "-c", "a", "--", "sh", "-c", "cat; echo err >&2; exit 3", stdin="typed\n")
    assert (done.returncode, done.stdout) == (3, "typed\n")
    assert "err\n" in done.stderr


def test_a_terminal(kubectl: Inside) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*kubectl._command, "exec", "-it", "p", "-c", "a", "--", "sh", "-c", "tty; stty size; read x; echo got $x"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={"HOME": str(kubectl._home), "PATH": "/usr/bin:/bin", "TERM": "xterm"},
    )
    os.close(theirs)
    os.write(ours, b"word\n")
    said = b""
    while b"got word" not in said:
        said += os.read(ours, 4096)
    assert process.wait(SECONDS) == 0
    os.close(ours)
    assert b"/dev/pts/" in said


def test_attach_speaks_to_the_container_itself(kubectl: Inside) -> None:
    process = kubectl.start("attach", "-i", "p", "-c", "b")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("a word\n")
    process.stdin.flush()
    for line in process.stdout:
        if "heard a word" in line:
            break
    else:
        pytest.fail("it did not answer")
    process.kill()
    process.communicate()
    assert "heard a word" in kubectl("logs", "p", "-c", "b")


def test_files_are_copied_both_ways(kubectl: Inside, tmp_path: Path) -> None:
    sent, back = tmp_path / "sent", tmp_path / "back"
    there = f"/tmp/{tmp_path.name}"
    sent.write_bytes(os.urandom(1_000_000))
    kubectl("cp", str(sent), f"p:{there}", "-c", "a")
    assert kubectl("exec", "p", "-c", "a", "--", "wc", "-c", there).split()[0] == "1000000"
    kubectl("cp", f"p:{there}", str(back), "-c", "a")
    assert back.read_bytes() == sent.read_bytes()


class Big(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"x" * 2_000_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def served() -> Iterator[int]:
    """A port of this machine, whose network the Pods share."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Big)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("environment", [{}, OLD_PROTOCOL], ids=["tunnel", "older"])
def test_ports_are_forwarded(kubectl: Inside, environment: dict[str, str]) -> None:
    with served() as port:
        here = _free_port()
        process = kubectl.start("port-forward", "pod/p", f"{here}:{port}", **environment)
        assert process.stdout is not None
        assert f"127.0.0.1:{here} -> {port}" in process.stdout.readline()
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{here}/", timeout=SECONDS) as answer:
                assert len(answer.read()) == 2_000_000
        process.kill()
        process.communicate()


def test_a_forwarded_port_without_a_listener_is_reported(kubectl: Inside) -> None:
    here, nobody = _free_port(), _free_port()
    process = kubectl.start("port-forward", "pod/p", f"{here}:{nobody}")
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises((urllib.error.URLError, OSError)):
        urllib.request.urlopen(f"http://127.0.0.1:{here}/", timeout=SECONDS)
    said = process.communicate(timeout=SECONDS)[0]
    assert "connection refused" in said


def test_programs_do_the_same(kubectl: Inside, plane: PlaneProcess) -> None:
    async def play(port: int) -> None:
        async with Client.connect(Config.load(path=plane.kubeconfig)) as client:
            pods = client.pods
            done = await pods.run(
                "p", ["sh", "-c", "cat; exit 5"], namespace="inside", container="a", stdin=b"x" * 300_000
            )
            assert (done.exit_code, len(done.stdout)) == (5, 300_000)
            assert "up" in await pods.log("p", namespace="inside", container="a")
            async with await pods.port_forward("p", port, namespace="inside") as connection:
                await connection.write(b"GET / HTTP/1.0\r\n\r\n")
                assert (await connection.read()).startswith(b"HTTP/1.0 200 OK")

    with served() as port:
        asyncio.run(play(port))


def test_run_and_debug_attach_to_their_containers(kubectl: Inside) -> None:
    words = ("--image=busybox:1", "--restart=Never", "-i", "--rm", "--command", "--", "sh", "-c", "cat; echo end")
    assert "typed\nend" in kubectl("run", "r", *words, stdin="typed\n")
    debugging = ("debug", "p", "--image=busybox:1", "--container=look", "-i", "--", "sh", "-c", "cat; echo seen")
    assert "typed\nseen" in kubectl(*debugging, stdin="typed\n")
    assert "seen" in kubectl("logs", "p", "-c", "look")


def test_top_shows_the_usage_of_pods_and_nodes(kubectl: Inside) -> None:
    lines = kubectl("top", "pod", "--no-headers").splitlines()
    assert [line.split()[0] for line in lines] == ["p"]
    assert kubectl("top", "pod", "p", "--containers", "--no-headers").split()[:2] == ["p", "a"]
    node = kubectl("top", "node", "--no-headers").split()
    assert node[0] == "node-1"
    assert node[1].endswith("m")


def test_a_command_ends_with_its_client(kubectl: Inside) -> None:
    seconds = f"600.{os.getpid()}"  # nobody else's
    process = kubectl.start("exec", "p", "-c", "a", "--", "sh", "-c", f"echo up; sleep {seconds}")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    kubectl.until(lambda: processes_with(seconds), "the command")
    process.kill()
    process.communicate()
    kubectl.until(lambda: not processes_with(seconds), "the end of a command that outlives its client")


def processes_with(argument: str) -> list[int]:
    """Those of this machine that were started with an argument, whatever namespace they are in."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found
