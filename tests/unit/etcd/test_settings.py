"""Settings of a connection to etcd: what users write, and what they are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.etcd_cluster import Authority

from ostinato.etcd import EtcdSettings


@pytest.mark.parametrize(
    ("url", "endpoints", "prefix", "user", "password"),
    [
        ("etcd://a:1", ("a:1",), "/registry", "", ""),
        ("etcd://a:1,b:2,[::1]:3", ("a:1", "b:2", "[::1]:3"), "/registry", "", ""),
        ("etcd://a", ("a:2379",), "/registry", "", ""),
        ("etcd://[fd00::1]", ("[fd00::1]:2379",), "/registry", "", ""),
        ("etcd://a:1/", ("a:1",), "/registry", "", ""),
        ("etcd://a:1/team/one/", ("a:1",), "/team/one", "", ""),
        ("etcd://me:s%2Fe%40c@a:1/x", ("a:1",), "/x", "me", "s/e@c"),
        ("etcd://me@a:1", ("a:1",), "/registry", "me", "from the environment"),
    ],
)
def test_a_url_names_endpoints_prefix_and_user(
    url: str, endpoints: tuple[str, ...], prefix: str, user: str, password: str
) -> None:
    found = EtcdSettings.parse(url, password="from the environment" if user and not password.startswith("s") else "")
    assert (found.endpoints, found.prefix, found.user, found.password) == (endpoints, prefix, user, password)
    assert not found.tls


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://a:1", "http://a:1: want etcd://"),
        ("etcd://", "an empty host: want HOST:PORT"),
        ("etcd://a:1,,b:2", "an empty host: want HOST:PORT"),
        ("etcd://::1:2379", "an IPv6 address in brackets"),
        ("etcd://a:x", "a:x: the port is not a number from 1 to 65535"),
        ("etcd://a:70000", "a:70000: the port is not a number from 1 to 65535"),
        ("etcd://u:secret@a:x", "etcd://u:***@a:x: a:x: the port"),
        ("etcd://:secret@a:1", "a password without a user"),
        ("etcd://a:1?tls=1", "options after ? or # are not supported"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        EtcdSettings.parse(url)
    assert "secret" not in str(refused.value)


def test_two_prefixes_are_refused() -> None:
    with pytest.raises(ValueError, match="differs from --etcd-prefix /b"):
        EtcdSettings.parse("etcd://a:1/a", prefix="/b")
    assert EtcdSettings.parse("etcd://a:1/a", prefix="/a/").prefix == "/a"


def test_a_password_is_not_shown() -> None:
    settings = EtcdSettings.parse("etcd://me:secret@a:1")
    assert "secret" not in repr(settings) + str(settings)


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("a:1", "want http[s]://HOST:PORT"),
        ("https://a:1,", "empty: want http[s]://HOST:PORT"),
        ("https://a:1,http://b:1", "http and https are mixed"),
    ],
)
def test_servers_are_written_as_for_kube_apiserver(servers: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        EtcdSettings.from_servers(servers)
    found = EtcdSettings.from_servers("https://a:1/,https://b:2", prefix="x")
    assert (found.endpoints, found.tls, found.prefix) == (("a:1", "b:2"), True, "/x")


def test_unusable_files_are_named(tmp_path: Path) -> None:
    cert, key, other = tmp_path / "c", tmp_path / "k", tmp_path / "o"
    authority = Authority.make("x")
    authority.issue("one", cert, key)
    authority.issue("two", tmp_path / "unused", other)
    with pytest.raises(ValueError, match=f"--etcd-cafile {tmp_path}/none: there is no such file"):
        EtcdSettings.parse("etcd://a:1", cafile=f"{tmp_path}/none")
    with pytest.raises(ValueError, match="--etcd-certfile needs --etcd-keyfile"):
        EtcdSettings.parse("etcd://a:1", certfile=str(cert))
    with pytest.raises(ValueError, match=f"--etcd-cafile {key}: no certificates in PEM"):
        EtcdSettings.parse("etcd://a:1", cafile=str(key)).tls_context()
    with pytest.raises(ValueError, match=f"--etcd-keyfile {other}: not a certificate in PEM with its key"):
        EtcdSettings.parse("etcd://a:1", certfile=str(cert), keyfile=str(other)).tls_context()
    assert EtcdSettings.parse("etcd://a:1", cafile=str(cert)).tls_context() is not None
    assert EtcdSettings.parse("etcd://a:1").tls_context() is None
