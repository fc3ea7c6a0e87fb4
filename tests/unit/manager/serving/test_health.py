from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from ostinato.manager import Manager
from ostinato.manager.serving.endpoints import clean
from ostinato.manager.serving.health import Check, Checks, Report
from ostinato.world import Simulation

WORLD = Simulation(1)


def ask(checks: Checks, name: str = "", **query: list[str]) -> Report:
    return WORLD.run(checks.report(name, query))


def bad() -> None:
    raise RuntimeError("no disk")


async def slow_and_good() -> None: ...


async def slow_and_bad() -> None:
    raise ValueError


@pytest.fixture
def checks() -> Checks:
    made = Checks(WORLD.executor)
    made.add("good", lambda: None)
    made.add("bad", bad)
    made.add("awaited", slow_and_good)
    return made


def test_without_checks_there_is_one_that_passes() -> None:
    checks = Checks(WORLD.executor)
    assert ask(checks) == (200, "ok")
    assert ask(checks, "ping") == (200, "ok")
    assert ask(checks, verbose=[""]) == (200, "[+]ping ok\nhealthz check passed\n")


def test_a_failure_lists_all_checks_and_withholds_reasons(checks: Checks) -> None:
    text = "[+]awaited ok\n[-]bad failed: reason withheld\n[+]good ok\nhealthz check failed\n"
    assert ask(checks) == (500, text)


def test_a_single_check_reports_its_reason_only(checks: Checks) -> None:
    assert ask(checks, "bad") == (500, "internal server error: no disk\n")
    assert ask(checks, "good") == (200, "ok")
    assert ask(checks, "awaited") == (200, "ok")
    assert ask(checks, "unknown") == (404, "404 page not found\n")
    assert ask(checks, "ping").status == 404, "it is there only where nothing else is"


def test_a_reason_without_words_is_the_kind_of_error() -> None:
    checks = Checks(WORLD.executor)
    checks.add("bad", slow_and_bad)
    assert ask(checks, "bad") == (500, "internal server error: ValueError\n")


def test_a_plain_check_runs_in_a_thread_and_its_awaitable_on_the_loop() -> None:
    def where() -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        called.append("plain")

    async def awaited() -> None:
        asyncio.get_running_loop()
        called.append("awaited")

    called: list[str] = []
    checks = Checks(WORLD.executor)
    checks.add("a", where)
    checks.add("b", lambda: awaited())  # noqa: PLW0108 - it is no coroutine function
    checks.add("c", awaited)
    assert ask(checks, verbose=[""]) == (200, "[+]a ok\n[+]b ok\n[+]c ok\nhealthz check passed\n")
    assert called == ["plain", "awaited", "awaited"]


def test_a_check_that_changes_its_result_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    checks, wrong = Checks(WORLD.executor), ["no disk"]
    checks.add("disk", lambda: bad() if wrong else None)
    for _ in range(3):
        assert ask(checks).status == 500
    wrong.clear()
    for _ in range(3):
        assert ask(checks).status == 200
    assert caplog.messages == ["health check failed check=disk error=no disk", "health check passed again check=disk"]


def test_an_excluded_check_cannot_fail(checks: Checks) -> None:
    assert ask(checks, exclude=["bad"]) == (200, "ok")
    text = "[+]awaited ok\n[+]bad excluded: ok\n[+]good ok\nhealthz check passed\n"
    assert ask(checks, exclude=["bad"], verbose=[""]) == (200, text)


def test_excluding_an_unknown_check_is_a_warning(checks: Checks) -> None:
    status, text = ask(checks, exclude=["bad", "what", "ever"], verbose=[""])
    assert status == 200
    assert 'warn: some health checks cannot be excluded: no matches for "ever","what"\n' in text


@pytest.mark.parametrize("name", ["", "a/b", "good"])
def test_names_are_parts_of_a_path_and_unique(checks: Checks, name: Any) -> None:
    with pytest.raises(ValueError, match=r"exists|one path segment"):
        checks.add(name, bad)


VECTORS = json.loads((Path(__file__).parents[3] / "data" / "manager" / "controller_runtime_health.json").read_text())


def test_answers_are_those_of_controller_runtime() -> None:
    assert len(VECTORS) >= 80
    for vector in VECTORS:
        manager = Manager(world=WORLD)
        for name, wrong in vector["checks"].items():
            manager.add_health_check(name, failing(wrong) if wrong else (lambda: None))
        path, _, query = vector["target"].partition("?")
        found = WORLD.run(manager._answer_health(clean("/healthz" + path), parse_qs(query, keep_blank_values=True)))
        assert found is not None
        assert (found.status, found.text) == (vector["status"], vector["text"]), vector


def failing(why: str) -> Check:
    def check() -> None:
        raise RuntimeError(why)

    return check
