"""The chain of causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.page.objects import entry, instance, ran, wrote

from ostinato.controllers.current import Reconcile as Run
from ostinato.controllers.reasons import Cause, Why
from ostinato.page.facts import Reconcile, Step
from ostinato.page.history.chain import MAX_STEPS, chain
from ostinato.page.history.change import Change, Type
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import Runs


class Story:
    """Writes and runs of tests."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.runs = Runs()
        self._version = 10

    def write(self, kind: str, name: str, run: Reconcile | None = None, verb: Type = "update", **others: Any) -> Change:
        self._version += 1
        after = instance(kind, name, self._version, **others)
        owners = {name: value for name, value in after["metadata"].items() if name == "ownerReferences"}
        return self._add(run, verb, instance(kind, name, self._version - 1, metadata=owners), after)

    def scaled(self, kind: str, name: str, old: int, new: int) -> Change:
        self._version += 1
        before = instance(kind, name, self._version - 1, spec={"replicas": old})
        return self._add(
            None, "update", before, instance(kind, name, self._version, manager="kubectl", spec={"replicas": new})
        )

    def _add(self, run: Reconcile | None, verb: Type, before: dict[str, Any], after: dict[str, Any]) -> Change:
        old = entry(before) if verb == "update" else None
        change = self.changes.add(float(self._version), verb, old, entry(after))
        if run is not None:
            self.changes.claim(change.at, wrote(change.at, run.id, run.controller, change.ref, change.resource_version))
        return change

    def run(
        self, controller: str, *causes: Change, reasons: tuple[str, ...] = (), explanations: Sequence[str] = ()
    ) -> Reconcile:
        self._version += 1
        why = Why(reasons, tuple(Cause(each.gvk, each.key, each.resource_version) for each in causes))
        run = Run(
            id=f"{controller}-{self._version}",
            controller=controller,
            request="default/a",
            gvk=None,
            why=why,
            attempt=1,
            explanations=[*explanations],
        )
        self.runs.add(ran((float(self._version), run)))
        found = self.runs.get(run.id)
        assert found is not None
        return found

    def why(self, change: Change) -> list[Step]:
        return chain(change, self.changes, self.runs)[0]

    def origins(self, change: Change) -> list[Change | None]:
        """Return the first causes; None for those that are not writes."""
        found = chain(change, self.changes, self.runs)[1]
        return [self.changes.get(each.write.id) if each.write else None for each in found]


def types(steps: list[Step]) -> list[str]:
    return [each.type for each in steps]


def test_a_pod_is_traced_to_the_edit_of_the_deployment() -> None:
    story = Story()
    edit = story.write("Deployment", "web", manager="kubectl-edit", spec={"replicas": 5})
    scaled = story.write("ReplicaSet", "web-1", story.run("deployment-controller", edit), spec={"replicas": 5})
    pod = story.write("Pod", "web-1-a", story.run("replicaset-controller", scaled))
    steps = story.why(pod)
    assert types(steps) == ["write", "reconcile", "write", "reconcile", "user"]
    assert steps[-1].who == "kubectl-edit"
    assert steps[-1].write == edit.with_diff()
    assert steps[2].write == scaled.with_diff()


OWNED = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-ReplicaSet-web"}]
}
DELETED = {**OWNED, "deletionTimestamp": "2026-01-01T00:00:00Z"}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def causes(story: Story) -> dict[str, Change]:
    """Return changes that a controller of ReplicaSets may see before one run, in this order."""
    return {
        "deleted": story.write("Pod", "a", manager="kubectl", metadata=DELETED),
        "failed": story.write("Pod", "b", manager="kubelet", metadata=OWNED, status={"phase": "Failed"}),
        "ready": story.write("Pod", "c", manager="kubelet", metadata=OWNED, status=READY),
        "up": story.scaled("ReplicaSet", "web", 1, 2),
        "down": story.scaled("ReplicaSet", "web", 2, 1),
        "status": story.write("Pod", "d", manager="kubelet", metadata=OWNED, status={"phase": "Running"}),
        "annotated": story.write("ReplicaSet", "web", manager="kubectl", metadata={"annotations": {"a": "b"}}),
        "stranger": story.write("Pod", "e", manager="kubectl", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        "node": story.write("Node", "n", manager="kubectl", spec={"taints": []}),
    }


@pytest.mark.parametrize(
    ("given", "verb", "expected"),
    [
        ("deleted status annotated stranger node", "create", "deleted"),
        ("failed status node", "create", "failed"),
        ("up status ready annotated", "create", "up"),
        ("deleted up status", "create", "up deleted"),
        ("deleted down status", "create", "deleted"),
        ("deleted failed ready", "create", "failed deleted"),
        ("down deleted status annotated", "delete", "down"),
        ("ready status", "delete", "ready"),
        ("up ready", "delete", "ready"),
        ("status annotated", "create", "annotated"),
        ("status node", "delete", "node"),
        ("status ready", "create", "status ready"),
    ],
)
def test_the_causes_that_lead_to_a_write_are_followed_not_the_newest(given: str, verb: Type, expected: str) -> None:
    story = Story()
    known = causes(story)
    run = story.run("replicaset-controller", *(known[each] for each in given.split()))
    assert story.origins(story.write("Pod", "new", run, verb=verb, metadata=OWNED)) == [
        known[each] for each in expected.split()
    ]


def test_all_equal_causes_are_part_of_the_step() -> None:
    story = Story()
    known = causes(story)
    run = story.run("replicaset-controller", known["deleted"], known["up"], known["status"])
    steps = story.why(story.write("Pod", "new", run, verb="create", metadata=OWNED))
    assert [each.ref.name for each in steps[1].also] == ["a"]
    assert steps[2].write == known["up"].with_diff()


def test_branches_that_meet_have_one_origin() -> None:
    story = Story()
    edit = story.write("Deployment", "web", manager="kubectl")
    created = story.run("replicaset-controller", edit)
    pods = [story.write("Pod", name, created, metadata=OWNED, status=READY) for name in ("a", "b")]
    status = story.write("ReplicaSet", "web", story.run("status-controller", *pods), status={"readyReplicas": 2})
    assert story.origins(status) == [edit]


def test_the_causes_of_a_failed_run_are_those_of_its_repetition() -> None:
    story = Story()
    known = causes(story)
    story.run("replicaset-controller", known["deleted"])
    again = story.run("replicaset-controller", known["status"], reasons=("error", "Pod updated"))
    change = story.write("Pod", "new", again, verb="create", metadata=OWNED)
    assert story.origins(change) == [known["deleted"]]
    assert types(story.why(change)) == ["write", "reconcile", "reconcile", "user"]


def test_a_run_that_explains_itself_begins_the_chain() -> None:
    story = Story()
    edit = story.write("Node", "n", manager="kubectl")
    run = story.run("node-controller", edit, explanations=["no heartbeat for 50 s"])
    steps = story.why(story.write("Node", "n", run))
    assert types(steps) == ["write", "reconcile", "reason"]
    assert (steps[-1].who, steps[-1].why) == ("node-controller", "no heartbeat for 50 s")


def test_an_own_status_is_no_cause_beside_the_edit_of_another() -> None:
    story = Story()
    edit = story.write("Widget", "a", manager="kubectl")
    status = story.write("Widget", "a", story.run("widgets", edit))
    steps = story.why(story.write("ConfigMap", "a", story.run("widgets", edit, status)))
    assert types(steps) == ["write", "reconcile", "user"]


def test_a_requeued_run_continues_with_the_run_before_it() -> None:
    story = Story()
    edit = story.write("Widget", "a", manager="kubectl")
    story.run("widgets", edit)
    steps = story.why(story.write("ConfigMap", "a", story.run("widgets", reasons=("requeue after",))))
    assert types(steps) == ["write", "reconcile", "reconcile", "user"]


def test_a_run_after_an_operation_of_its_own_continues_with_the_run_before_it() -> None:
    story = Story()
    deleted = story.write("Pod", "a", manager="kubectl-delete")
    story.run("kubelet", deleted, reasons=("Pod updated",))
    steps = story.why(story.write("Pod", "a", story.run("kubelet", reasons=("channel",))))
    assert types(steps) == ["write", "reconcile", "reconcile", "user"]


def test_a_write_of_a_component_that_does_not_report_is_no_users() -> None:
    story = Story()
    bound = story.write("Pod", "a", manager="kube-scheduler")
    (step,) = story.why(bound)
    assert step.type == "unknown"
    assert "kube-scheduler" in str(step.why)


def test_a_run_without_a_known_cause_says_why_it_ran() -> None:
    story = Story()
    steps = story.why(story.write("Pod", "a", story.run("replicaset-controller", reasons=("startup",))))
    assert types(steps) == ["write", "reconcile", "unknown"]
    assert "startup" in str(steps[-1].why)


def test_a_run_whose_report_is_missing_ends_the_chain() -> None:
    story = Story()
    change = story.write("Pod", "a")
    story.changes.claim(
        change.at, wrote(change.at, "lost", "replicaset-controller", change.ref, change.resource_version)
    )
    assert types(story.why(change)) == ["write", "unknown"]


def test_two_controllers_that_answer_each_other_end_in_a_bounded_chain() -> None:
    story = Story()
    change = story.write("Widget", "a", manager="kubectl")
    for turn in range(100):
        change = story.write("Widget", "a", story.run(f"controller-{turn % 2}", change))
    assert len(story.why(change)) <= MAX_STEPS + 2
