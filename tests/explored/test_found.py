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
