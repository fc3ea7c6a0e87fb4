"""Rolling updates: which revision each child is at, and when the next one moves."""

from __future__ import annotations

import asyncio
from typing import Any

from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.frontends.composite.meta.definitions import ConditionCheck, StatusChecks
from ostinato.frontends.composite.meta.revisions import (
    Revision,
    RollingKind,
    combined,
    extract,
    insert,
    revision_name,
    revisions_of,
    roll,
)
from ostinato.frontends.kernel.sync import SyncResult

Json = dict[str, Any]
POD = GroupKind("", "Pod")
INFO = KindInfo(GroupVersionKind("example.dev", "v1", "Cat"), "cats", "cat", namespaced=True)
PARENT = {"kind": "Cat", "metadata": {"name": "tom", "namespace": "n", "uid": "u"}, "spec": {"a": 1, "b": {"c": 2}}}


def pod(number: int, image: str, **status: Any) -> Json:
    metadata = {"name": f"p{number}", "namespace": "n", "generation": 2}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": image, "status": status}


def revision(name: str, image: str, claims: list[int], desired: int = 3) -> Revision:
    children = [pod(number, image) for number in range(desired)]
    made = Revision(name, PARENT, {}, result=SyncResult(children=children, finalized=True))
    made.desired = {(POD, f"p{number}"): child for number, child in enumerate(children)}
    made.claims = {(POD, f"p{number}"): None for number in claims}
    return made


async def same(found: Json, desired: Json) -> bool:
    return bool(found["spec"] == desired["spec"])


def rolled(revisions: list[Revision], observed: list[Json], kind: RollingKind | None = None) -> Json:
    by_key = {(POD, each["metadata"]["name"]): each for each in observed}
    return asyncio.run(roll(revisions, by_key, {POD: kind or RollingKind(in_place=False, checks=None)}, same))


def claims(made: Revision) -> list[str]:
    return [name for _, name in made.claims]


def images(revisions: list[Revision]) -> list[str]:
    return [each["spec"] for each in combined(revisions).children or []]


def test_children_that_nobody_claims_belong_to_the_latest_revision() -> None:
    latest = revision("two", "new", [])
    condition = rolled([latest], [])
    assert (condition["status"], condition["reason"]) == ("True", "OnLatestRevision")
    assert claims(latest) == ["p0", "p1", "p2"]


def test_one_child_moves_at_a_time_in_the_order_of_the_answer() -> None:
    latest, former = revision("two", "new", []), revision("one", "old", [2, 1, 0])
    condition = rolled([latest, former], [pod(number, "old") for number in range(3)])
    assert (condition["reason"], condition["message"]) == ("RolloutProgressing", "updating Pod p0")
    assert (claims(latest), claims(former)) == (["p0"], ["p2", "p1"])
    assert images([latest, former]) == ["new", "old", "old"]


def test_the_rollout_waits_for_a_child_that_is_missing_or_not_updated() -> None:
    for observed, said in (
        ([pod(1, "old"), pod(2, "old")], "missing child Pod p0"),
        ([pod(0, "old"), pod(1, "old"), pod(2, "old")], "child Pod p0 is not updated yet"),
    ):
        latest, former = revision("two", "new", [0]), revision("one", "old", [1, 2])
        condition = rolled([latest, former], observed)
        assert (condition["reason"], condition["message"]) == ("RolloutWaiting", said)
        assert claims(former) == ["p1", "p2"]


def test_the_rollout_waits_for_conditions_and_for_the_observed_generation() -> None:
    checks = StatusChecks(conditions=[ConditionCheck(type="Ready", status="True", reason="Up")])
    for status, said in (
        ({}, 'required condition type missing: "Ready"'),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, 'condition status is "False" (want "True")'),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, 'condition reason is "" (want "Up")'),
        ({"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}], "observedGeneration": 1}, "observed"),
    ):
        latest, former = revision("two", "new", [0]), revision("one", "old", [1, 2])
        observed = [pod(0, "new", **status), pod(1, "old"), pod(2, "old")]
        condition = rolled([latest, former], observed, RollingKind(in_place=True, checks=checks))
        assert condition["reason"] == "RolloutWaiting"
        assert said in condition["message"]
    fine = {"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}], "observedGeneration": 2}
    latest, former = revision("two", "new", [0]), revision("one", "old", [1, 2])
    observed = [pod(0, "new", **fine), pod(1, "old"), pod(2, "old")]
    condition = rolled([latest, former], observed, RollingKind(in_place=True, checks=checks))
    assert condition["message"] == "updating Pod p1"


def test_children_that_are_as_the_latest_revision_wants_move_at_once() -> None:
    latest, former = revision("two", "new", [0]), revision("one", "old", [1, 2])
    condition = rolled([latest, former], [pod(number, "new") for number in range(3)])
    assert condition["reason"] == "OnLatestRevision"
    assert (claims(latest), claims(former)) == (["p0", "p1", "p2"], [])


def test_claims_of_children_that_are_not_desired_or_claimed_twice_are_dropped() -> None:
    latest, former = revision("two", "new", [0], desired=2), revision("one", "old", [0, 1, 2])
    rolled([latest, former], [pod(0, "x"), pod(1, "old"), pod(2, "old")])
    assert (claims(latest), claims(former)) == (["p0"], ["p1"])


def test_the_result_has_the_status_of_the_latest_and_the_shortest_delay() -> None:
    latest, former = revision("two", "new", [0]), revision("one", "old", [1])
    latest.result.status, latest.result.resync_after, former.result.resync_after = {"a": 1}, 30.0, 10.0
    former.result.finalized = False
    result = combined([latest, former])
    assert (result.status, result.resync_after, result.finalized) == ({"a": 1}, 10.0, False)
    former.claims = {}
    assert combined([latest, former]).finalized is True


def test_a_revision_has_the_chosen_fields_of_its_time() -> None:
    paths = ["spec.b", "spec.missing"]
    assert extract(PARENT, paths) == {"spec": {"b": {"c": 2}}}
    former = {"metadata": {"name": "old"}, "parentPatch": {"spec": {"b": {"c": 1}}}, "children": []}
    latest, other = revisions_of(PARENT, INFO, paths, [former])
    assert other.parent["spec"] == {"a": 1, "b": {"c": 1}}
    assert latest.parent is PARENT
    assert PARENT["spec"]["b"] == {"c": 2}
    assert latest.name == revision_name(INFO, "u", {"spec": {"b": {"c": 2}}})
    assert latest.name.startswith("cats.example.dev-")
    assert insert({}, {"spec": {"b": 1}}, paths) == {"spec": {"b": 1}}


def test_a_stored_revision_of_the_current_state_is_the_latest() -> None:
    stored = {
        "metadata": {"name": "now"},
        "parentPatch": {"spec": PARENT["spec"]},
        "children": [{"apiGroup": "", "kind": "Pod", "names": ["p0"]}],
    }
    [latest] = revisions_of(PARENT, INFO, ["spec"], [stored])
    assert (latest.name, latest.stored, claims(latest)) == ("now", stored, ["p0"])
    document = latest.document({"x": "y"})
    assert document["children"] == stored["children"]
    assert document["metadata"]["ownerReferences"][0]["controller"] is True
