"""Authentication options: what they have to do with authorization."""

from __future__ import annotations

import argparse

import pytest

from ostinato.cli.options.server import authentication as authentication_options
from ostinato.cli.options.server import authorization as authorization_options


@pytest.mark.parametrize(
    ("options", "anonymous"),
    [
        ("", None),
        ("--anonymous-auth=false", False),
        ("--anonymous-auth --authorization-mode Node,RBAC", True),
        ("--authorization-mode RBAC,AlwaysAllow", False),
        ("--anonymous-auth --authorization-mode RBAC --authorization-mode AlwaysAllow", False),
        ("--authentication-config file --authorization-mode AlwaysAllow", None),
    ],
)
def test_anonymous_requests_are_rejected_if_everything_is_authorized(options: str, anonymous: bool | None) -> None:
    parser = argparse.ArgumentParser()
    for each in (authentication_options, authorization_options):
        each.add_to(parser.add_argument_group())
    assert authentication_options.settings(parser.parse_args(options.split())).anonymous is anonymous
