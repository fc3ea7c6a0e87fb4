"""kube-apiserver's flags: defaults, and messages for invalid ones."""

from __future__ import annotations

import argparse
import logging
import ssl
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli.commands.control_plane import serve
from ostinato.cli.envtest import apiserver, apiserver_flags, flags, handover
from ostinato.cli.envtest.etcd import Storage
from ostinato.cli.envtest.parent import ParentWatch
from ostinato.cli.error import CommandError
from ostinato.server.standalone import Settings
from ostinato.world import World

ISSUE = """--bind-address --secure-port --cert-dir --tls-cert-file --tls-private-key-file --client-ca-file
--service-account-issuer --service-account-key-file --service-account-signing-key-file --service-cluster-ip-range
--authorization-mode --enable-admission-plugins --disable-admission-plugins --etcd-servers --allow-privileged
--max-requests-inflight --max-mutating-requests-inflight --advertise-address --token-auth-file --anonymous-auth
--audit-policy-file --audit-log-path --requestheader-client-ca-file --oidc-issuer-url"""


def run(*arguments: str) -> None:
    apiserver.run(flags.parse(apiserver_flags.make_parser(), arguments), ParentWatch())


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the settings that the server would start with, for flags."""
    found: list[Settings] = []

    async def storage(_urls: object, _clock: object) -> Storage:
        return Storage(str(tmp_path / "data"), durable=False)

    def serve_with(make: Any, name: str, listen: str) -> None:
        found.append(make(World.real())._settings)
        assert name == "kube-apiserver"
        assert listen

    monkeypatch.setattr(handover, "storage_of", storage)
    monkeypatch.setattr(serve, "run", serve_with)

    def settings(*arguments: str) -> Settings:
        run("--etcd-servers=http://127.0.0.1:1", f"--cert-dir={tmp_path / 'certs'}", *arguments)
        return found.pop()

    return settings


def test_flags_are_listed_at_the_start_of_a_line() -> None:
    """envtest searches the output of --help for them."""
    lines = {
        line.split()[0].rstrip(",") for line in apiserver_flags.make_parser().format_help().splitlines() if line.strip()
    }
    assert set(ISSUE.split()) - lines == set()
    assert "--insecure-port" not in lines
    assert not {"--listen", "--state", "--store"} & lines


def test_the_defaults_are_kube_apiservers(served: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = served()
    assert (settings.host, settings.port) == ("0.0.0.0", 6443)
    assert settings.state == tmp_path / "data" / "ostinato"
    assert [each.type for each in settings.authorization.chain] == ["AlwaysAllow"]
    assert settings.authentication.anonymous is False
    assert settings.admission.allow_privileged is False
    assert settings.durable is False
    assert "anonymous requests are not allowed" in caplog.text


def test_a_certificate_is_generated_once(served: Any, tmp_path: Path) -> None:
    pair = served().tls.key_pair
    assert pair[:2] == (tmp_path / "certs" / "apiserver.crt", tmp_path / "certs" / "apiserver.key")
    made = [path.read_bytes() for path in pair[:2]]
    assert made[0].count(b"BEGIN CERTIFICATE") == 2  # with the authority, which clients can trust
    assert [path.stat().st_mode & 0o777 for path in pair[:2]] == [0o644, 0o600]
    served()
    assert [path.read_bytes() for path in pair[:2]] == made
    pair[1].unlink()
    with pytest.raises(CommandError, match=r"apiserver.crt exists without .*apiserver.key; provide both, or remove it"):
        served()


def test_a_pair_that_was_written_half_way_is_completed(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, died = Path.replace, []

    def die(path: Path, target: Path) -> Path:
        if not died and target.name == "apiserver.crt":
            died.append(path)
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        served()
    pair = served().tls.key_pair
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(pair.certificate, pair.key)
    assert {path.name for path in pair.key.parent.iterdir()} == {"apiserver.crt", "apiserver.key"}


def test_flags_of_envtest(served: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings = served(
        "--bind-address=127.0.0.1",
        "--secure-port=4001",
        "--authorization-mode=Node",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.9.0.7/16",
        "--service-account-issuer=https://127.0.0.1:4001/",
        "--max-requests-inflight=7",
        "--advertise-address=10.1.2.3",
    )
    assert (settings.host, settings.port, settings.advertise_address) == ("127.0.0.1", 4001, "10.1.2.3")
    assert [each.type for each in settings.authorization.chain] == ["Node", "RBAC"]
    assert settings.admission.disabled == ("ServiceAccount",)
    assert settings.admission.allow_privileged
    assert settings.service_ranges == (IPv4Network("10.9.0.0/16"),)
    assert settings.authentication.accounts.issuers == ("https://127.0.0.1:4001/",)
    assert settings.authentication.anonymous is None
    assert settings.flow.most == 7
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--secure-port=0", "--secure-port 0 must be between 1 and 65535, inclusive"),
        ("--bind-address=localhost", "--bind-address localhost: want an IP address"),
        ("--advertise-address=x", "--advertise-address x: want an IP address"),
        ("--service-cluster-ip-range=x", "--service-cluster-ip-range x: want a network such as 10.0.0.0/24"),
        ("--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24", "want one network, or one of each IP family"),
        ("--service-cluster-ip-range=10.0.0.0/24,fd00::/108,fd01::/108", "want one network, or one of each IP family"),
        ("--service-cluster-ip-range=10.0.0.0/24,", "--service-cluster-ip-range : want a network such as"),
        ("--service-cluster-ip-range=10.0.0.0/30", "10.0.0.0/30 is too small, want at least 8 addresses"),
        ("--service-cluster-ip-range=10.0.0.0/24,fd00::/126", "fd00::/126 is too small, want at least 8 addresses"),
        ("--authorization-mode=Nobody", 'authorization-mode "Nobody" is not a valid mode'),
        ("--enable-admission-plugins=Nothing", 'enable-admission-plugins plugin "Nothing" is unknown'),
    ],
)
def test_invalid_values(served: Any, flag: str, message: str) -> None:
    with pytest.raises(CommandError) as failure:
        served(flag)
    assert message in str(failure.value)


@pytest.mark.parametrize("given", ["fd00::/108", "10.3.0.0/24,fd00::/108", "fd00::/108,10.3.0.0/24", "fd00::/64"])
def test_ranges_of_either_family_may_be_first(served: Any, given: str) -> None:
    assert [str(each) for each in served(f"--service-cluster-ip-range={given}").service_ranges] == given.split(",")


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([], "--etcd-servers must be specified"),
        (["--etcd-servers="], "--etcd-servers must be specified"),
        (["--etcd-servers=https://127.0.0.1:2379"], "--etcd-servers https://127.0.0.1:2379: want http://HOST:PORT"),
        (["--etcd-servers=http://127.0.0.1:x"], "--etcd-servers http://127.0.0.1:x: want http://HOST:PORT"),
        (["--etcd-servers=127.0.0.1:2379"], "--etcd-servers 127.0.0.1:2379: want http://HOST:PORT"),
    ],
)
def test_invalid_etcd_servers(servers: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as failure:
        run(f"--cert-dir={tmp_path}", *servers)
    assert str(failure.value) == message


def test_help_does_not_load_the_server() -> None:
    code = """
import sys
from ostinato.cli.envtest.__main__ import main
try:
    main("kube-apiserver", ["--help"])
except SystemExit as end:
    assert not end.code
assert not [name for name in sys.modules if name.startswith(("ostinato.server", "asyncio"))]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_flag_has_a_help_text() -> None:
    actions = apiserver_flags.make_parser()._actions
    assert [each.option_strings for each in actions if not each.help or each.help is argparse.SUPPRESS] == []


def test_a_port_in_use_is_reported_with_the_flag_of_kube_apiserver(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise CommandError("port 1 on 127.0.0.1 is in use; choose another with --listen, or port 0 for a free one")

    monkeypatch.setattr(serve, "run", fail)
    with pytest.raises(CommandError, match=r"^port 1 on 127.0.0.1 is in use; choose another with --secure-port$"):
        served()
