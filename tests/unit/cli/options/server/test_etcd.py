"""Options of a store on etcd."""

from __future__ import annotations

import argparse
import re

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import etcd
from ostinato.etcd import EtcdSettings


def parsed(*arguments: str) -> EtcdSettings | None:
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("storage")
    group.add_argument("--store", default="")
    etcd.add_to(group)
    return etcd.settings(parser.parse_args(arguments))


def test_etcd_is_named_by_a_url_or_as_for_kube_apiserver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(etcd.PASSWORD, "from the environment")
    assert parsed() is parsed("--store", "memory") is None
    found = parsed("--store", "etcd://me@a:1,b:2", "--etcd-prefix", "/x")
    assert found == EtcdSettings(("a:1", "b:2"), "/x", "me", "from the environment")
    assert parsed("--etcd-servers", "https://a:1,https://b:2") == EtcdSettings(("a:1", "b:2"), tls=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--store etcd:a:1", "--store etcd:a:1: want etcd://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/PREFIX]"),
        ("--store etcd://u:secret@a:b", "--store etcd://u:***@a:b: a:b: the port is not a number from 1 to 65535"),
        ("--etcd-servers a:1", "--etcd-servers a:1: a:1: want http[s]://HOST:PORT"),
        ("--etcd-servers http://a:1 --store memory", "--store and --etcd-servers exclude each other"),
        ("--etcd-prefix /x", "--etcd-prefix needs --store etcd://HOST:PORT or --etcd-servers"),
        ("--store etcd://a:1 --etcd-cafile /none", "--etcd-cafile /none: there is no such file"),
    ],
)
def test_wrong_options_are_named(arguments: str, message: str) -> None:
    with pytest.raises(CommandError, match=re.escape(message)):
        parsed(*arguments.split())
