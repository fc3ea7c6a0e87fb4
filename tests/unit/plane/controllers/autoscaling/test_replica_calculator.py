from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.plane.controllers.autoscaling.metrics_client import MetricsError, Sample, total
from ostinato.plane.controllers.autoscaling.replica_calculator import (
    Groups,
    MeasuredPod,
    Tolerance,
    by_ratio,
    by_share,
    by_utilization,
    by_value,
    grouped,
    requests,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    name: str = "a",
    *,
    phase: str = "Running",
    ready: bool = True,
    started: timedelta = timedelta(hours=1),
    since: timedelta = timedelta(hours=1),
    **spec: Any,
) -> MeasuredPod:
    """A Pod with start time and readiness, in seconds ago."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": text(NOW - since)}
    status = {"phase": phase, "startTime": text(NOW - started), "conditions": [condition]}
    return from_dict(MeasuredPod, {"metadata": {"name": name}, "spec": spec, "status": status})


def samples(*values: int) -> dict[str, Sample]:
    return {name: Sample(value) for name, value in zip("abcdefgh", values, strict=False)}


def groups(ready: int, *, unready: str = "", missing: str = "", ignored: str = "") -> Groups:
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


@pytest.mark.parametrize(
    ("found", "values", "expected"),
    [
        ([pod("a"), pod("b")], (1, 1), groups(2)),
        ([pod("a"), pod("b")], (1,), groups(1, missing="b")),
        ([pod("a", phase="Failed"), pod("b")], (1, 1), groups(1, ignored="a")),
        ([pod("a", phase="Pending")], (1,), groups(0, unready="a")),
    ],
)
def test_pods_are_grouped_by_readiness_and_metrics(
    found: list[MeasuredPod], values: tuple[int, ...], expected: Groups
) -> None:
    assert grouped(found, samples(*values), "cpu", NOW) == expected


@pytest.mark.parametrize(
    ("found", "age", "is_unready"),
    [
        (pod(started=timedelta(minutes=2), since=timedelta(minutes=1)), 0, False),
        (
            pod(started=timedelta(minutes=2), since=timedelta(seconds=10)),
            0,
            True,
        ),  # the sample's window began before it was ready
        (pod(started=timedelta(minutes=2), since=timedelta(minutes=1), ready=False), 0, True),
        (pod(started=timedelta(hours=1), since=timedelta(minutes=1), ready=False), 0, False),  # was ready before
        (pod(started=timedelta(hours=1), since=timedelta(hours=1), ready=False), 0, True),  # was never ready
    ],
)
def test_cpu_usage_of_a_starting_pod_is_ignored(found: MeasuredPod, age: int, *, is_unready: bool) -> None:
    sample = Sample(1, NOW - timedelta(seconds=age), timedelta(seconds=30))
    assert grouped([found], {"a": sample}, "cpu", NOW).unready == frozenset("a" if is_unready else "")
    assert grouped([found], {"a": sample}, "memory", NOW).unready == frozenset()


@pytest.mark.parametrize(
    ("values", "found", "expected"),
    [
        ((50, 50), groups(2), 2),
        ((54, 54), groups(2), 2),  # within the tolerance
        ((100, 100), groups(2), 4),
        ((60, 90), groups(2), 3),
        ((10, 10, 10), groups(3), 1),
        ((100, 100), groups(2, missing="c"), 4),  # the third counts as idle
        ((10, 10), groups(2, missing="c"), 3),  # the third counts with its full request: 120/300
        ((100, 100), groups(2, unready="c"), 4),
        ((60, 60), groups(2, unready="c"), 3),  # with an idle third Pod it would scale down
    ],
)
def test_replicas_by_utilization(values: tuple[int, ...], found: Groups, expected: int) -> None:
    requested = dict.fromkeys("abcdefgh", 100)
    current = len(values) + len(found.missing) + len(found.unready)
    assert by_utilization(current, 50, samples(*values), requested, found, Tolerance()).replicas == expected


def test_utilization_and_average_usage_are_reported() -> None:
    found = by_utilization(2, 50, samples(30, 70), {"a": 100, "b": 100}, groups(2), Tolerance())
    assert (found.utilization, found.average, found.replicas) == (50, 50, 2)


@pytest.mark.parametrize(
    ("values", "found", "expected"),
    [
        ((100, 100), groups(2), 2),
        ((200, 200), groups(2), 4),
        ((20, 20, 20), groups(3), 1),
        ((40, 40), groups(2, missing="c"), 2),  # the third counts with its target
        ((200, 200), groups(2, missing="c"), 4),
    ],
)
def test_replicas_by_average_value(values: tuple[int, ...], found: Groups, expected: int) -> None:
    current = len(values) + len(found.missing)
    assert by_value(current, 100, samples(*values), found, Tolerance()).replicas == expected


def test_without_metrics_of_ready_pods_an_error_is_raised() -> None:
    with pytest.raises(MetricsError, match="did not receive metrics for targeted pods"):
        by_value(1, 100, samples(1), groups(0, unready="a"), Tolerance())
    with pytest.raises(MetricsError, match="no metrics returned matched known pods"):
        by_utilization(1, 50, samples(1), {}, groups(1), Tolerance())


def test_each_direction_has_its_own_tolerance() -> None:
    tolerance = Tolerance(down=0.5, up=0.0)
    assert by_value(2, 100, samples(60, 60), groups(2), tolerance).replicas == 2
    assert by_value(2, 100, samples(101, 101), groups(2), tolerance).replicas == 3


@pytest.mark.parametrize(
    ("current", "ratio", "ready", "expected"),
    [(2, 1.05, 2, 2), (2, 2.0, 2, 4), (3, 2.0, 2, 4), (4, 0.4, 4, 2), (0, 2.5, 0, 3), (1, 1e30, 9, 2**31 - 1)],
)
def test_replicas_by_ratio(current: int, ratio: float, ready: int, expected: int) -> None:
    assert by_ratio(current, ratio, ready, Tolerance()) == expected


@pytest.mark.parametrize(
    ("current", "value", "expected"), [(2, 200, (2, 100)), (2, 450, (5, 225)), (4, 100, (1, 25)), (0, 100, (1, 100))]
)
def test_replicas_by_share_of_a_total(current: int, value: int, expected: tuple[int, int]) -> None:
    found = by_share(current, value, 100, Tolerance())
    assert (found.replicas, found.average) == expected


def test_a_pods_request_is_that_of_its_containers_and_sidecars_or_pod_level() -> None:
    def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}

    inits = [container("once", "9"), container("sidecar", "50m", restartPolicy="Always")]
    found = pod(containers=[container("app", "100m"), container("other", "25m")], initContainers=inits)
    assert requests([found], "cpu", "") == {"a": 175}
    assert requests([found], "cpu", "other") == {"a": 25}
    whole = pod(containers=[{"name": "app"}], resources={"requests": {"cpu": "2"}})
    assert requests([whole], "cpu", "") == {"a": 2000}
    with pytest.raises(MetricsError, match="container none not found in Pod a"):
        requests([found], "cpu", "none")
    with pytest.raises(MetricsError, match="missing request for memory in container app of Pod a"):
        requests([found], "memory", "")


def test_a_sum_is_clamped_to_64_bits() -> None:
    assert total([2**63 - 1, 5]) == 2**63 - 1
    assert total([1, 2]) == 3
