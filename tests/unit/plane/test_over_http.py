"""A selection of scenarios over HTTPS; `--over-http` runs all of them that way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers import test_quota
from tests.unit.plane.controllers.autoscaling import test_autoscaler
from tests.unit.plane.controllers.disruption import test_disruption
from tests.unit.plane.controllers.garbage import test_garbage
from tests.unit.plane.controllers.namespaces import test_deletion as test_namespace
from tests.unit.plane.controllers.nodes import test_lifecycle as test_node_lifecycle
from tests.unit.plane.controllers.services import test_endpoints
from tests.unit.plane.controllers.storage import test_volumes
from tests.unit.plane.controllers.workloads.cronjob import test_cronjob
from tests.unit.plane.controllers.workloads.daemonset import test_daemonset
from tests.unit.plane.controllers.workloads.deployment import test_deployment
from tests.unit.plane.controllers.workloads.job import test_job
from tests.unit.plane.controllers.workloads.statefulset import test_statefulset
from tests.unit.plane.node.runtimes import test_simulated
from tests.unit.plane.scheduler import test_scheduler

from ostinato.manager.connecting import Purpose
from ostinato.world import BackgroundError

pytestmark = pytest.mark.usefixtures("over_http")

PLAYS: list[Callable[[], None]] = [
    test_autoscaler.test_too_few_replicas_are_scaled_up_to_min_replicas,
    test_cronjob.test_a_job_begins_at_every_time_of_the_schedule,
    test_daemonset.test_an_update_replaces_one_pod_at_a_time,
    test_deployment.test_a_restored_template_reuses_its_replica_set_with_a_new_revision,
    test_disruption.test_an_eviction_uses_the_budget_and_a_terminating_pod_is_not_healthy,
    test_endpoints.test_a_terminating_pod_serves_and_is_not_ready,
    test_garbage.test_foreground_deletion_waits_for_blocking_dependents_only,
    test_job.test_a_failed_pod_is_replaced_after_ten_seconds_then_twenty,
    test_namespace.test_a_namespace_is_deleted_with_its_content,
    test_node_lifecycle.test_a_node_without_heartbeat_is_unknown_and_unreachable_and_its_pods_are_not_ready,
    test_quota.test_deleted_and_finished_objects_are_released,
    test_scheduler.test_a_pod_of_high_priority_preempts_one_of_low_priority,
    test_simulated.test_a_pod_runs_and_is_ready,
    test_statefulset.test_pods_are_created_in_order_each_when_the_last_is_ready,
    test_volumes.test_a_pending_claim_is_bound_to_a_later_volume,
]


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__.removeprefix("test_"))
def test_scenarios_pass_over_http(play: Callable[[], None]) -> None:
    play()


def test_clients_use_sockets_and_time_is_virtual() -> None:
    hours: list[float] = []

    async def play(stage: Stage) -> None:
        transport = stage.connect(Purpose())
        assert transport.host.startswith("127.0.0.1:")
        await transport.close()
        begun = stage.world.clock.now()
        await stage.world.clock.sleep(3600)
        hours.append((stage.world.clock.now() - begun).total_seconds() / 3600)

    on_stage(play)
    assert hours == [1]


def test_an_unhandled_error_fails_the_test() -> None:
    async def play(stage: Stage) -> None:
        stage.world.clock.timer(1, lambda: 1 / 0)
        await stage.world.clock.sleep(2)

    with pytest.raises(BackgroundError):
        on_stage(play)
