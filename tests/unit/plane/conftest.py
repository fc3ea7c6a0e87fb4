"""Where plays are given: in a simulation, or over HTTP with `--over-http`."""

from __future__ import annotations

import pytest
from tests.stage import plane as stage
from tests.stage.over_http import OverHttp


@pytest.fixture(scope="session")
def http_theatre(tmp_path_factory: pytest.TempPathFactory) -> OverHttp:
    return OverHttp(tmp_path_factory.mktemp("theatre"))


@pytest.fixture
def over_http(http_theatre: OverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plays of this test are given over HTTP."""
    monkeypatch.setattr(stage, "theatre", http_theatre)


@pytest.fixture(autouse=True)
def _theatre(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--over-http"):
        request.getfixturevalue("over_http")
