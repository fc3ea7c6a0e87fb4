"""How the tests of the control plane reach their server: in a simulation, or over HTTPS with `--over-http`."""

from __future__ import annotations

import pytest
from tests.stage import plane
from tests.stage.over_http import OverHttp


@pytest.fixture(scope="session")
def http_runner(tmp_path_factory: pytest.TempPathFactory) -> OverHttp:
    return OverHttp(tmp_path_factory.mktemp("server"))


@pytest.fixture
def over_http(http_runner: OverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run this test over HTTPS."""
    monkeypatch.setattr(plane, "run_scenario", http_runner)


@pytest.fixture(autouse=True)
def _over_http(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--over-http"):
        request.getfixturevalue("over_http")
