"""Config: what is checked when one is made, and that printing it shows no secret."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ostinato.client.config.config import Config, ExecPlugin, Impersonation, Tls
from ostinato.client.config.error import ConfigError
from ostinato.client.config.secret import REDACTED, Secret

GO: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "client" / "go_answers.json").read_text())


@pytest.mark.parametrize(("server", "tls", "url"), GO["servers"])
def test_the_server_url_is_parsed_as_in_go(server: str, tls: bool, url: str | None) -> None:
    if url is None or url.startswith("ftp:"):  # which Go finds out later
        with pytest.raises(ConfigError, match="is neither a URL nor host:port"):
            Config(server=server, tls=Tls(insecure=tls))
    else:
        assert Config(server=server, tls=Tls(insecure=tls)).url == url.rstrip("/")


@pytest.mark.parametrize(
    "tls", [Tls(ca_data=b"x"), Tls(certificate_data=b"x", key_data=Secret("x")), Tls(insecure=True)]
)
def test_an_address_without_scheme_is_https_if_anything_of_tls_is_configured(tls: Tls) -> None:
    assert Config(server="h:1", tls=tls).secure
    assert not Config(server="h:1", tls=Tls(server_name="n")).secure


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tls": Tls(ca_data=b"x", insecure=True)}, "specifying a root certificates file with the insecure flag"),
        ({"tls": Tls(certificate_data=b"x")}, "client-key or client-key-data: is missing"),
        ({"tls": Tls(key_data=Secret("x"))}, "client-certificate: is missing"),
        ({"token": Secret("t"), "username": "u"}, "mutually exclusive"),
        ({"token_file": Path("t"), "password": Secret("u")}, "mutually exclusive"),
        ({"impersonate": Impersonation(user="", groups=("g",))}, "requires a user"),
        ({"exec_plugin": ExecPlugin(command="")}, r"exec.command: is missing"),
        ({"exec_plugin": ExecPlugin(command="a", api_version="v1")}, r"exec.apiVersion: 'v1' is not supported"),
        ({"exec_plugin": ExecPlugin(command="a", interactive_mode="Perhaps")}, r"exec.interactiveMode: 'Perhaps'"),  # type: ignore[arg-type]
        ({"proxy": Secret("socks5://p:1")}, "socks5 proxies are not supported; use an http or https proxy"),
        ({"proxy": Secret("ftp://p:1")}, "unsupported scheme 'ftp', must be http or https"),
        ({"proxy": Secret("http://")}, "proxy-url: has no host"),
        ({"proxy": Secret("http://p:port")}, "proxy-url: is not a valid URL"),
        ({"server": "https://user:s3cret@h"}, "contains a user or password"),
        ({"server": "https://user:s3cret@h:port"}, "server: the address is neither a URL"),
        ({"qps": 0.0, "burst": 1}, "both must be above zero"),
        ({"qps": 5.0}, "both must be above zero"),
        ({"timeout": 0.0}, "must be above zero"),
    ],
)
def test_an_invalid_config_is_rejected_with_field_and_source(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Config(**{"server": "https://h", "source": "the test", **changes})
    assert str(caught.value).startswith("the test: ")
    assert "s3cret" not in str(caught.value)


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        Config(server="a b", timeout=-1)
    assert len(caught.value.problems) == 2
    assert str(caught.value).startswith("2 problems:\n- code: server:")


def secretive_config() -> Config:
    return Config(
        server="https://h",
        tls=Tls(certificate_data=b"x", key_data=Secret("key-s3cret")),
        token=Secret("token-s3cret"),
        exec_plugin=ExecPlugin(
            command="aws",
            args=("--secret", "arg-s3cret"),
            env=(("NAME", Secret("env-s3cret")),),
            cluster_config={"key": "exec-s3cret"},
        ),
        proxy=Secret("http://u:proxy-s3cret@p"),
    )


@pytest.mark.parametrize(
    "shown",
    [
        repr,
        str,
        "{}".format,
        "{!r}".format,
        lambda config: str(replace(config, exec_plugin=None)),
        lambda config: repr(copy.deepcopy(config)),
    ],
)
def test_printing_a_config_shows_no_secret(shown: Any) -> None:
    basic = Config(server="https://h", username="u", password=Secret("password-s3cret"))
    for text in (shown(secretive_config()), shown(basic)):
        assert "s3cret" not in text
        assert REDACTED in text


def test_a_secret_is_equal_by_value_copied_as_itself_and_never_pickled() -> None:
    secret = Secret("a")
    assert secret == Secret("a")
    assert secret != Secret("b")
    assert secret != "a"
    assert hash(secret) == hash(Secret("a"))
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret
    assert bool(secret)
    assert not Secret("")
    assert asdict(Config(server="https://h", token=secret))["token"] is secret
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Config(token=secret))


def test_an_agent_is_named_behind_the_user_agent() -> None:
    assert Config(user_agent="me/1").with_agent("leases").user_agent == "me/1/leases"
    assert Config().with_agent("leases").user_agent.endswith("/leases")
