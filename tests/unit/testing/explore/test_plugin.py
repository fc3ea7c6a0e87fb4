"""The fixture `explore`."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

_TEST = """
from ostinato.testing.explore import create
from tests.unit.testing.explore.operators import careful, forgetful, pond

def test_careful(explore):
    explore(careful, scenario=[create(pond())], worlds=10)

def test_forgetful(explore):
    explore(forgetful, scenario=[create(pond())], worlds=10)
"""


def test_a_test_that_explores_fails_with_the_timeline_and_writes_a_picture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TEST)
    result = pytester.runpytest_inprocess("--explore-pictures=pictures", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*crash-after @ create configmaps default/a #1*", "*replay: '1: crash-after @*"])
    (picture,) = (pytester.path / "pictures").glob("*.svg")
    assert "FAULT crash-after" in picture.read_text()


def test_a_world_is_replayed_from_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TEST)
    world = "--explore-replay=1: lost-answer @ create configmaps default/a #1"
    result = pytester.runpytest_inprocess(world, "-k", "forgetful", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ConfigMap default/a-two: missing*"])
