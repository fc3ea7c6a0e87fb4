"""The live page with real processes: a plane in several, an operator beside it, commands with a kubeconfig alone."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from ostinato.cli.app import run
from ostinato.client import Client, Config
from ostinato.http.websocket import BINARY, FrameReader, frame, upgrade_fields
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Pod
from ostinato.page.serving.shell import PROTOCOL
from tests.cluster.planes import PlaneProcess
from tests.cluster.running import running

SECONDS = 60.0
RIGHTS = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
]
OPERATOR = """
from ostinato import Context, controller
from ostinato.kinds.apps_v1 import Deployment


@controller(Deployment)
async def counts(source: Deployment, ctx: Context) -> None:
    metadata = {"name": f"{source.metadata.name}-count", "namespace": source.metadata.namespace}
    data = {"replicas": str(source.spec.replicas)}
    await ctx.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, owner=source)
"""


class Page(http.client.HTTPConnection):
    """A connection to the Unix socket of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))

    def ask(self, what: str, **query: str) -> http.client.HTTPResponse:
        self.request("GET", f"/api/{what}?{urlencode(query)}")
        return self.getresponse()


def get(path: Path, what: str, **query: str) -> Any:
    page = Page(path)
    try:
        return json.loads(page.ask(what, **query).read())
    finally:
        page.close()


def events(path: Path, what: str, **query: str) -> Iterator[Any]:
    """Yield the data of server-sent events."""
    page = Page(path)
    try:
        response = page.ask(what, **query)
        while line := response.readline():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
    finally:
        page.close()


def until(ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while not (found := ask()):
        assert time.monotonic() < end, "in vain"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("the page is that of a plane of our own")
    page = ("--page", "127.0.0.1:0", "--page-writes")
    process = PlaneProcess(tmp_path_factory.mktemp("page"), "--processes", "2", *page)
    process.start()
    create(process, deployment())
    yield process
    asyncio.run(delete_all(process))
    assert process.stop() == 0, process.log()[-2000:]


@pytest.fixture(scope="module")
def sock(plane: PlaneProcess) -> Path:
    return plane.kubeconfig.with_name("page.sock")


@pytest.fixture(scope="module")
def restricted(plane: PlaneProcess) -> Path:
    """A kubeconfig of a user that may not list ConfigMaps, ReplicaSets and Pods."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "robot"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "robot"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "robot"}
    create(plane, {**role, "rules": RIGHTS})
    create(plane, {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]})
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "robot"
    path = plane.kubeconfig.with_name("robot.kubeconfig")
    path.write_text(yaml.safe_dump(config))
    return path


def create(plane: PlaneProcess, instance: dict[str, Any]) -> None:
    async def main() -> None:
        async with Client.connect(Config.load(path=plane.kubeconfig), field_manager="a-user") as client:
            await client.apply(instance)

    asyncio.run(main())


async def delete_all(plane: PlaneProcess) -> None:
    """Delete the Deployment and wait for the end of its Pods, which the plane leaves running."""
    async with asyncio.timeout(SECONDS), Client.connect(Config.load(path=plane.kubeconfig)) as client:
        await client.delete(Deployment, "web", propagation="Foreground")
        while True:
            if not await client.list(Pod, namespace="default"):
                return
            await asyncio.sleep(0.05)


def deployment(replicas: int = 1) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "echo one; echo two; while :; do sleep 0.5; done"]}
    quiet = {"name": "quiet", "image": "i", "command": ["sleep", "1000"]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container, quiet]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def pod_of(sock: Path) -> str:
    """Return the name of the running Pod, as the page shows it."""

    def find() -> str:
        waiting = get(sock, "objects", kind="Pod")["roots"]
        while waiting:
            each = waiting.pop()
            if each["ref"]["kind"] == "Pod" and each["ready"] == "ready":
                return str(each["ref"]["name"])
            waiting += each["children"]
        return ""

    return str(until(find))


def test_a_pod_has_its_log_and_its_usage(sock: Path) -> None:
    pod = pod_of(sock)
    lines: list[str] = []
    for event in events(sock, "pods/log", namespace="default", name=pod, container="c"):
        lines += event["lines"]
        if len(lines) == 2:
            break
    assert lines == ["one", "two"]
    page = Page(sock)
    answer = page.ask("pods/log", namespace="default", name=pod, container="quiet")
    assert answer.status == 200, "answered before there is a line"
    page.close()
    (problem, end) = events(sock, "pods/log", namespace="default", name="nobody")
    assert problem == {"error": 'pods "nobody" not found'}
    assert end == {}
    usage = until(lambda: get(sock, "pods/usage", namespace="default", name=pod)["samples"])
    assert usage[0]["memory"] > 0
    (node,) = get(sock, "nodes")["nodes"]
    assert (node["ready"], node["pods"]) == (True, 1)


class Shell:
    """A shell through the page, in Kubernetes' channel protocol."""

    def __init__(self, path: Path, **query: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SECONDS)
        self._socket.connect(str(path))
        fields = [f"{name}: {value}" for name, value in upgrade_fields("dGhlIHNhbXBsZSBub25jZQ==", [PROTOCOL])]
        head = "\r\n".join([f"GET /api/pods/exec?{urlencode(query)} HTTP/1.1", "Host: page", *fields])
        self._socket.sendall(f"{head}\r\n\r\n".encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(1 << 16)
        self.status, _, rest = received.partition(b"\r\n\r\n")
        self.output: dict[int, bytes] = {}
        self._frames = FrameReader(self._take, lambda: b"mask")
        self._frames.feed(rest)

    def _take(self, message: bytes) -> None:
        self.output[message[0]] = self.output.get(message[0], b"") + message[1:]

    def send(self, channel: int, data: bytes) -> None:
        self._socket.sendall(frame(BINARY, bytes((channel,)) + data, b"mask"))

    def read_until(self, channel: int, text: bytes) -> None:
        while text not in self.output.get(channel, b""):
            data = self._socket.recv(1 << 16)
            assert data, f"ended before {text!r}: {self.output}"
            self._frames.feed(data)

    def close(self) -> None:
        self._socket.close()


def test_a_shell_runs_in_a_container_and_ends_with_it(sock: Path) -> None:
    where = {"namespace": "default", "name": pod_of(sock), "container": "quiet"}
    shell = Shell(sock, **where)
    assert shell.status.startswith(b"HTTP/1.1 101 ")
    assert PROTOCOL.encode() in shell.status
    shell.send(4, b'{"Width": 132, "Height": 43}')
    shell.send(4, b'{"Width": -1, "Height": 99999999}')  # ignored
    shell.send(0, b"stty size; echo $((40 + 2))\n")
    shell.read_until(1, b"43 132")
    shell.read_until(1, b"42")
    shell.send(0, b"exit 3\n")
    shell.read_until(3, b"exit code 3")
    shell.close()
    missing = Shell(sock, **{**where, "name": "nobody"})
    missing.read_until(3, b'pods "nobody" not found')
    missing.close()


def test_tree_and_why_need_a_kubeconfig_alone(plane: PlaneProcess, sock: Path, capsys: Any) -> None:
    pod = pod_of(sock)
    assert run(["tree", "deploy", "web", "--kubeconfig", str(plane.kubeconfig)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Deployment web -n default  ready: 1 of 1 ready\n└─ ReplicaSet web-")
    assert f"   └─ Pod {pod} -n default  ready: Running\n" in shown.out
    assert shown.err == ""
    assert run(["why", "deploy", "web", "--kubeconfig", str(plane.kubeconfig)]) == 0
    assert "a-user: spec.replicas, spec.selector" in capsys.readouterr().out
    assert run(["why", "deploy", "nobody", "--kubeconfig", str(plane.kubeconfig)]) == 1
    assert capsys.readouterr().err == 'ostinato why: deployments.apps "nobody" not found\n'


def test_another_browser_gets_a_url_of_its_own(plane: PlaneProcess, sock: Path, capsys: Any) -> None:
    assert run(["page", "--socket", str(sock)]) == 0
    url = capsys.readouterr().out.strip()
    address, _, path = url.removeprefix("http://").partition("/")
    for status in (303, 401):  # it works once
        browser = http.client.HTTPConnection(address, timeout=SECONDS)
        browser.request("GET", f"/{path}")
        assert browser.getresponse().status == status
        browser.close()


def test_an_operator_shows_its_reconciles_and_what_it_may_not_list(
    plane: PlaneProcess, restricted: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Any
) -> None:
    directory = tmp_path_factory.mktemp("run")  # a short name: that of a socket is limited
    assert run(["tree", "deploy", "web", "--kubeconfig", str(restricted)]) == 0
    assert "not shown, since they cannot be listed: " in capsys.readouterr().err
    program = directory / "counts.py"
    program.write_text(OPERATOR)
    arguments = ("-m", "ostinato.cli", "run", str(program), "--page", "127.0.0.1:0", "--kubeconfig", str(restricted))
    with running(directory / "log", *arguments, environment={"XDG_RUNTIME_DIR": str(directory)}) as operator:
        operator.wait_for_output("page: http://127.0.0.1:")
        sock = directory / "ostinato" / f"page-{operator.process.pid}.sock"
        batches = events(sock, "stream")
        next(batches)
        create(plane, deployment(replicas=2))
        runs = next(found for batch in batches if (found := [each for each in batch["reconciles"] if each["writes"]]))
        assert (runs[0]["controller"], runs[0]["key"]) == ("counts", "default/web")
        assert runs[0]["writes"][0]["ref"]["name"] == "web-count"

        wanted = {"ConfigMap (v1)", "ReplicaSet (apps/v1)", "Pod (v1)", "metrics of the API server (/metrics)"}

        def denied() -> Any:
            found = {each["what"] for each in get(sock, "about")["denied"]}
            return found if found >= wanted else None

        assert until(denied) == wanted
        assert get(sock, "about")["mode"] == "operator"
        assert operator.stop() == 0, operator.log()
    assert not sock.exists()


def test_a_page_that_is_killed_returns_with_all_controllers(plane: PlaneProcess, sock: Path) -> None:
    before = {each["id"] for each in get(sock, "graph")["nodes"] if each["type"] == "controller"}
    old = plane.parts()["page"]
    os.kill(old, signal.SIGKILL)

    def returned() -> bool:
        try:
            nodes = get(sock, "graph")["nodes"]
        except OSError:
            return False
        return plane.parts().get("page") != old and before <= {each["id"] for each in nodes}

    until(returned)
    assert "restarting component=page" in plane.log()
    until(lambda: {"apps/v1/Deployment", "apps/v1/ReplicaSet"} <= set(get(sock, "objects")["kinds"]))
    create(plane, deployment(replicas=3))
    query = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "default"}
    name = pod_of(sock).rpartition("-")[0]
    until(lambda: get(sock, "why", **query, name=name)["chain"][-1]["type"] == "user")


def test_the_page_of_a_plane_lets_other_processes_go_first(plane: PlaneProcess) -> None:
    parts = plane.parts()
    own = os.getpriority(os.PRIO_PROCESS, parts["apiserver"])
    assert os.getpriority(os.PRIO_PROCESS, parts["page"]) in {min(19, own + 15), 19}
    if hasattr(os, "SCHED_IDLE"):
        assert os.sched_getscheduler(parts["apiserver"]) == os.SCHED_OTHER
        assert os.sched_getscheduler(parts["page"]) in {os.SCHED_IDLE, os.SCHED_BATCH}


def test_a_page_that_is_behind_receives_the_writes_of_an_object_as_one(plane: PlaneProcess, sock: Path) -> None:
    names = [f"fill-{number}" for number in range(100)]

    async def write() -> None:
        async with Client.connect(Config.load(path=plane.kubeconfig), field_manager="a-user") as client:
            for text in "abcd":
                for name in names:
                    metadata = {"name": name, "namespace": "default"}
                    data = {"text": text, "fill": "x" * 20_000}
                    await client.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    page = plane.parts()["page"]
    os.kill(page, signal.SIGSTOP)  # its socket is full after some of the first writes
    try:
        asyncio.run(write())
    finally:
        os.kill(page, signal.SIGCONT)
    query = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": names[-1]}

    def seen() -> Any:
        found = get(sock, "object", **query)
        return found if any(each["text"] == "  text: d" for each in found.get("lines", ())) else None

    writes = until(seen)["writes"]  # newest first
    assert 0 < len(writes) < 4
    assert (writes[-1]["verb"], writes[-1]["author"]) == ("create", "a-user")
