"""Exec plugins: real programs, run as the protocol has it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.unit.client.clocks import ShiftedClock, world_with

from ostinato.client.config import exec_plugin
from ostinato.client.config.config import Config, ExecPlugin, InteractiveMode, Tls
from ostinato.client.config.credentials import ClientCertificate, CredentialsError
from ostinato.client.config.exec_plugin import ExecCredentials
from ostinato.client.config.exec_policy import ExecPolicy, find_program
from ostinato.client.config.secret import Secret
from ostinato.world import World

T = TypeVar("T")

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


class Plugin:
    """A program in a file, that counts its runs and keeps what it was told."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "plugin"
        self.answers({"token": "s3cret-token"})

    def answers(self, status: Any, *, version: str = V1, kind: str = "ExecCredential", **more: Any) -> None:
        answer = {"kind": kind, "apiVersion": version, "status": status, **more}
        self.prints(json.dumps(answer))

    def prints(self, text: str) -> None:
        (self.directory / "answer").write_text(text)
        self.does("sys.stdout.write(open(here + '/answer').read())")

    def does(self, code: str) -> None:
        self.path.write_text(
            f"#!{sys.executable} -S\nimport json, os, sys, time\nhere = {str(self.directory)!r}\n"
            "open(here + '/runs', 'a').write('x')\n"
            "seen = {'env': dict(os.environ), 'args': sys.argv[1:]}\n"
            "seen |= {'tty': sys.stdin.isatty(), 'in': sys.stdin.read()}\n"
            "open(here + '/seen', 'w').write(json.dumps(seen))\n" + textwrap.dedent(code) + "\n"
        )
        self.path.chmod(0o755)

    @property
    def runs(self) -> int:
        path = self.directory / "runs"
        return len(path.read_text()) if path.exists() else 0

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "seen").read_text())
        return found

    def config(self, *, mode: InteractiveMode = "Never", **changes: Any) -> Config:
        plugin = {"command": str(self.path), "interactive_mode": mode, **changes.pop("settings", {})}
        return Config(**{"server": "https://h:6443", "exec_plugin": ExecPlugin(**plugin), **changes})


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def credentials_of(plugin: Plugin, world: World | None = None, **changes: Any) -> ExecCredentials:
    return ExecCredentials(plugin.config(**changes), world or World.real())


async def token(credentials: ExecCredentials) -> str:
    authorization = (await credentials.current()).authorization
    return authorization.reveal() if authorization else ""


def test_the_token_that_a_program_prints_is_sent(plugin: Plugin) -> None:
    assert run(token(credentials_of(plugin))) == "Bearer s3cret-token"


def test_a_program_finds_arguments_environment_and_question(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("CHANGED", "before")
    run(
        token(
            credentials_of(
                plugin, settings={"args": ("a", "b"), "env": (("OWN", Secret("1")), ("CHANGED", Secret("2")))}
            )
        )
    )
    seen = plugin.seen
    assert seen["args"] == ["a", "b"]
    assert (seen["env"]["INHERITED"], seen["env"]["OWN"], seen["env"]["CHANGED"]) == ("yes", "1", "2")
    assert seen["in"] == ""
    assert json.loads(seen["env"]["KUBERNETES_EXEC_INFO"]) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


def test_a_plugin_with_provide_cluster_info_receives_the_cluster(plugin: Plugin, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("PEM")
    asked = {"provide_cluster_info": True, "cluster_config": {"audience": "me"}}
    config: dict[str, Any] = {
        "tls": Tls(ca_file=tmp_path / "ca", server_name="name"),
        "proxy": Secret("http://p"),
        "compression": False,
    }
    run(token(credentials_of(plugin, settings=asked, **config)))
    assert json.loads(plugin.seen["env"]["KUBERNETES_EXEC_INFO"])["spec"]["cluster"] == {
        "server": "https://h:6443",
        "tls-server-name": "name",
        "certificate-authority-data": "UEVN",
        "proxy-url": "http://p",
        "disable-compression": True,
        "config": {"audience": "me"},
    }
    run(token(credentials_of(plugin, settings={"provide_cluster_info": True})))
    assert json.loads(plugin.seen["env"]["KUBERNETES_EXEC_INFO"])["spec"]["cluster"] == {"server": "https://h:6443"}
    with pytest.raises(CredentialsError, match="failed to load CA bundle for execProvider"):
        run(token(credentials_of(plugin, settings=asked, tls=Tls(ca_file=tmp_path / "gone"))))


def test_the_beta_version_is_spoken_too(plugin: Plugin) -> None:
    plugin.answers({"token": "t"}, version=BETA)
    assert run(token(credentials_of(plugin, settings={"api_version": BETA}))) == "Bearer t"


def test_a_plugin_may_return_a_certificate_instead_of_a_token(plugin: Plugin) -> None:
    plugin.answers({"clientCertificateData": "CERT", "clientKeyData": "KEY"})

    async def main() -> None:
        credential = await credentials_of(plugin).current()
        assert credential.authorization is None
        assert credential.certificate == ClientCertificate(b"CERT", Secret("KEY"))

    run(main())


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "the output of the exec plugin is not an ExecCredential in JSON$"),
        ("token: s3cret", "the output of the exec plugin is not an ExecCredential in JSON$"),
        ("[" * 100_000, "the output of the exec plugin is not an ExecCredential in JSON"),
        ('{"kind": "Pod", "apiVersion": "v1"}', "the output of the exec plugin is not an ExecCredential in JSON"),
        ({"status": {"token": 1}}, r"ExecCredential in JSON: Expected `str | null`, got `int` - at `\$.status.token`"),
        ({"apiVersion": BETA, "status": {"token": "s3cret"}}, f"API version {V1}, plugin returned version {BETA}"),
        ({}, "exec plugin didn't return a status field"),
        ({"status": {}}, "exec plugin didn't return a token or cert/key pair"),
        ({"status": {"clientKeyData": "s3cret"}}, "exec plugin returned only certificate or key, not both"),
        ({"status": {"clientCertificateData": "x"}}, "exec plugin returned only certificate or key, not both"),
        ({"status": {"token": "s3cret\n"}}, "a token with characters not allowed in a header"),
        (
            {"status": {"token": "s3cret", "expirationTimestamp": "tomorrow"}},
            "expirationTimestamp is not a time in RFC 3339",
        ),
    ],
)
def test_invalid_output_is_rejected_without_quoting_it(plugin: Plugin, answer: Any, problem: str) -> None:
    if isinstance(answer, dict):
        answer = json.dumps({"kind": "ExecCredential", "apiVersion": V1, **answer})
    plugin.prints(answer)
    with pytest.raises(CredentialsError, match=problem) as caught:
        run(token(credentials_of(plugin)))
    assert "s3cret" not in str(caught.value)


def test_credentials_are_cached_until_they_expire(plugin: Plugin) -> None:
    clock = ShiftedClock()
    world = world_with(clock)

    async def main() -> list[int]:
        lasting = credentials_of(plugin, world)
        await token(lasting)
        clock.set_wall(clock.wall() + 1e9)
        await token(lasting)
        counts = [plugin.runs]
        plugin.answers({"token": "t", "expirationTimestamp": "2100-01-01T00:00:00Z"})
        passing = credentials_of(plugin, world)
        clock.set_wall(4102444795.0)  # a few seconds before that moment
        await token(passing)
        await token(passing)
        counts.append(plugin.runs)
        clock.set_wall(4102444801.0)
        await token(passing)
        return [*counts, plugin.runs]

    assert run(main()) == [1, 2, 3]


def test_concurrent_requests_share_one_run_of_the_plugin(plugin: Plugin) -> None:
    async def main() -> None:
        credentials = credentials_of(plugin)
        await asyncio.gather(*[token(credentials) for _ in range(10)])
        assert plugin.runs == 1
        refused = await credentials.current()
        plugin.answers({"token": "new"})
        assert all(await asyncio.gather(*[credentials.rejected(refused) for _ in range(10)]))
        assert plugin.runs == 2
        assert await token(credentials) == "Bearer new"

    run(main())


def test_a_refresh_that_fails_is_logged_and_not_tried_with(plugin: Plugin, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        credentials = credentials_of(plugin)
        refused = await credentials.current()
        plugin.does("sys.exit(3)")
        assert await credentials.rejected(refused) is False

    run(main())
    assert "cannot refresh credentials error=exec: executable" in caplog.text
    assert "failed with exit code 3" in caplog.text


def test_a_program_that_prints_without_end_is_stopped(plugin: Plugin) -> None:
    plugin.does("while True: sys.stdout.write('s3cret ' * 10000)")
    with pytest.raises(CredentialsError, match=f"printed more than {exec_plugin.MAX_OUTPUT} bytes"):
        run(token(credentials_of(plugin)))


def test_a_program_that_hangs_is_killed_with_its_children(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "MAX_RUN", 3.0)  # within which it has started its child
    plugin.does(
        """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open(here + '/pids', 'w').write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
        """
    )
    with pytest.raises(CredentialsError, match=r"timed out after 3 seconds; run it manually"):
        run(token(credentials_of(plugin)))
    for pid in map(int, (plugin.directory / "pids").read_text().split()):
        assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_program_that_is_cancelled_is_killed(plugin: Plugin) -> None:
    plugin.does("open(here + '/pid', 'w').write(str(os.getpid())); time.sleep(600)")
    pipe = plugin.directory / "pid"
    os.mkfifo(pipe)

    async def main() -> int:
        task = asyncio.create_task(token(credentials_of(plugin)))
        pid = int(await asyncio.to_thread(pipe.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert not _is_running(run(main()))


def test_the_install_hint_of_a_missing_program_is_shown_at_most_ten_times_an_hour(tmp_path: Path) -> None:
    clock = ShiftedClock()
    config = Config(server="https://h", exec_plugin=ExecPlugin(command="no-such-plugin", install_hint="get it there"))

    async def main() -> list[bool]:
        credentials = ExecCredentials(config, world_with(clock))
        hints = []
        for number in range(12):
            if number == 11:
                clock.shift += 3600
            with pytest.raises(CredentialsError, match="exec: executable no-such-plugin not found") as caught:
                await token(credentials)
            hints.append(str(caught.value).endswith("\n\nget it there"))
        return hints

    assert run(main()) == [True] * 10 + [False, True]


def test_a_program_that_cannot_be_started_is_an_error(plugin: Plugin) -> None:
    plugin.path.write_text("#!/no/such/interpreter\n")
    with pytest.raises(CredentialsError, match="cannot be started"):
        run(token(credentials_of(plugin)))


def test_a_bare_name_is_looked_up_in_the_path(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{plugin.directory}{os.pathsep}{os.environ['PATH']}")
    assert run(token(credentials_of(plugin, settings={"command": "plugin"}))) == "Bearer s3cret-token"


def test_a_program_found_only_in_the_current_directory_is_not_run(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugin.directory)
    monkeypatch.setenv("PATH", ".")
    assert find_program("plugin") is None
    with pytest.raises(CredentialsError, match="executable plugin not found"):
        run(token(credentials_of(plugin, settings={"command": "plugin"})))


def test_without_a_terminal_interactive_mode_is_rejected_or_disabled(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert run(token(credentials_of(plugin, mode="IfAvailable")))
        assert plugin.seen["tty"] is False
        with pytest.raises(CredentialsError, match="cannot support interactive mode: standard input is not a terminal"):
            run(token(credentials_of(plugin, mode="Always")))


def test_with_a_terminal_the_program_may_talk(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    plugin.path.write_text(plugin.path.read_text().replace("sys.stdin.read()", "sys.stdin.readline()"))
    master, slave = pty.openpty()
    saved = os.dup(0)
    os.dup2(slave, 0)
    os.write(master, b"hello\n")
    try:
        with os.fdopen(slave) as terminal:
            monkeypatch.setattr(sys, "stdin", terminal)
            assert run(token(credentials_of(plugin, mode="Always")))
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(master)
    assert plugin.seen["tty"] is True
    assert plugin.seen["in"] == "hello\n"
    assert json.loads(plugin.seen["env"]["KUBERNETES_EXEC_INFO"])["spec"]["interactive"] is True


class Counted:
    def __init__(self) -> None:
        self.counts: list[tuple[str, dict[str, str]]] = []

    def count(self, name: str, labels: Any, /) -> None:
        self.counts.append((name, dict(labels)))

    def observe(self, name: str, value: float, labels: Any, /) -> None:
        raise AssertionError("nothing is measured here")


def test_runs_are_counted_by_how_they_ended(plugin: Plugin) -> None:
    metrics = Counted()

    async def main() -> None:
        await ExecCredentials(plugin.config(), World.real(), metrics).current()
        for code in ("sys.exit(7)",):
            plugin.does(code)
            with pytest.raises(CredentialsError):
                await ExecCredentials(plugin.config(), World.real(), metrics).current()
        plugin.path.unlink()
        with pytest.raises(CredentialsError):
            await ExecCredentials(plugin.config(), World.real(), metrics).current()

    run(main())
    name = "rest_client_exec_plugin_call_total"
    assert metrics.counts == [
        (name, {"code": "0", "call_status": "no_error"}),
        (name, {"code": "7", "call_status": "plugin_execution_error"}),
        (name, {"code": "1", "call_status": "plugin_not_found_error"}),
    ]


def test_the_exec_policy_decides_which_plugins_run(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(plugin.directory))

    def tried(policy: ExecPolicy, command: str = str(plugin.path)) -> str:
        return run(token(credentials_of(plugin, exec_policy=policy, settings={"command": command})))

    for refused in (ExecPolicy.deny_all(), ExecPolicy.allow("other"), ExecPolicy.allow("/other/plugin")):
        with pytest.raises(CredentialsError, match="is not permitted by the exec policy; allow it with"):
            tried(refused)
    assert plugin.runs == 0
    for allowed in (ExecPolicy.allow_all(), ExecPolicy.allow("plugin"), ExecPolicy.allow(str(plugin.path), "x")):
        assert tried(allowed)
        assert tried(allowed, "plugin")


@pytest.mark.parametrize(
    ("allowed", "command", "permitted"),
    [
        (("aws",), "aws", True),
        (("aws",), "/usr/bin/aws", True),
        (("aws",), "/evil/aws", False),
        (("/usr/bin/aws",), "aws", True),
        (("/usr/bin/aws",), "/usr/bin/../bin/aws", True),
        (("/evil/aws",), "aws", False),
        (("gone",), "gone", True),
        (("/usr/bin/gone",), "gone", False),
    ],
)
def test_a_list_of_programs_is_matched_by_name_and_by_file(
    allowed: tuple[str, ...], command: str, permitted: bool
) -> None:
    found = {"aws": "/usr/bin/aws", "/usr/bin/aws": "/usr/bin/aws", "/evil/aws": "/evil/aws"}
    assert ExecPolicy.allow(*allowed).permits(command, found.get) is permitted


@pytest.mark.parametrize("commands", [(), ("",), ("/a/../b",), ("a/",)])
def test_an_invalid_list_of_allowed_programs_is_rejected(commands: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"got no programs|is not a normalized path"):
        ExecPolicy.allow(*commands)
