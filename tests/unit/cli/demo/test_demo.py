"""Output of the demo: grouped changes, colours, SVG."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.cli.demo.changes import AGENT, COUNTS, DEPLOYMENTS, REPLICA_SETS, SCHEDULER, Change
from ostinato.cli.demo.picture import svg
from ostinato.cli.demo.scenario import waiting
from ostinato.cli.demo.screen import GOOD, Screen, Span
from ostinato.cli.demo.timeline import grouped, render
from ostinato.kinds.core_v1 import ContainerState, ContainerStateWaiting, ContainerStatus, Pod, PodSpec, PodStatus


def creates(pod: str) -> Change:
    return Change(0.0, REPLICA_SETS, "creates", "Pod", pod)


def binds(pod: str) -> Change:
    return Change(0.0, SCHEDULER, "binds", "Pod", pod, "to node-1")


def counts(available: int) -> Change:
    return Change(0.0, DEPLOYMENTS, COUNTS, "Deployment", "web", f"{available} of 3 available")


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ([], []),
        ([creates("a"), creates("b")], [("creates", ["a", "b"])]),
        ([creates("a"), binds("a"), creates("b"), binds("b")], [("creates", ["a", "b"]), ("binds", ["a", "b"])]),
        ([counts(1), counts(2), counts(3)], [("3 of 3 available", ["web"])]),
        ([counts(1), creates("a"), counts(2)], [("1 of 3", ["web"]), ("creates", ["a"]), ("2 of 3", ["web"])]),
    ],
)
def test_equal_changes_of_pods_share_a_line(changes: list[Change], lines: list[tuple[str, list[str]]]) -> None:
    entries = grouped(changes)
    assert [each.names for each in entries] == [names for _, names in lines]
    for entry, (text, _) in zip(entries, lines, strict=True):
        assert text in "".join(span.text for span in render(entry, 0.0))


def test_changes_of_one_pod_keep_their_order() -> None:
    ends, restarts = (Change(0.0, AGENT, verb, "Pod", "a") for verb in ("sees the end of", "restarts"))
    assert [each.first.verb for each in grouped([ends, restarts, ends])] == [ends.verb, restarts.verb, ends.verb]


def test_a_line_has_its_time_and_a_mark_in_its_components_lane() -> None:
    (entry,) = grouped([Change(10.25, SCHEDULER, "binds", "Pod", "web-1-abc", "to node-1")])
    text = "".join(span.text for span in render(entry, 10.0))
    assert text == "   250 ms  │ │ │ ● │ │  scheduler              binds Pod abc  to node-1"


def screened(colour: bool, encoding: str) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Screen(stream, colour=colour).show("● ", Span("good", GOOD), "  ")
    stream.seek(0)
    return stream.read()


@pytest.mark.parametrize(
    ("colour", "encoding", "shown"),
    [(True, "utf-8", "● \x1b[32mgood\x1b[0m\n"), (False, "utf-8", "● good\n"), (False, "ascii", "* good\n")],
)
def test_a_screen_falls_back_to_ascii_and_plain_text(colour: bool, encoding: str, shown: str) -> None:
    assert screened(colour, encoding) == shown


def test_an_svg_places_every_word_in_its_column() -> None:
    picture = ElementTree.fromstring(svg([(Span("ab  "), Span("  <c>", GOOD)), ()], "a & b"))
    title, line = picture.iter("{http://www.w3.org/2000/svg}text")
    assert title.text == "a & b"
    first, second = line
    assert (first.text, second.text, second.get("fill")) == ("ab", "<c>", GOOD.colour)
    letter = float(first.get("textLength", "")) / 2
    assert float(second.get("x", "")) - float(first.get("x", "")) == pytest.approx(6 * letter)


def test_a_step_that_times_out_reports_why_pods_wait() -> None:
    state = ContainerState(waiting=ContainerStateWaiting(reason="CreateContainerError", message="no command"))
    status = ContainerStatus(name="main", image="", image_id="", ready=False, restart_count=0, state=state)
    pod = Pod(
        metadata=ObjectMeta(name="web-1"), spec=PodSpec(containers=[]), status=PodStatus(container_statuses=[status])
    )
    assert list(waiting([pod])) == ["Pod web-1: CreateContainerError: no command"]
