from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ostinato.api.codec import from_dict
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.plane.controllers.workloads.deployment.revisions import DESIRED, MAXIMUM
from ostinato.plane.controllers.workloads.deployment.scaling import (
    is_saturated,
    max_surge,
    max_unavailable,
    new_set_size,
    old_set_sizes,
    proportional_sizes,
    resolve_fenceposts,
)


def deployment(
    replicas: int, surge: int | str = 0, unavailable: int | str = 0, kind: str = "RollingUpdate", current: int = 0
) -> Deployment:
    strategy: dict[str, Any] = {"type": kind}
    if kind == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {}, "spec": {"containers": []}},
        "strategy": strategy,
    }
    return from_dict(Deployment, {"metadata": {"name": "web"}, "spec": spec, "status": {"replicas": current}})


def replica_set(name: str, replicas: int, available: int = 0, age: int = 0, **annotations: int) -> ReplicaSet:
    keys = {"desired": DESIRED, "maximum": MAXIMUM}
    metadata = {
        "name": name,
        "creationTimestamp": f"2026-01-01T{23 - age:02}:00:00Z",
        "annotations": {keys[key]: str(value) for key, value in annotations.items()},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
    status = {"replicas": replicas, "availableReplicas": available}
    return from_dict(ReplicaSet, {"metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "answer"),
    [
        ("25%", "25%", 1, (1, 0)),
        ("25%", "25%", 3, (1, 0)),
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 10, (3, 2)),
        ("0%", "0%", 10, (0, 1)),
        (0, 0, 0, (0, 1)),
        (0, "1%", 10, (0, 1)),
        (5, "150%", 4, (5, 6)),
        (None, None, 4, (0, 1)),
        ("much", 2, 4, (0, 2)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down(
    surge: int | str | None, unavailable: int | str | None, replicas: int, answer: tuple[int, int]
) -> None:
    assert resolve_fenceposts(surge, unavailable, replicas) == answer


def test_max_unavailable_is_limited_to_replicas_and_0_with_recreate() -> None:
    assert max_unavailable(deployment(4, 0, "150%")) == 4
    assert max_unavailable(deployment(0, 0, 1)) == 0
    assert (max_surge(deployment(4, kind="Recreate")), max_unavailable(deployment(4, kind="Recreate"))) == (0, 0)


@pytest.mark.parametrize(
    ("wanted", "surge", "current", "total", "answer"),
    [
        (10, 0, 0, 10, 0),
        (10, 3, 0, 10, 3),
        (10, 3, 3, 10, 6),
        (10, 3, 8, 10, 10),
        (10, 3, 5, 14, 5),
        (10, "30%", 0, 0, 10),
    ],
)
def test_the_new_replica_set_is_scaled_up_within_the_surge(
    wanted: int, surge: int | str, current: int, total: int, answer: int
) -> None:
    assert new_set_size(deployment(wanted, surge), current, total) == answer


def test_with_recreate_the_new_replica_set_gets_all_replicas() -> None:
    assert new_set_size(deployment(7, kind="Recreate"), 0, 7) == 7


def sizes_after(wanted: Deployment, new: ReplicaSet, *old: ReplicaSet) -> dict[str, int]:
    result = {each.metadata.name: each.spec.replicas or 0 for each in old}
    result |= {each.metadata.name: size for each, size in old_set_sizes(wanted, new, old)}
    return result


@pytest.mark.parametrize(
    ("unavailable", "new", "old", "answer"),
    [
        pytest.param(0, (0, 0), [(10, 10)], [10], id="nothing may be missing"),
        pytest.param(2, (0, 0), [(10, 10)], [8], id="as many as may be missing"),
        pytest.param(2, (3, 0), [(10, 10)], [8], id="new ones that are not available do not help"),
        pytest.param(2, (3, 3), [(10, 10)], [5], id="new ones that are available do"),
        pytest.param(0, (5, 0), [(8, 5)], [8], id="too few are there"),
        pytest.param(2, (5, 0), [(8, 5)], [8], id="fewer than needed are available"),
        pytest.param(2, (6, 3), [(8, 5)], [5], id="those that are not available go first"),
        pytest.param(2, (4, 4), [(3, 3), (6, 6)], [0, 4], id="the oldest set first"),
        pytest.param(2, (4, 4), [(3, 1), (6, 4)], [0, 4], id="first what is broken in all, then the oldest"),
        pytest.param(2, (0, 0), [(10, 11)], [10], id="what is told is out of date"),
        pytest.param(10, (10, 10), [(0, 0)], [0], id="there is nothing left"),
    ],
)
def test_old_replica_sets_are_scaled_down_within_availability(
    unavailable: int, new: tuple[int, int], old: list[tuple[int, int]], answer: list[int]
) -> None:
    sets = [replica_set(f"old-{n}", *each, age=9 - n) for n, each in enumerate(old)]
    found = sizes_after(deployment(10, 3, unavailable), replica_set("new", *new), *sets)
    assert list(found.values()) == answer


def shares_of(wanted: Deployment, *sets: ReplicaSet) -> dict[str, int]:
    return {each.metadata.name: size for each, size in proportional_sizes(wanted, sets)}


def test_scaling_is_proportional_and_the_largest_gets_the_remainder() -> None:
    old, new = replica_set("old", 8, age=2, maximum=13), replica_set("new", 5, age=1, maximum=13)
    assert shares_of(deployment(20, 3), old, new) == {"old": 14, "new": 9}
    old, new = replica_set("old", 14, age=2, maximum=23), replica_set("new", 9, age=1, maximum=23)
    assert shares_of(deployment(5, 3), old, new) == {"old": 5, "new": 3}


def test_of_equal_replica_sets_the_newer_grows_and_the_older_shrinks_first() -> None:
    old, new = replica_set("old", 5, age=2, maximum=10), replica_set("new", 5, age=1, maximum=10)
    assert shares_of(deployment(11), old, new) == {"new": 6, "old": 5}
    assert shares_of(deployment(9), old, new) == {"old": 4, "new": 5}


def test_scaling_to_zero_scales_all_replica_sets_to_zero() -> None:
    sets = [replica_set("old", 3, age=2, maximum=8), replica_set("new", 5, age=1, maximum=8)]
    assert shares_of(deployment(0, 3), *sets) == {"old": 0, "new": 0}


def test_without_scale_annotations_the_status_is_used() -> None:
    sets = [replica_set("old", 6, age=2), replica_set("new", 4, age=1)]
    assert shares_of(deployment(20, current=10), *sets) == {"old": 12, "new": 8}
    assert shares_of(deployment(20), *sets) == {"old": 16, "new": 4}, "nothing is known: the largest gets it all"


@given(
    replicas=st.integers(1, 200),
    surge=st.integers(0, 50),
    held=st.lists(st.integers(1, 60), min_size=2, max_size=6),
)
@example(replicas=1, surge=2, held=[2, 2, 2, 2, 2])
def test_proportional_sizes_add_up_and_are_not_negative(replicas: int, surge: int, held: list[int]) -> None:
    sets = [replica_set(f"s-{n}", size, age=n, maximum=sum(held)) for n, size in enumerate(held)]
    found = proportional_sizes(deployment(replicas, surge), sets)
    assert all(size >= 0 for _, size in found)
    total, allowed = sum(size for _, size in found), replicas + max_surge(deployment(replicas, surge))
    assert total == allowed or (total > allowed and found[0][1] == 0), (
        "what rounding leaves over the largest sheds alone"
    )


@given(
    replicas=st.integers(0, 50),
    surge=st.integers(0, 10),
    unavailable=st.integers(0, 10),
    data=st.data(),
)
def test_no_step_exceeds_max_unavailable(replicas: int, surge: int, unavailable: int, data: Any) -> None:
    wanted = deployment(replicas, surge, unavailable)
    parts = [data.draw(st.integers(0, 30)) for _ in range(3)]
    new, *old = (replica_set(f"s-{n}", size, data.draw(st.integers(0, size)), age=n) for n, size in enumerate(parts))
    least = replicas - max_unavailable(wanted)
    kept = {each.metadata.name: each.spec.replicas or 0 for each in old}
    for each, size in old_set_sizes(wanted, new, old):
        assert 0 <= size < kept[each.metadata.name]
        kept[each.metadata.name] = size
    before = [new.status.available_replicas or 0, *(each.status.available_replicas or 0 for each in old)]
    still = before[0] + sum(min(kept[each.metadata.name], each.status.available_replicas or 0) for each in old)
    assert still >= min(least, sum(before))


@pytest.mark.parametrize(
    ("size", "available", "desired", "answer"), [(3, 3, 3, True), (3, 2, 3, False), (2, 3, 3, False), (3, 3, 2, False)]
)
def test_a_saturated_replica_set_has_all_replicas_and_the_annotation(
    size: int, available: int, desired: int, answer: bool
) -> None:
    assert is_saturated(deployment(3), replica_set("a", size, available, desired=desired)) is answer
