from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.api.meta import OwnerReference
from ostinato.api.owners import controller_reference_to
from ostinato.kinds.apps_v1 import StatefulSet
from ostinato.plane.controllers.workloads.statefulset.pods import split
from ostinato.plane.controllers.workloads.statefulset.retention import (
    desired_owner,
    has_conflicting_controller,
    matches_policy,
    with_policy,
)
from ostinato.plane.objects.pod_state import PodState

KEPT, GONE = "Retain", "Delete"


def owner(when_deleted: str, when_scaled: str) -> StatefulSet:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    spec: dict[str, Any] = {
        "selector": {},
        "template": {"spec": {"containers": []}},
        "persistentVolumeClaimRetentionPolicy": policy,
    }
    return from_dict(StatefulSet, {"metadata": {"name": "db", "uid": "set"}, "spec": spec})


POD = from_dict(PodState, {"metadata": {"name": "db-1", "uid": "pod"}})
OTHER = from_dict(PodState, {"metadata": {"name": "other", "uid": "other"}})
FORMER = from_dict(PodState, {"metadata": {"name": "db-1", "uid": "before"}})


def references(*owners: Any) -> list[OwnerReference]:
    return [controller_reference_to(each) for each in owners]


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "stays", "condemned"),
    [(KEPT, KEPT, None, None), (GONE, KEPT, "set", "set"), (KEPT, GONE, None, "pod"), (GONE, GONE, "set", "pod")],
)
def test_owner_of_a_claim_by_policy(
    when_deleted: str, when_scaled: str, stays: str | None, condemned: str | None
) -> None:
    given = owner(when_deleted, when_scaled)
    for wanted, is_condemned in ((stays, False), (condemned, True)):
        assert desired_owner(given, is_condemned=is_condemned) == wanted
        made = with_policy([], given, POD, is_condemned=is_condemned)
        assert [each.uid for each in made] == ([] if wanted is None else [wanted])
        assert matches_policy(made, given, POD, is_condemned=is_condemned)
        wrong = references(POD if wanted == "set" else given)
        assert not matches_policy(wrong, given, POD, is_condemned=is_condemned)
        assert with_policy(wrong, given, POD, is_condemned=is_condemned) == made


def test_a_claim_of_an_earlier_pod_is_not_changed() -> None:
    assert matches_policy(references(FORMER), owner(GONE, GONE), POD, is_condemned=False)


def test_a_claim_with_another_controller_only_loses_our_references() -> None:
    given = owner(GONE, KEPT)
    assert has_conflicting_controller(references(OTHER), given, POD)
    assert matches_policy(references(OTHER), given, POD, is_condemned=False)
    both = [*references(OTHER), *references(given)]
    assert not matches_policy(both, given, POD, is_condemned=False)
    assert [each.uid for each in with_policy(both, given, POD, is_condemned=False)] == ["other"]
    assert not has_conflicting_controller(references(OTHER), owner(KEPT, KEPT), POD)


def test_a_non_controller_reference_becomes_a_controller_reference() -> None:
    given = owner(GONE, KEPT)
    (plain,) = references(given)
    plain.controller = None
    assert not matches_policy([plain], given, POD, is_condemned=False)
    (made,) = with_policy([plain], given, POD, is_condemned=False)
    assert made.controller


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-0", ("db", 0)),
        ("a-b-12", ("a-b", 12)),
        ("db", ("", -1)),
        ("db-x", ("", -1)),
        ("db-2147483647", ("db", 2147483647)),
        ("db-2147483648", ("db", -1)),
        ("db-99999999999999999999", ("db", -1)),
    ],
)
def test_a_pod_name_has_set_name_and_ordinal(name: str, expected: tuple[str, int]) -> None:
    assert split(name) == expected
