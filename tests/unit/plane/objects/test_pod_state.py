from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.plane.objects.pod_state import PodState, is_active, is_available, is_finished, is_ready, ready_since

READY_AT = datetime.fromisoformat("2026-01-01T12:00:00+00:00")


def pod(phase: str = "Running", ready: str | None = "True", since: str | None = "2026-01-01T12:00:00Z") -> PodState:
    condition: dict[str, Any] = {"type": "Ready", "status": ready}
    if since is not None:
        condition["lastTransitionTime"] = since
    conditions = [{"type": "Initialized", "status": "True"}] + ([] if ready is None else [condition])
    return from_dict(PodState, {"metadata": {"name": "a"}, "status": {"phase": phase, "conditions": conditions}})


@pytest.mark.parametrize(("ready", "answer"), [("True", True), ("False", False), ("Unknown", False), (None, False)])
def test_readiness_is_that_of_the_condition(ready: str | None, answer: bool) -> None:
    assert is_ready(pod(ready=ready)) is answer
    assert ready_since(pod(ready=ready)) == (READY_AT if answer else None)


@pytest.mark.parametrize(
    ("seconds", "least", "answer"), [(0, 0, True), (9, 10, False), (10, 10, True), (11, 10, True), (-5, 1, False)]
)
def test_available_is_ready_for_min_ready_seconds(seconds: int, least: int, answer: bool) -> None:
    assert is_available(pod(), least, READY_AT + timedelta(seconds=seconds)) is answer
    assert not is_available(pod(ready="False"), least, READY_AT + timedelta(seconds=seconds))


def test_without_a_transition_time_it_is_available_only_with_min_ready_seconds_0() -> None:
    assert is_available(pod(since=None), 0, READY_AT)
    assert not is_available(pod(since=None), 1, READY_AT)


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), ("Unknown", False), ("", False)],
)
def test_a_pod_is_active_until_finished_or_terminating(phase: str, finished: bool) -> None:
    found = pod(phase)
    assert is_finished(found) is finished
    assert is_active(found) is not finished
    found.metadata.deletion_timestamp = found.status.conditions[1].last_transition_time
    assert not is_active(found)
