"""Headers: user agent, impersonation, warnings."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ostinato.client.config.config import Config, Impersonation
from ostinato.client.config.error import ConfigError
from ostinato.client.transport.headers import default_user_agent, escaped_key, fixed_headers, impersonation_headers
from ostinato.client.transport.retry_policy import retry_after, wait_before_retry
from ostinato.client.transport.warning import warning_texts
from ostinato.version import VERSION

GO: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "client" / "go_answers.json").read_text())


@pytest.mark.parametrize(("key", "header"), GO["extra"])
def test_keys_of_extra_are_escaped_as_go_does(key: str, header: str) -> None:
    assert f"Impersonate-Extra-{escaped_key(key)}".lower() == header.lower()


def test_impersonation_is_user_uid_groups_and_extra() -> None:
    who = Impersonation(user="me", uid="7", groups=("a", "b"), extra={"k": ("v", "w")})
    assert impersonation_headers(Config(impersonate=who)) == [
        ("Impersonate-User", "me"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-k", "v"),
        ("Impersonate-Extra-k", "w"),
    ]
    assert impersonation_headers(Config(impersonate=Impersonation(user="me"))) == [("Impersonate-User", "me")]
    assert impersonation_headers(Config()) == []


def test_control_characters_in_a_header_are_rejected() -> None:
    with pytest.raises(ConfigError, match="Impersonate-User: contains control characters"):
        impersonation_headers(Config(impersonate=Impersonation(user="a\r\nX: b")))
    with pytest.raises(ConfigError, match="User-Agent: contains control characters"):
        fixed_headers(Config(user_agent="a\nb"))


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    assert default_user_agent().endswith(f"ostinato/{VERSION}")


def test_the_user_agent_names_program_version_and_machine() -> None:
    assert re.fullmatch(r"[\w.+-]+/\S+ \(\w+/\w+\) ostinato/\S+", default_user_agent())
    assert ("User-Agent", "me/1") in fixed_headers(Config(user_agent="me/1"))


@pytest.mark.parametrize(
    ("program", "name"),
    [("/a/b/op.py", "op.py"), ("/a/widgets/__main__.py", "widgets"), ("-c", "c"), ("", "python"), ("a b/ü!", "python")],
)
def test_the_program_is_named_by_its_file(program: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    default_user_agent.cache_clear()
    try:
        assert default_user_agent().startswith(f"{name}/")
    finally:
        default_user_agent.cache_clear()


@pytest.mark.parametrize(("header", "texts"), GO["warnings"])
def test_warnings_are_read_as_go_does(header: str, texts: list[str]) -> None:
    assert warning_texts([header]) == texts


def test_warnings_of_several_headers_are_in_order() -> None:
    assert warning_texts(['299 - "a"', "nonsense", '299 - "b"']) == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "header", "wait"),
    [
        (429, "5", 5.0),
        (429, "0", 0.0),
        (500, "1", 1.0),
        (503, "7", 7.0),
        (599, "1", 1.0),
        (200, "1", None),
        (404, "1", None),
        (409, "1", None),
        (429, None, None),
        (503, "", None),
        (503, "1.5", None),
        (503, "-1", None),
        (503, "Wed, 21 Oct 2015 07:28:00 GMT", None),
        (503, "٣", None),
        (503, "9" * 100, None),
    ],
)
def test_only_429_and_5xx_with_retry_after_in_seconds_are_retried(
    status: int, header: str | None, wait: float | None
) -> None:
    assert wait_before_retry(status, {} if header is None else {"retry-after": header}) == wait


def test_retry_after_is_read_from_any_response() -> None:
    assert retry_after({"retry-after": "3"}) == 3.0
