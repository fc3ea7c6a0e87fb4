"""The chain of causes."""

from __future__ import annotations

from typing import Any

from tests.unit.page.objects import entry, instance

from ostinato.page.facts import Reconcile, Ref, State, Step
from ostinato.page.history.chain import MAX_STEPS, chain
from ostinato.page.history.change import Change
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import Runs
from ostinato.page.reporting.reports import Wrote


class Story:
    """Writes and runs of tests."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.runs = Runs()
        self._version = 10

    def write(self, kind: str, name: str, run: Reconcile | None = None, **others: Any) -> Change:
        self._version += 1
        before, after = instance(kind, name, self._version - 1), instance(kind, name, self._version, **others)
        change = self.changes.add(float(self._version), "update", entry(before), entry(after))
        if run is not None:
            self.changes.claim(change.at, Wrote(change.at, run.id, run.controller, change.ref, change.resource_version))
        return change

    def run(self, controller: str, *causes: Change, reasons: tuple[str, ...] = ()) -> Reconcile:
        self._version += 1
        run = Reconcile(
            id=f"{controller}-{self._version}",
            at=float(self._version),
            controller=controller,
            key="default/a",
            seconds=0.1,
            waited=0.0,
            result="success",
            reasons=[*reasons],
            causes=[State(Ref.of(each.gvk, each.key), each.resource_version) for each in causes],
        )
        self.runs.add(run)
        return run

    def why(self, change: Change) -> list[Step]:
        return chain(change, self.changes, self.runs)


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


def test_a_deletion_is_followed_rather_than_a_later_status_of_another_object() -> None:
    story = Story()
    deletion = story.write("Pod", "a", manager="kubectl", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    status = story.write("Pod", "b", manager="kubelet", status={"phase": "Running"})
    steps = story.why(story.write("Pod", "c", story.run("replicaset-controller", deletion, status)))
    assert steps[-1].who == "kubectl"
    assert steps[-1].write == deletion.with_diff()


def test_the_newest_cause_of_another_author_is_followed() -> None:
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
        change.at, Wrote(change.at, "lost", "replicaset-controller", change.ref, change.resource_version)
    )
    assert types(story.why(change)) == ["write", "unknown"]


def test_two_controllers_that_answer_each_other_end_in_a_bounded_chain() -> None:
    story = Story()
    change = story.write("Widget", "a", manager="kubectl")
    for turn in range(100):
        change = story.write("Widget", "a", story.run(f"controller-{turn % 2}", change))
    assert len(story.why(change)) <= MAX_STEPS + 2
