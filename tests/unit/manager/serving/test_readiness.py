"""Readiness: `/readyz` waits for the caches of the controllers, `/healthz` does not."""

from __future__ import annotations

from tests.stage.election import ElectionStage, staged
from tests.unit.manager.test_manager import Rig

from ostinato import controller
from ostinato.api.errors import Forbidden
from ostinato.api.object import kind_of
from ostinato.client import Unstructured
from ostinato.client.transport.protocol import Request
from ostinato.controllers import Builder
from ostinato.controllers.context import Context
from ostinato.kinds.core_v1 import ConfigMap, Secret


@controller(ConfigMap, name="maps")
async def maps(config_map: ConfigMap, ctx: Context) -> None: ...


@controller(Secret, name="secrets")
async def secrets(secret: Secret, ctx: Context) -> None: ...


def _reject_lists(request: Request) -> None:
    if "configmaps" in request.path:
        raise Forbidden.of(kind_of(ConfigMap).gvr.group_resource, "", "not now")


async def _status(rig: Rig, path: str) -> tuple[int, str]:
    answer = await rig.manager._answer_health(path, {})
    assert answer is not None
    return answer.status, answer.text


@staged
async def test_readiness_waits_for_the_caches_of_the_controllers(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(maps)
    assert rig.manager.informers.all() == []
    rig.wires["everybody"].before = _reject_lists
    await rig.start(1)
    assert await _status(rig, "/readyz") == (500, "[-]caches failed: reason withheld\nhealthz check failed\n")
    status, text = await _status(rig, "/readyz/caches")
    assert (status, "configmaps" in text) == (500, True)
    assert await _status(rig, "/healthz") == (200, "ok")
    rig.wires["everybody"].before = lambda _: None
    await stage.clock.sleep(60)
    assert await _status(rig, "/readyz") == (200, "ok")
    await rig.stop()


@staged
async def test_a_manager_is_not_ready_before_its_controllers_have_started(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(secrets)
    await rig.start(0)
    for _ in range(20):
        status, _text = await _status(rig, "/readyz")
        assert status == 500 or secrets.has_synced
        await stage.clock.sleep(0)
    await stage.clock.sleep(5)
    assert await _status(rig, "/readyz/caches") == (200, "ok")
    await rig.stop()


@staged
async def test_readiness_does_not_wait_for_an_optional_kind_that_does_not_exist(stage: ElectionStage) -> None:
    rig = Rig(stage)
    widgets = Unstructured.of("example.dev/v1", "Widget")
    rig.manager.add(Builder("maybe").watch_for(widgets, optional=True).complete(lambda request: None))
    await rig.start(30)
    assert await _status(rig, "/readyz") == (200, "ok")
    await rig.stop()


@staged
async def test_a_replica_that_does_not_lead_is_ready(stage: ElectionStage) -> None:
    leader, standby = Rig(stage, leader_election="shop"), Rig(stage, leader_election="shop")
    await leader.start(60)
    assert leader.manager.is_leader

    @controller(Secret, name="waiting")
    async def waiting(secret: Secret, ctx: Context) -> None: ...

    standby.manager.add(waiting)
    await standby.start(5)
    assert not standby.manager.is_leader
    assert await _status(standby, "/readyz") == (200, "ok")
    await standby.stop()
    await leader.stop()


class Converting:
    """A webhook server that converts objects."""

    name = "hooks"
    needs_leader_election = False
    definitions = ("widgets.example.dev",)

    async def check(self) -> None: ...

    async def run(self, dependencies: object) -> None: ...


@staged
async def test_readiness_does_not_wait_for_caches_that_need_conversion(stage: ElectionStage) -> None:
    rig = Rig(stage)
    rig.manager.add(Converting())
    await rig.start(1)
    assert (await _status(rig, "/readyz/caches"))[0] == 404
    assert await _status(rig, "/readyz") == (200, "ok")
    await rig.stop()
