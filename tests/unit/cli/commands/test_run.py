"""`ostinato run`: argument checks and preflight errors. tests/cluster covers running programs."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from tests.stage.server import started_server

from ostinato.cache import Informers, InformerSettings
from ostinato.cli.app import run
from ostinato.cli.error import CommandError
from ostinato.cli.program.preflight import prepare
from ostinato.client import Unstructured
from ostinato.controllers import Builder, controller
from ostinato.crd import crd_of
from ostinato.kinds.core_v1 import ConfigMap, Node
from ostinato.manager import CacheOptions, Manager
from ostinato.server.in_process.transport import InProcessTransport

WIDGET = Path(__file__).parents[4] / "examples" / "widget.py"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine without a cluster."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    levels = {name: logging.getLogger(name).level for name in ("ostinato", "ostinato.plane", "ostinato.server")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, each in levels.items():
        logging.getLogger(name).setLevel(each)
    for name in set(sys.modules) - before:
        if not name.startswith("ostinato"):
            del sys.modules[name]


@pytest.fixture
def error_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a failing command; return its standard error."""

    def run_and_fail(*arguments: str) -> str:
        assert run(["run", *arguments]) == 1
        return capsys.readouterr().err

    return run_and_fail


def kubeconfig(path: Path, server: str) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["missing.py"], "ostinato run: missing.py: no such file\n"),
        ([str(WIDGET), "--embedded", "--context", "x"], "--embedded excludes --kubeconfig and --context"),
        ([str(WIDGET), "--state", "x"], "--state needs --embedded"),
        ([str(WIDGET), "--embedded", "--webhook-certificates", "x"], "--embedded excludes --webhook-certificates"),
        ([str(WIDGET), "--health", "8081"], "--health: '8081' is not a listen address; use"),
        ([str(WIDGET), "-n", "Team-*"], "--namespace Team-*: namespaces: 'Team-*' is not a pattern; use lower-case"),
        ([str(WIDGET), "-n", "Bad Name"], "--namespace Bad Name: not a namespace name: a lowercase RFC"),
        (
            [str(WIDGET), "--leader-election", "Bad Name"],
            "--leader-election: leader election 'Bad Name' is not a valid name",
        ),
        (["."], "ostinato run: . is a directory without __init__.py; name a file in it"),
        ([str(WIDGET), "--kubeconfig", "/no/such"], "/no/such: does not exist; check the path"),
    ],
)
def test_invalid_arguments_are_rejected(error_of: Callable[..., str], arguments: list[str], expected: str) -> None:
    assert expected in error_of(*arguments)


def test_without_a_kubeconfig_the_error_suggests_embedded(error_of: Callable[..., str]) -> None:
    text = error_of(str(WIDGET))
    assert text.startswith("ostinato run: no cluster configured")
    assert text.endswith("; use --embedded to run without a cluster\n")


def test_an_unreachable_server_is_reported(error_of: Callable[..., str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{taken.getsockname()[1]}"
        text = error_of(str(WIDGET), "--kubeconfig", kubeconfig(tmp_path / "config", server))
    assert "the server cannot be reached" in text
    assert text.endswith("check the kubeconfig, or use --embedded to run without a cluster\n")


def test_an_invalid_certificate_authority_is_reported_in_one_line(error_of: Callable[..., str], tmp_path: Path) -> None:
    config = yaml.safe_load(Path(kubeconfig(tmp_path / "config", "https://127.0.0.1:1")).read_text())
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "certificate-authority-data": "bm9uZQ=="}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    text = error_of(str(WIDGET), "--kubeconfig", str(tmp_path / "config"))
    assert text.endswith("unable to load root certificates: no certificate in PEM\n")


def test_a_response_that_is_not_an_api_servers_is_reported(error_of: Callable[..., str], tmp_path: Path) -> None:
    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b"Client sent an HTTP request to an HTTPS server.\n")

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        text = error_of(
            str(WIDGET), "--kubeconfig", kubeconfig(tmp_path / "config", f"http://127.0.0.1:{proxy.server_port}")
        )
        proxy.shutdown()
    assert "unknown reason (get widgets.example.dev): Client sent an HTTP request to an HTTPS server.\n" in text


def test_a_file_without_controllers_is_an_error_before_any_request(
    error_of: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "empty_file.py").write_text("")
    assert "empty_file.py: nothing to run" in error_of(str(tmp_path / "empty_file.py"))


# Preflight


@controller(Unstructured.of("example.dev/v1", "Widget"), name="widgets", owns=[ConfigMap])
async def widgets(widget: dict[str, Any], ctx: Any) -> None: ...


def prepared(manage: Callable[[Any], Manager], *, user: str = "", definitions: Any = ()) -> None:
    """Run the preflight of a manager on a server in this process. `user`: defaults to an administrator."""

    async def main() -> None:
        async with started_server() as server:

            def connect(purpose: Any) -> InProcessTransport:
                return InProcessTransport(server, user=(user, ())) if user else InProcessTransport(server)

            await prepare(manage(connect), "file.py", definitions)

    asyncio.run(main())


def test_cluster_scoped_kinds_are_checked_at_cluster_scope_despite_a_namespace(tmp_path: Path) -> None:
    @controller(Unstructured.of("v1", "Node"))
    async def nodes(node: dict[str, Any]) -> None: ...

    @controller(Node)
    async def known(node: Node) -> None: ...

    caches = CacheOptions(defaults=InformerSettings(namespaces=("team",)))
    for each in (known, nodes):
        prepared(lambda connect, each=each: Manager(connect=connect, caches=caches).add(each))
        with pytest.raises(CommandError, match=r"may not list v1 Node: nodes is forbidden: .* at the cluster scope"):
            prepared(lambda connect, each=each: Manager(connect=connect, caches=caches).add(each), user="jane")


def test_a_missing_kind_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as failure:
        prepared(lambda connect: Manager(connect=connect).add(widgets))
    assert str(failure.value) == (
        "controller widgets: the server does not serve example.dev/v1 Widget; install its CustomResourceDefinition"
    )


def test_install_crds_installs_the_programs_kinds() -> None:
    from tests.unit.crd.sample_kinds import Gadget

    built = Builder("gadgets").watch_for(Gadget).complete(lambda request: None)
    with pytest.raises(CommandError, match=r"does not serve .* Gadget; use --install-crds to install its definition"):
        prepared(lambda connect: Manager(connect=connect).add(built))
    prepared(lambda connect: Manager(connect=connect).add(built), definitions=[crd_of(Gadget)])
    with pytest.raises(CommandError, match=r"cannot be applied: .* forbidden.*; ask a cluster administrator"):
        prepared(lambda connect: Manager(connect=connect).add(built), definitions=[crd_of(Gadget)], user="jane")


def test_an_optional_kind_is_not_checked() -> None:
    built = Builder("maybe").watch_for(Unstructured.of("example.dev/v1", "Widget"), optional=True)
    prepared(lambda connect: Manager(connect=connect).add(built.complete(lambda request: None)))


def test_a_kind_of_another_cluster_is_not_checked() -> None:
    others = Informers(cast("Any", SimpleNamespace(world=None)))
    built = Builder("both").watch_for(ConfigMap)
    built.watches(Unstructured.of("example.dev/v1", "Widget"), map_to=lambda widget: [], informers=others)
    prepared(lambda connect: Manager(connect=connect).add(built.complete(lambda request: None)))


def test_a_missing_namespace_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    built = Builder("maps").watch_for(ConfigMap).complete(lambda request: None)
    caches = CacheOptions(settings={ConfigMap: InformerSettings(namespaces=("default", "team"))})
    prepared(lambda connect: Manager(connect=connect, caches=caches).add(built))
    assert caplog.messages == ["namespace not found, no events until it is created namespace=team"]


def test_a_forbidden_kind_is_reported_with_the_command_for_its_role() -> None:
    built = Builder("maps").watch_for(ConfigMap).complete(lambda request: None)
    with pytest.raises(CommandError) as failure:
        prepared(lambda connect: Manager(connect=connect).add(built), user="jane")
    text = str(failure.value)
    assert text.startswith("controller maps may not list v1 ConfigMap: ")
    assert 'User "jane" cannot list resource "configmaps"' in text
    assert "`ostinato manifests file.py` writes the role that it needs; -n NAMESPACE needs fewer permissions" in text
    with pytest.raises(CommandError, match="; the kubeconfig has no credentials; check its user"):
        prepared(lambda connect: Manager(connect=connect).add(built), user="system:anonymous")
    caches = CacheOptions(settings={ConfigMap: InformerSettings(namespaces=("one",))})
    with pytest.raises(CommandError, match='in the namespace "one"'):
        prepared(lambda connect: Manager(connect=connect, caches=caches).add(built), user="jane")
