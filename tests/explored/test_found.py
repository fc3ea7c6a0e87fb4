"""What exploration has found in the control plane and the examples stays mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato import ObjectMeta
from ostinato.testing import load
from ostinato.testing.explore import create, delete_children, edit, explore
from tests.explored.run import explored
from tests.explored.scenarios import SCENARIOS


@pytest.mark.parametrize("fault", ["internal-error", "certificate-expired"])
def test_a_node_is_registered_although_a_request_failed(fault: str) -> None:
    """The agent of all nodes ended with the error of the first request, and no Pod ran."""
    found = explored(SCENARIOS["replicaset"], f"1: {fault} @ create nodes node-1 #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_the_deployment_of_a_former_name_is_deleted() -> None:
    """The example created the Deployment of the name that its cache still had, and left it there."""
    sample = load(Path(__file__).parents[2] / "examples" / "sample_controller.py")
    foo = sample.Foo(metadata=ObjectMeta(name="a"), spec=sample.FooSpec(deployment_name="x", replicas=1))
    steps = [create(foo), edit(foo, deployment_name="y"), delete_children(foo)]
    world = "1: early-step @ event MODIFIED foos.samplecontroller.example.dev default/a #2"
    found = explore(sample.foos, scenario=steps, replay=world)
    assert "1 faults dealt" in found.coverage[1]


def test_a_change_during_a_backup_does_not_stop_the_store() -> None:
    """The example applied the Job of the backup again, with another image; the template of a Job is immutable."""
    example = load(Path(__file__).parents[2] / "examples" / "key_value_store" / "store.py")
    store = example.Store(metadata=ObjectMeta(name="a"), spec=example.StoreSpec())
    steps = [create(store), edit(store, version="2"), edit(store, image="python:3.14-slim")]
    explore(example.stores, scenario=steps, worlds=1, free=["PersistentVolumeClaim"])


def test_a_terminated_pod_is_deleted_although_a_request_conflicted() -> None:
    """The agent took every conflict for another Pod of the same name, and did not try again."""
    found = explored(SCENARIOS["replicaset"], "1: conflict @ delete pods default/web-* #2")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_what_was_released_while_no_controller_ran_is_counted() -> None:
    """A quota whose limits had not changed was not counted by a new process."""
    found = explored(SCENARIOS["quota"], "1: crash-before @ event DELETED replicasets.apps default/web #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_pods_that_are_admitted_while_a_quota_is_counted_are_counted() -> None:
    """The count was compared with the quota as it was before, so that a wrong one stayed for ever."""
    found = explored(SCENARIOS["quota"], "1: child-deleted @ event ADDED pods default/web-* #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_a_quota_whose_event_was_missed_is_counted_again() -> None:
    """Nothing recounted a quota of kinds with an informer."""
    found = explored(SCENARIOS["quota"], "1: unobserved @ event ADDED configmaps default/one #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_a_namespace_is_deleted_by_a_controller_whose_clock_is_behind() -> None:
    """It waited until its own clock showed five seconds after the deletion: an hour later."""
    found = explored(SCENARIOS["namespace"], "1: clock-back @ settled 1 #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_failures_of_a_process_that_crashed_are_not_those_of_the_next() -> None:
    """A reconcile that failed before a crash counted as failing at the end, though its object was gone."""
    lag = "lag @ event DELETED replicasets.apps default/web #1"
    found = explored(SCENARIOS["quota"], f"1: {lag}; crash-after @ patch resourcequotas/status default/small #8")
    assert found.failed is None, found.failed.text()
    assert "2 faults dealt" in found.coverage[1]


def test_a_job_completes_if_the_clock_is_set_back_while_it_runs() -> None:
    """Its completionTime was before its startTime, which the API server rejects, until the clock had caught up."""
    found = explored(SCENARIOS["job"], "1: clock-back @ update jobs.batch/status default/sum #2")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_what_the_collector_would_have_deleted_may_be_deleted_by_the_controller() -> None:
    """The Endpoints of a deleted Service are deleted by whoever is first; it counted as one deletion too many."""
    found = explored(SCENARIOS["service"], "1: early-step @ delete pods default/web-65cd85bff6-* #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_the_pods_of_a_job_are_collected_with_it() -> None:
    """The collector of worlds deleted a Job as a user does, and its Pods stayed, as many as there were then."""
    found = explored(SCENARIOS["cronjob"], "1: early-step @ create nodes node-1 #2")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_a_revision_of_a_former_owner_is_not_a_collision() -> None:
    """A StatefulSet that was created again got another revision than before, as that of the first one still existed."""
    found = explored(SCENARIOS["statefulset"], "1: server-restored @ settled 1 #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]


def test_endpoints_of_a_deleted_service_are_not_created_again() -> None:
    """Their controller did so while its cache still had the Service, and deleted them later."""
    found = explored(SCENARIOS["service"], "1: lag @ event DELETED services default/web #1")
    assert found.failed is None, found.failed.text()
    assert "1 faults dealt" in found.coverage[1]
