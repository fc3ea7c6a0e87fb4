from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscalerBehavior
from ostinato.plane.controllers.autoscaling.behavior import READY_FOR_NEW_SCALE, WITHIN_RANGE, Bounds, ScaleHistory


def behavior(**given: Any) -> HorizontalPodAutoscalerBehavior:
    return from_dict(HorizontalPodAutoscalerBehavior, given)


def policies(*given: tuple[str, int, int]) -> list[dict[str, Any]]:
    return [{"type": kind, "value": value, "periodSeconds": period} for kind, value, period in given]


@pytest.mark.parametrize(
    ("current", "wanted", "expected", "reason"),
    [
        (3, 3, 3, "DesiredWithinRange"),
        (3, 5, 5, "DesiredWithinRange"),
        (1, 9, 4, "ScaleUpLimit"),
        (3, 9, 6, "ScaleUpLimit"),
        (8, 20, 10, "TooManyReplicas"),
        (3, 1, 2, "TooFewReplicas"),
    ],
)
def test_without_behavior_it_scales_up_to_double_or_four_within_bounds(
    current: int, wanted: int, expected: int, reason: str
) -> None:
    decision = ScaleHistory(0, 0.0).decide(current, wanted, Bounds(2, 10), 0.0)
    assert (decision.replicas, decision.limited[0], decision.is_limited) == (expected, reason, expected != wanted)


def test_the_highest_recommendation_of_the_stabilization_window_applies() -> None:
    record, bounds = ScaleHistory(5, 0.0), Bounds(1, 10)
    assert record.decide(5, 2, bounds, 15.0).replicas == 5
    assert record.decide(5, 2, bounds, 15.0).stabilized[0] == "ScaleDownStabilized"
    assert record.decide(5, 4, bounds, 100.0).replicas == 5
    assert record.decide(5, 1, bounds, 301.0).replicas == 4
    assert record.decide(4, 1, bounds, 401.0).replicas == 1


def test_behavior_may_stabilize_scaling_up_and_not_down() -> None:
    bounds = Bounds(
        1, 100, behavior(scaleUp={"stabilizationWindowSeconds": 60}, scaleDown={"stabilizationWindowSeconds": 0})
    )
    record = ScaleHistory(5, 0.0)
    held = record.decide(5, 8, bounds, 30.0)
    assert (held.replicas, held.stabilized[0]) == (5, "ScaleUpStabilized")
    free = record.decide(5, 2, bounds, 71.0)
    assert free.stabilized == READY_FOR_NEW_SCALE


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"policies": policies(("Pods", 3, 60))}, 13),
        ({"policies": policies(("Percent", 50, 60))}, 15),
        ({"policies": policies(("Pods", 3, 60), ("Percent", 50, 60))}, 15),
        ({"policies": policies(("Pods", 3, 60), ("Percent", 50, 60)), "selectPolicy": "Min"}, 13),
        ({"policies": policies(("Pods", 3, 60)), "selectPolicy": "Disabled"}, 10),
        ({"policies": policies(("Percent", 1, 60))}, 11),
    ],
)
def test_policies_limit_scaling_up(rules: dict[str, Any], expected: int) -> None:
    bounds = Bounds(1, 100, behavior(scaleUp={**rules, "stabilizationWindowSeconds": 0}))
    decision = ScaleHistory(10, -1000.0).decide(10, 50, bounds, 0.0)
    assert (decision.replicas, decision.limited[0]) == (expected, "ScaleUpLimit")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"policies": policies(("Pods", 3, 60))}, 7),
        ({"policies": policies(("Percent", 25, 60))}, 7),
        ({"policies": policies(("Pods", 2, 60), ("Percent", 50, 60))}, 5),
        ({"policies": policies(("Pods", 2, 60), ("Percent", 50, 60)), "selectPolicy": "Min"}, 8),
        ({"policies": policies(("Pods", 3, 60)), "selectPolicy": "Disabled"}, 10),
    ],
)
def test_policies_limit_scaling_down(rules: dict[str, Any], expected: int) -> None:
    bounds = Bounds(1, 100, behavior(scaleDown={**rules, "stabilizationWindowSeconds": 0}))
    decision = ScaleHistory(10, -1000.0).decide(10, 1, bounds, 0.0)
    assert (decision.replicas, decision.limited[0]) == (expected, "ScaleDownLimit")


def test_scale_events_of_the_period_count() -> None:
    bounds = Bounds(1, 100, behavior(scaleUp={"policies": policies(("Pods", 4, 60)), "stabilizationWindowSeconds": 0}))
    record = ScaleHistory(10, -1000.0)
    assert record.decide(10, 50, bounds, 0.0).replicas == 14
    record.record_scaled(10, 14, bounds, 0.0)
    assert record.decide(14, 50, bounds, 30.0).replicas == 14
    assert record.decide(14, 50, bounds, 61.0).replicas == 18


def test_an_allowed_recommendation_is_applied() -> None:
    bounds = Bounds(1, 100, behavior(scaleUp={"policies": policies(("Pods", 9, 60)), "stabilizationWindowSeconds": 0}))
    decision = ScaleHistory(3, -1000.0).decide(3, 5, bounds, 0.0)
    assert (decision.replicas, decision.stabilized, decision.limited) == (5, READY_FOR_NEW_SCALE, WITHIN_RANGE)
