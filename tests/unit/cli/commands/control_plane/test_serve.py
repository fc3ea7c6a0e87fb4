"""`ostinato apiserver` as a process: files, signals, HTTPS."""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import http.client
import io
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.cli.app import run
from ostinato.cli.commands.control_plane import serve as serving
from ostinato.cli.error import CommandError
from ostinato.cli.options.server import settings as server_options
from ostinato.server.access.authentication.tokens.keys import make_private_key
from ostinato.server.standalone import Settings

SOURCE = Path(__file__).parents[4] / "src"


class Running:
    """A server in a process of its own, and a client with its kubeconfig."""

    def __init__(self, state: Path, *options: str) -> None:
        command = [sys.executable, "-m", "ostinato.cli", "apiserver", "--state", str(state), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.state = state

    def config(self) -> tuple[str, str, Any]:
        config = yaml.safe_load((self.state / "admin.kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cluster["server"], authority, config["users"][0]["user"]

    def connect(self, *, certificate: bool = True) -> http.client.HTTPSConnection:
        server, authority, user = self.config()
        context = ssl.create_default_context(cadata=authority)
        if certificate:
            pair = self.state / "pair.pem"
            pair.write_bytes(
                base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
            )
            context.load_cert_chain(pair)
        host, _, port = server.removeprefix("https://").rpartition(":")
        return http.client.HTTPSConnection(host, int(port), context=context, timeout=10)

    def call(
        self, method: str, path: str, body: Any = None, token: str = "", *, certificate: bool = True
    ) -> tuple[int, Any]:
        connection = self.connect(certificate=certificate)
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data[:1] == b"{" else data

    def stop(self) -> tuple[int, float]:
        """Ask it to end: its exit code, and how long that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code, time.monotonic() - began


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('t1,admin,1,"system:masters"\nt2,jane,2\n')
    server = Running(tmp_path / "state", "--token-auth-file", str(tokens))
    yield server
    if server.process.poll() is None:
        server.stop()


THING = {"metadata": {"name": "a"}, "data": {"k": "v"}}
THINGS = "/api/v1/namespaces/default/configmaps"


def test_it_prints_a_ready_line_serves_and_stops(running: Running) -> None:
    server, _, _ = running.config()
    kubeconfig = running.state / "admin.kubeconfig"
    assert running.line == f"ostinato apiserver ready at {server} (kubeconfig: {kubeconfig})\n"
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(running.state.stat().st_mode) == 0o700
    assert running.call("GET", "/readyz", certificate=False) == (200, b"ok")
    assert running.call("POST", THINGS, THING)[0] == 201
    assert running.call("GET", THINGS + "/a", token="t1", certificate=False)[0] == 200
    assert running.call("GET", THINGS + "/a", token="t2", certificate=False)[0] == 403
    assert running.call("GET", THINGS + "/a", token="t3", certificate=False)[0] == 401
    assert running.call("GET", THINGS + "/a", certificate=False)[0] == 403
    code, seconds = running.stop()
    assert code == 0
    assert seconds < 5


def test_a_watch_ends_cleanly_when_the_server_stops(running: Running) -> None:
    connection = running.connect()
    connection.request("GET", THINGS + "?watch=1")
    answer = connection.getresponse()
    assert answer.status == 200
    running.call("POST", THINGS, THING)
    while json.loads(answer.readline())["object"]["metadata"]["name"] != "a":
        pass  # what every namespace has
    code, seconds = running.stop()
    assert (code, seconds < 5) == (0, True)
    assert answer.read() == b""  # the last chunk came, else this were an IncompleteRead
    connection.close()


def test_objects_certificates_and_the_authority_outlive_the_server(tmp_path: Path) -> None:
    first = Running(tmp_path)
    assert first.call("POST", THINGS, THING)[0] == 201
    _, authority, _ = first.config()
    uid = first.call("GET", THINGS + "/a")[1]["metadata"]["uid"]
    first.process.kill()
    first.process.wait()
    assert first.process.stdout is not None
    first.process.stdout.close()
    second = Running(tmp_path)
    assert second.config()[1] == authority
    assert second.call("GET", THINGS + "/a")[1]["metadata"]["uid"] == uid
    second.stop()


def test_the_memory_store_keeps_nothing(tmp_path: Path) -> None:
    server = Running(tmp_path, "--store", "memory")
    assert server.call("POST", THINGS, THING)[0] == 201
    server.stop()
    assert not (tmp_path / "store.db").exists()


def fail(*options: str) -> str:
    """Run a command that fails; return its standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "ostinato.cli", "apiserver", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr


class SignallingOutput(io.StringIO):
    """A standard output that signals its process once something was written."""

    def flush(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_it_runs_until_it_is_signalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = SignallingOutput()
    monkeypatch.setattr(sys, "stdout", output)
    for name in ("freeze", "set_threshold"):  # not in the process of the tests
        monkeypatch.setattr(gc, name, lambda *args: None)
    assert run(["apiserver", "--state", str(tmp_path), "--listen", "127.0.0.1:0", "--store", "memory"]) == 0
    assert output.getvalue().startswith("ostinato apiserver ready at https://127.0.0.1:")


@pytest.mark.parametrize(
    ("listen", "problem"),
    [
        ("nonsense", "want HOST:PORT"),
        ("127.0.0.1:{taken}", "is in use; choose another with --listen"),
        ("host.invalid:1", "cannot listen on host.invalid:1"),
    ],
)
def test_a_start_failure_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], listen: str, problem: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = listen.format(taken=taken.getsockname()[1])
        assert run(["apiserver", "--listen", listen, "--state", str(tmp_path), "--store", "memory"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("ostinato apiserver: ")
    assert problem in error
    assert error.count("\n") == 1


def test_a_second_signal_ends_the_process_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    stopping = asyncio.Event()
    serving._stop(stopping)
    assert (stopping.is_set(), codes) == (True, [])
    serving._stop(stopping)
    assert codes == [130]


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = fail("--state", str(tmp_path), "--listen", f"127.0.0.1:{port}")
    problem = f"port {port} on 127.0.0.1 is in use"
    assert error == f"ostinato apiserver: {problem}; choose another with --listen, or port 0 for a free one\n"


def test_a_malformed_token_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text("only-a-token\n")
    error = fail(
        "--state", str(tmp_path / "s"), "--listen", "127.0.0.1:0", "--token-auth-file", str(tmp_path / "tokens.csv")
    )
    assert "tokens.csv: line 1: 1 columns, want at least 3" in error


def test_a_state_directory_in_use_is_reported(running: Running) -> None:
    assert f"is in use by process {running.process.pid}" in fail("--state", str(running.state))


def test_an_unusable_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("this is no database" * 1000)
    error = fail("--state", str(tmp_path / "s"), "--listen", "127.0.0.1:0", "--store", f"sqlite:{tmp_path / 'file'}")
    assert error.endswith("/file: file is not a database\n")


def _settings(*arguments: str) -> Settings:
    parser = argparse.ArgumentParser()
    server_options.add_to(parser)
    return server_options.settings(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("listen", "host", "port"), [("127.0.0.1:6443", "127.0.0.1", 6443), ("[::1]:0", "::1", 0), (":80", "", 80)]
)
def test_listen_is_parsed_as_host_and_port(listen: str, host: str, port: int) -> None:
    settings = _settings("--listen", listen, "--state", "/somewhere")
    assert (settings.host, settings.port) == (host, port)


@pytest.mark.parametrize(
    ("listen", "store", "problem"),
    [
        ("6443", "", "want HOST:PORT"),
        ("localhost:http", "", "want HOST:PORT"),
        ("localhost:65536", "", "want HOST:PORT"),
        ("::1:6443", "", "an IPv6 address needs brackets"),
        ("localhost:1", "etcd", "want sqlite:PATH, memory or etcd:"),
        ("localhost:1", "sqlite:", "has no path"),
    ],
)
def test_invalid_options_are_reported(listen: str, store: str, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        _settings("--listen", listen, "--store", store)


@pytest.mark.parametrize(
    "damage",
    [lambda key: b"", lambda key: key[:900], lambda key: key.replace(b"A", b"*", 1), lambda key: key[:200] + key[265:]],
    ids=["empty", "truncated", "no-base64", "a-line-lost"],
)
def test_a_malformed_service_account_key_is_reported_at_start_in_one_line(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """Not at the first token, when the server seems to run already."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    make_private_key(state / "sa.key")
    (state / "sa.key").write_bytes(damage((state / "sa.key").read_bytes()))
    error = fail("--state", str(state))
    assert error.startswith(f"ostinato apiserver: {state / 'sa.key'}: not a private RSA or ECDSA key in PEM")
    assert error.count("\n") == 1


def test_an_admission_plugin_is_enabled_by_its_name() -> None:
    name = "OwnerReferencesPermissionEnforcement"
    assert _settings("--enable-admission-plugins", name).admission.enabled == (name,)
    with pytest.raises(
        CommandError, match='--enable-admission-plugins plugin "Nonsense" is unknown; known plugins: Always'
    ):
        _settings("--enable-admission-plugins", f"{name},Nonsense")


def test_an_admission_plugin_in_both_lists_is_rejected() -> None:
    with pytest.raises(CommandError, match=r"\[PodSecurity\] in enable-admission-plugins and disable-"):
        _settings("--enable-admission-plugins", "PodSecurity", "--disable-admission-plugins", "PodSecurity,Priority")


def test_the_default_state_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert _settings().state == Path("/xdg/ostinato")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/jane")
    assert _settings().state == Path("/home/jane/.local/state/ostinato")


def test_the_command_is_loaded_only_when_it_is_called() -> None:
    code = (
        "import ostinato.cli, sys; print([n for n in ('argparse', 'asyncio', 'ostinato.server') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        check=True,
    )
    assert done.stdout == "[]\n"
