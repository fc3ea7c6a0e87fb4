from __future__ import annotations

import gc
import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.controllers.current import Reconcile, running
from ostinato.manager import tracing
from ostinato.manager.logs import ReconcileFilter, Style, configure_logging, limited_by

logger = logging.getLogger("tests.logs")


A = NamespacedName("default", "a")


def reconcile(request: Any = A, gvk: GroupVersionKind | None = None) -> Reconcile:
    return Reconcile(id="r-1", controller="widgets", request=request, gvk=gvk, why=None, attempt=1)  # type: ignore[arg-type]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    level = root.level
    logging.captureWarnings(capture=False)  # which a test before may have left on, and which is not turned on twice
    yield io.StringIO()
    for handler in list(root.handlers):
        if any(isinstance(each, ReconcileFilter) for each in handler.filters):
            root.removeHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def logged(stream: io.StringIO, style: Style | None) -> str:
    configure_logging(style, stream=stream)
    with running(reconcile(gvk=GroupVersionKind("example.dev", "v1", "Widget"))):
        logger.info("scaled to %d", 3, extra={"replicas": 3, "note": "two words"})
    return stream.getvalue()


def test_python_warnings_are_logged_in_the_same_format(stream: io.StringIO) -> None:
    async def forgotten() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure_logging("json", stream=stream)
        with running(reconcile()):
            forgotten()  # type: ignore[unused-coroutine]
            gc.collect()
    line = json.loads(stream.getvalue())
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "write await before the call coroutine=test_python_warnings" in line["msg"]
    assert line["controller"] == "widgets"


def test_a_line_for_people_names_controller_object_and_reconcile(stream: io.StringIO) -> None:
    line = logged(stream, "text")
    moment, rest = line.split(" ", 1)
    assert moment.endswith("Z")
    assert rest == (
        "INFO    tests.logs scaled to 3  controller=widgets object=default/a reconcile=r-1 "
        'replicas=3 note="two words"\n'
    )


def test_a_line_for_people_does_not_repeat_what_the_message_names(stream: io.StringIO) -> None:
    configure_logging("text", stream=stream)
    with running(reconcile()):
        logger.info("reconcile finished controller=widgets object='Widget default/a' result=success")
        logger.info("unrelated object=b")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("controller=widgets object='Widget default/a' result=success  reconcile=r-1")
    assert second.endswith("unrelated object=b  controller=widgets object=default/a reconcile=r-1")


def test_a_context_limits_all_loggers_to_the_level_of_one(stream: io.StringIO) -> None:
    limit = logging.getLogger("tests.limit")
    limit.setLevel("WARNING")
    configure_logging("text", stream=stream, level="DEBUG")
    inside = limited_by(limit)
    inside.run(logger.info, "dropped")
    inside.run(logger.warning, "kept inside")
    logger.info("kept outside")
    limit.setLevel("INFO")
    inside.run(logger.info, "kept after a change of the level")
    limit.setLevel("NOTSET")
    texts = [line.partition("tests.logs ")[2] for line in stream.getvalue().splitlines()]
    assert texts == ["kept inside", "kept outside", "kept after a change of the level"]


def test_json_is_the_default_log_format_without_a_terminal(stream: io.StringIO) -> None:
    line = json.loads(logged(stream, None))
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "tests.logs",
        "msg": "scaled to 3",
        "controller": "widgets",
        "controllerGroup": "example.dev",
        "controllerKind": "Widget",
        "namespace": "default",
        "name": "a",
        "reconcileID": "r-1",
        "replicas": 3,
        "note": "two words",
    }


def test_outside_of_a_reconcile_nothing_is_added(stream: io.StringIO) -> None:
    configure_logging("text", stream=stream)
    logger.warning("hello")
    assert stream.getvalue().endswith("WARNING tests.logs hello\n")


def test_requests_that_name_no_object_are_shown_as_they_are(stream: io.StringIO) -> None:
    configure_logging("text", stream=stream)
    with running(reconcile("nightly")):
        logger.info("x")
    with running(reconcile(NamespacedName("", "cluster"))):
        logger.info("y")
    first, second = stream.getvalue().splitlines()
    assert "request=nightly" in first
    assert "object=cluster" in second


@pytest.mark.parametrize("style", ["text", "json"])
def test_errors_bring_their_traceback(stream: io.StringIO, style: Style) -> None:
    configure_logging(style, stream=stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("failed", extra={"odd": object()}, stack_info=True)
    text = stream.getvalue()
    if style == "json":
        line = json.loads(text)
        assert line["error"] == "broken"
        text = line["stacktrace"]
    assert "Traceback" in text
    assert "Stack (most recent call last)" in text


def test_configuring_again_replaces_and_does_not_double(stream: io.StringIO) -> None:
    configure_logging("text", stream=io.StringIO())
    configure_logging("text", stream=stream, level="WARNING")
    logger.info("quiet")
    logger.warning("loud")
    assert len(stream.getvalue().splitlines()) == 1


def test_spans_are_opentelemetrys_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Any]] = []

    class Tracer:
        def start_as_current_span(self, name: str, attributes: Any) -> Any:
            started.append((name, attributes))
            return io.StringIO()

    class Trace:
        def get_tracer(self, name: str) -> Tracer:
            assert name == "ostinato"
            return Tracer()

    monkeypatch.setattr(tracing, "_trace_module", Trace)
    with tracing.spans()("reconcile", {"controller": "widgets"}):
        pass
    assert started == [("reconcile", {"controller": "widgets"})]


def test_without_it_spans_are_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_trace_module", lambda: None)
    with tracing.spans()("reconcile", {}):
        pass


def test_text_is_coloured_on_a_terminal(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(stream, "isatty", lambda: True)
    configure_logging(stream=stream)
    logger.warning("late", extra={"seconds": 3})
    assert (
        "Z\x1b[0m \x1b[33mWARNING\x1b[0m \x1b[2mtests.logs\x1b[0m late  \x1b[2mseconds=3\x1b[0m\n" in stream.getvalue()
    )
    monkeypatch.setenv("NO_COLOR", "1")
    configure_logging(stream=stream)
    logger.error("later")
    assert stream.getvalue().endswith("Z ERROR   tests.logs later\n")
