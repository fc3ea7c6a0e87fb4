"""Proxies: which one leads to a server, by configuration and by environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.client.config.proxies import Proxy, bypasses, proxy_for
from ostinato.client.config.secret import Secret

GO: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "client" / "go_answers.json").read_text())

SERVER = Config(server="https://h:6443")


@pytest.mark.parametrize(("listed", "address", "direct"), GO["noProxy"])
def test_no_proxy_is_understood_as_go_does(listed: str, address: str, direct: bool) -> None:
    host, _, port = address.rpartition(":") if not address.endswith("]") and ":" in address else (address, "", "443")
    assert bypasses(listed, host.strip("[]"), int(port)) == direct
    environ = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": listed}
    assert (proxy_for(Config(server=f"https://{address}"), environ) is None) == direct


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "https://P"}, "https://p"),
        ({"HTTPS_PROXY": "p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "http://[fd00::1]:1"}, "http://[fd00::1]:1"),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "h"}, None),
        ({"HTTPS_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://p:1"),
    ],
)
def test_the_environment_names_the_proxy_for_https(environ: dict[str, str], url: str | None) -> None:
    found = proxy_for(SERVER, environ)
    assert (found.url if found else None) == url


def test_the_environment_names_the_proxy_for_http_unless_a_web_server_set_it() -> None:
    plain = Config(server="http://h")
    assert proxy_for(plain, {"HTTP_PROXY": "http://p:1"}) == Proxy("http://p:1", None)
    assert proxy_for(plain, {"HTTPS_PROXY": "http://p:1"}) is None
    assert proxy_for(plain, {"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}) is None


def test_a_configured_proxy_beats_the_environment_and_no_proxy() -> None:
    config = Config(server="https://h", proxy=Secret("http://user:p%40ss@mine:3128/path"))
    found = proxy_for(config, {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"})
    assert found == Proxy("http://mine:3128", Secret("Basic dXNlcjpwQHNz"))
    assert "p@ss" not in repr(found)
    assert "dXNl" not in repr(found)


def test_a_pod_ignores_the_environment() -> None:
    assert proxy_for(Config(server="https://h", environment_proxies=False), {"HTTPS_PROXY": "http://p"}) is None


def test_an_invalid_proxy_of_the_environment_is_reported_without_its_password() -> None:
    with pytest.raises(ConfigError, match="environment: HTTPS_PROXY: socks5 proxies are not supported") as caught:
        proxy_for(SERVER, {"HTTPS_PROXY": "socks5://u:s3cret@p"})
    assert "s3cret" not in str(caught.value)
