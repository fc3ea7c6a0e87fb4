"""Text of objects and errors on terminals."""

from __future__ import annotations

import pytest

from ostinato.cli.commands import tree
from ostinato.cli.page.plain_text import plain
from ostinato.page.facts import Ref, Tree


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Deployment web: 2 → 3", "Deployment web: 2 → 3"),
        ("└─ Pod", "└─ Pod"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),  # CSI in one character
        ("a\nb\r\tc\x00\x7f", r"a b  c\x00\x7f"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_message_of_an_object_does_not_control_the_terminal_of_tree() -> None:
    hostile = Ref("v1", "Pod", "default", "a\x1b[8m")
    found = Tree(ref=hostile, ready="failed", message="\x1b]0;owned\x07", created=None, deleting=None)
    assert [*tree.lines(found, colour=False)] == [r"Pod a\x1b[8m -n default  failed: \x1b]0;owned\x07"]
