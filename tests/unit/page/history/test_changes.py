"""The ring of changes, and which run made each of them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.unit.page.objects import entry, instance, wrote

from ostinato.page.facts import Ref
from ostinato.page.history.change import Change
from ostinato.page.history.changes import Changes
from ostinato.page.reporting.reports import Wrote

POD = Ref("v1", "Pod", "default", "a", "uid-Pod-a")


def updated(changes: Changes, version: int, at: float = 100.0, **others: Any) -> Change:
    before = instance("Pod", "a", version - 1)
    return changes.add(at, "update", entry(before), entry(instance("Pod", "a", version, **others)))


def claim(version: int, run: str = "run-1", ref: Ref = POD, at: float = 100.0) -> Wrote:
    return wrote(at, run, "controller", ref, str(version))


def test_a_run_is_found_by_the_resource_version_of_its_write() -> None:
    changes = Changes()
    first, second = updated(changes, 2), updated(changes, 3)
    changes.claim(100.1, claim(3))
    assert (first.run, second.run) == ("", "run-1")
    assert second.shown().author == "controller"


def test_a_claim_may_arrive_before_the_change() -> None:
    changes = Changes()
    changes.claim(99.9, claim(2))
    assert updated(changes, 2).run == "run-1"
    assert updated(changes, 3).run == ""


def test_a_write_that_changed_nothing_claims_no_other_change() -> None:
    changes = Changes()
    first = updated(changes, 2)
    changes.claim(100.1, claim(2))
    changes.claim(100.2, claim(2, "run-2"))
    assert first.run == "run-1"
    assert updated(changes, 3).run == ""


def test_a_write_that_changed_nothing_claims_neither_an_old_change_nor_a_removal() -> None:
    changes = Changes()
    old = updated(changes, 2, at=100.0)
    changes.claim(105.2, claim(2, at=105.0))
    changes.claim(105.2, claim(1, "run-2", at=105.0))  # of a state from before the page
    removed = changes.add(106.0, "delete", None, entry(instance("Pod", "a", 3)))
    assert (old.run, removed.run) == ("", "")


def test_the_removal_of_the_last_finalizer_is_matched_with_the_removal_not_with_the_request() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    for is_late in (False, True):
        changes = Changes()
        requested = updated(changes, 2, metadata=deleting)
        if not is_late:
            changes.claim(100.1, wrote(100.0, "run-1", "cleaner", POD, "", is_removal=True))
        removed = changes.add(100.2, "delete", None, entry(instance("Pod", "a", 3, metadata=deleting)))
        if is_late:
            changes.claim(100.3, wrote(100.0, "run-1", "cleaner", POD, "", is_removal=True))
        assert (requested.run, removed.run) == ("", "run-1")


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_the_request_of_a_deletion_and_the_removal_have_their_own_authors(order: tuple[int, ...]) -> None:
    """In whatever order changes and reports arrive: of other processes, they are delayed by up to a batch."""
    deleting = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    changes = Changes()
    found: list[Change] = []

    def watched() -> None:
        states = [instance("Pod", "a", 1), instance("Pod", "a", 2, metadata=deleting)]
        states.append(instance("Pod", "a", 3, metadata=ending))
        found.append(changes.add(100.0, "update", entry(states[0]), entry(states[1])))
        found.append(changes.add(100.1, "update", entry(states[1]), entry(states[2])))
        found.append(changes.add(100.2, "delete", None, entry(instance("Pod", "a", 4, metadata=ending))))

    steps = [
        watched,
        lambda: changes.claim(100.3, claim(2, "of-replicaset")),
        lambda: changes.claim(100.3, claim(4, "of-kubelet")),
    ]
    for each in order:
        steps[each]()
    assert [each.run for each in found] == ["of-replicaset", "of-kubelet", "of-kubelet"]


def test_a_deletion_whose_response_is_a_status_is_matched_with_the_removal() -> None:
    changes = Changes()
    changes.claim(100.0, wrote(100.0, "run-1", "gc", POD, "", is_removal=True))
    requested = updated(changes, 3, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    removed = changes.add(101.0, "delete", None, entry(instance("Pod", "a", 4)))
    assert (requested.run, removed.run) == ("", "run-1")


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_merged_writes_have_the_author_of_the_first(order: tuple[int, ...]) -> None:
    changes = Changes()
    changes.add(99.0, "create", None, entry(instance("Pod", "other", 1)))
    found: list[Change] = []
    steps = [
        lambda: found.append(changes.add(100.0, "create", None, entry(instance("Pod", "a", 5)))),
        lambda: changes.claim(100.1, claim(3, "of-replicaset")),
        lambda: changes.claim(100.1, claim(5, "of-kubelet")),
    ]
    for each in order:
        steps[each]()
    (created,) = found
    assert created.run == "of-replicaset"
    assert changes.unmatched == 0
    assert [changes.at_version(POD, version) for version in ("1", "3", "4", "5", "6")] == [None, *[created] * 3, None]


def test_a_merged_change_has_only_writes_between_its_states() -> None:
    changes = Changes()
    changes.add(99.0, "create", None, entry(instance("Pod", "other", 1)))
    first = changes.add(100.0, "update", entry(instance("Pod", "a", 3)), entry(instance("Pod", "a", 6)))
    second = changes.add(100.1, "update", entry(instance("Pod", "a", 6)), entry(instance("Pod", "a", 9)))
    changes.claim(100.2, claim(7, "run-2"))
    changes.claim(100.2, claim(3, "before-the-page"))
    changes.claim(100.2, claim(4, "of-another", Ref("v1", "Pod", "default", "a", "another")))
    assert (first.run, second.run) == ("", "run-2")
    assert changes.at_version(POD, "3") is None
    assert changes.at_version(POD, "5") is first


def test_a_removal_with_which_its_request_was_merged_completes_no_earlier_one() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    for is_merged in (False, True):
        changes = Changes()
        updated(changes, 2)
        if not is_merged:
            updated(changes, 3, metadata=deleting)
        changes.claim(100.1, claim(3, "of-replicaset"))
        removed = changes.add(101.0, "delete", None, entry(instance("Pod", "a", 5, metadata=deleting)))
        assert removed.completes_deletion is not is_merged
        assert removed.run == ("of-replicaset" if is_merged else "")


def test_writes_to_a_kind_that_is_not_watched_are_forgotten() -> None:
    changes = Changes()
    for version in range(10_000):
        changes.claim(100.0 + version / 100, claim(version))
    assert changes.unmatched <= 64
    changes.expire(1000.0)
    assert changes.unmatched == 0


def test_a_deletion_of_another_object_of_the_same_name_is_not_matched() -> None:
    changes = Changes()
    changes.claim(100.0, wrote(100.0, "run-1", "gc", Ref("v1", "Pod", "default", "a", "another"), "", is_removal=True))
    removed = changes.add(101.0, "delete", None, entry(instance("Pod", "a", 4)))
    assert removed.run == ""


def test_a_binding_is_matched_with_the_change_that_sets_the_node() -> None:
    changes = Changes()
    changes.claim(100.0, wrote(100.0, "run-1", "scheduler", POD, ""))
    assert updated(changes, 2, status={"phase": "Pending"}).run == ""
    assert updated(changes, 3, spec={"nodeName": "node-1"}).run == "run-1"


def test_an_unclaimed_change_is_its_field_managers() -> None:
    changes = Changes()
    shown = updated(changes, 2, manager="kubectl-edit").shown()
    assert (shown.author, shown.manager, shown.reconcile) == ("kubectl-edit", "kubectl-edit", None)


def test_old_changes_are_dropped_to_stay_within_the_bound_of_bytes() -> None:
    changes = Changes(max_bytes=200_000)
    for version in range(2, 500):
        updated(changes, version, data={"text": f"{version}" * 500})
    assert changes.size <= 200_000
    assert 0 < len(changes) < 490
    assert len(changes.of_object(POD)) == len(changes)
    assert changes.at_version(POD, "2") is None
    assert changes.at_version(POD, "499") is not None


def test_packed_changes_are_smaller_and_decode_to_the_same() -> None:
    changes = Changes(max_bytes=1_000_000)
    for version in range(2, 300):
        updated(changes, version, data={"text": "x" * 3_000, "count": version})
    before = [each.with_diff() for each in changes.all()]
    size = changes.size
    assert changes.needs_packing
    while changes.needs_packing and not all(each.is_packed for each in changes.all()):
        changes.pack(50)
    assert changes.size < size / 3
    assert [each.with_diff() for each in changes.all()] == before


def test_old_changes_expire() -> None:
    changes = Changes(max_age=60.0)
    updated(changes, 2, at=100.0)
    updated(changes, 3, at=150.0)
    changes.expire(170.0)
    assert [each.resource_version for each in changes.all()] == ["3"]
    assert changes.get("1") is None
    found = changes.get("2")
    assert found is not None
    assert found.resource_version == "3"


def test_unmet_claims_are_forgotten() -> None:
    changes = Changes()
    changes.claim(100.0, claim(7))
    changes.expire(1_000.0)
    assert updated(changes, 7, at=1_000.0).run == ""


def test_a_deletion_through_the_page_has_its_author() -> None:
    changes = Changes()
    changes.deleting(POD.uid, "a user")
    requested = updated(changes, 2, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert (requested.run, requested.shown().author) == ("", "a user")
    removed = changes.add(101.0, "delete", None, entry(instance("Pod", "a", 4)))
    assert removed.shown().author == "unknown"
