"""How the server names a user to extension servers."""

from __future__ import annotations

import pytest

from ostinato.server.aggregation.front_proxy import identity_fields
from ostinato.server.request import User


def test_a_user_is_named_with_groups_uid_and_extra_values() -> None:
    extra = {"example.dev/team": ("a", "b"), "100%": ("c",)}
    assert list(identity_fields(User("ada", "7", ("x", "y"), extra))) == [
        ("x-remote-user", "ada"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "x"),
        ("x-remote-group", "y"),
        ("x-remote-extra-example.dev%2fteam", "a"),
        ("x-remote-extra-example.dev%2fteam", "b"),
        ("x-remote-extra-100%25", "c"),
    ]


@pytest.mark.parametrize("value", ["a\r\nx-remote-group: system:masters", "a\nb", "a\0", "a\x7f"])
def test_a_value_that_is_no_header_value_is_refused(value: str) -> None:
    for user in (User(value), User("a", value), User("a", groups=(value,)), User("a", extra={"k": (value,)})):
        with pytest.raises(ValueError, match="invalid header field value"):
            list(identity_fields(user))
