"""The pytest plugin: which tests it runs, beside which other plugins, and what it reports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ostinato.testing import plugin

pytest_plugins = ["pytester"]

TEST = """
import asyncio
import pytest
from ostinato.kinds.core_v1 import ConfigMap
from ostinato import ObjectMeta

async def play(client, eventually):
    await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    await eventually(ConfigMap, "a")
    assert type(asyncio.get_running_loop()).__name__ == "_UnixSelectorEventLoop"
"""


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(TEST + text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error", *options, plugins=[plugin])


def test_async_tests_and_fixtures_need_no_other_plugin(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import gc
from ostinato.testing import Cluster

KNOWN = {id(each) for each in gc.get_objects() if type(each) is Cluster}  # of other tests in this process
ended = []

@pytest.fixture
async def other(client):
    return await client.create(ConfigMap(metadata=ObjectMeta(name="b")))

@pytest.fixture
async def opened(other):
    yield other.metadata.name
    ended.append(asyncio.get_running_loop())

async def test_a(opened, client, eventually):
    assert opened == "b"
    await eventually(ConfigMap, "b")
    await play(client, eventually)

class TestGroup:
    @pytest.fixture
    async def mine(self, client):
        return self

    @pytest.mark.parametrize("number", [1, 2])
    async def test_b(self, number, mine, client, eventually):
        assert mine is self
        await play(client, eventually)

def test_c():
    assert len(ended) == 1

@pytest.fixture(params=["x", "y"])
async def letter(request, clock):
    return request.param

async def test_d(letter, client):
    assert type(asyncio.get_running_loop()).__name__ == "SimulatedLoop"

def test_no_cluster_is_left():
    gc.collect()
    left = [each for each in gc.get_objects() if type(each) is Cluster]
    assert [each for each in left if id(each) not in KNOWN] == []
""",
    )
    result.assert_outcomes(passed=7)


def test_other_tests_are_not_affected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys
import pytest

@pytest.fixture
def client():
    return "mine"

def test_a(client):
    assert client == "mine"
    assert "ostinato.api" not in sys.modules
"""
    )
    result = pytester.runpytest_subprocess("-p", "ostinato.testing.plugin", timeout=60)
    result.assert_outcomes(passed=1)


def test_a_test_that_is_not_asynchronous_is_reported(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_a(client, cluster): ...")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_a must be an `async def`: it uses client, cluster"])


def test_errors_in_the_background_fail_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
async def test_a(client):
    async def fail():
        raise ZeroDivisionError("unseen")
    asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0.001)

async def test_b(client):
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0.001)
""",
    )
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*ZeroDivisionError: unseen*", "*ZeroDivisionError: division by zero*"])


def test_unknown_options_of_the_marker_are_reported(pytester: pytest.Pytester) -> None:
    result = run(pytester, "@pytest.mark.ostinato(node=3)\nasync def test_a(client): ...")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pytest.mark.ostinato has no option node; options are nodes and rbac*"])


def test_time_is_not_virtual_on_a_real_cluster(pytester: pytest.Pytester) -> None:
    result = run(pytester, "async def test_a(clock): ...", "--cluster", "kubeconfig", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*clock: time on a real cluster is not virtual*"])


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_tests_of_pytest_asyncio_have_clusters(pytester: pytest.Pytester, mode: str) -> None:
    pytest.importorskip("pytest_asyncio")
    result = run(
        pytester,
        """
@pytest.fixture
async def other(client):
    return await client.create(ConfigMap(metadata=ObjectMeta(name="b")))

async def test_a(other, client, eventually):
    await play(client, eventually)

@pytest.mark.asyncio
async def test_b(client, eventually):
    await play(client, eventually)

async def test_c(clock, client):
    await clock.advance(3600)
""",
        *("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function", "-W", "default"),
        f"--asyncio-mode={mode}",
    )
    result.assert_outcomes(passed=3)


def test_tests_of_anyio_have_clusters(pytester: pytest.Pytester) -> None:
    pytest.importorskip("anyio")
    result = run(
        pytester,
        """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_a(client, eventually):
    await play(client, eventually)

async def test_b(client, eventually):
    await play(client, eventually)
""",
        *("-p", "anyio.pytest_plugin", "-W", "default"),
    )
    result.assert_outcomes(passed=2)


def test_the_package_names_the_plugin() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"ostinato": "ostinato.testing.plugin"}
    assert any(each.startswith("pytest") for each in project["optional-dependencies"]["test"])
    assert "ostinato.testing.plugin" in sys.modules


def test_assertions_of_the_package_are_not_rewritten(pytestconfig: pytest.Config) -> None:
    assert "ostinato" not in pytestconfig.pluginmanager.rewrite_hook._must_rewrite
