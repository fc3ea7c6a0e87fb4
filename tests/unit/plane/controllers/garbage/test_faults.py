"""Jobs, garbage collection and namespace deletion with lost requests, lost responses and controller restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from tests.stage.plane import Stage, on_stage
from tests.unit.plane.controllers.garbage.test_garbage import config, names, owner
from tests.unit.plane.controllers.workloads.job.test_job import GARBAGE, JOBS, job

from ostinato.client import MergePatch
from ostinato.client.transport import protocol
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.kinds.batch_v1 import Job
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Pod
from ostinato.manager import ClientOptions, Manager
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers
from ostinato.world import Rng


class Lossy:
    """Transport that loses every fifth write, or its response."""

    def __init__(self, inner: protocol.Transport, rng: Rng, note: Callable[[], object]) -> None:
        self.host = inner.host
        self.websocket = inner.websocket
        self.close = inner.close
        self._inner = inner
        self._rng = rng
        self._note = note

    async def request(self, request: protocol.Request) -> protocol.Response:
        fate = self._rng.random() if request.method != "GET" and "/events" not in request.path else 1.0
        if fate < 0.2:
            self._note()
        if fate < 0.1:
            raise ConnectionLost("the request was lost")
        answer = await self._inner.request(request)
        if fate < 0.2:
            await answer.read()
            raise ConnectionLost("the answer was lost")
        return answer


class Restarted:
    """Run controllers over a lossy transport and restart them repeatedly."""

    def __init__(self, stage: Stage, seed: int, *controllers: str) -> None:
        self.lost = 0
        self._stage = stage
        self._rng = Rng(seed)
        self._controllers = set(controllers)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            manager = Manager(
                connect=lambda purpose: Lossy(self._stage.connect(purpose), self._rng, self._note),
                client=ClientOptions(field_manager=FIELD_MANAGER),
                graceful_shutdown=0,  # requests in flight are dropped
                world=self._stage.world,
            )
            add_controllers(manager, Options(), without=set(CONTROLLERS) - self._controllers)
            serving = asyncio.get_running_loop().create_task(manager.serve())
            try:
                await self._stage.world.clock.sleep(self._rng.uniform(0.3, 8.0))
            finally:
                manager.stop()
                await asyncio.wait([serving])

    def _note(self) -> None:
        self.lost += 1

    async def end(self) -> None:
        assert self.lost, "that was too easy"
        self._task.cancel()
        await asyncio.wait([self._task])


async def ended(stage: Stage, phases: Sequence[str], rng: Rng) -> None:
    """Simulate nodes: running Pods finish, deleted Pods terminate."""
    for pod in await stage.client.list(Pod):
        if pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None:
            await stage.set_pod_status(pod, phase=rng.choice(phases))


@pytest.mark.parametrize("seed", range(2))
def test_every_pod_of_a_job_is_counted_once_despite_faults(seed: int) -> None:
    async def play(stage: Stage) -> None:
        controllers, rng = Restarted(stage, seed, *JOBS), Rng(seed)
        await stage.client.create(job(completions=60, parallelism=3, backoffLimit=1000))
        made: dict[str, str] = {}

        async def is_complete() -> bool:
            await ended(stage, ("Succeeded",) * 9 + ("Failed",), rng)
            made.update({each.metadata.uid: each.status.phase or "" for each in await stage.client.list(Pod)})
            found = await stage.client.get(Job, "work")
            return any(each.type == "Complete" for each in found.status.conditions)

        await stage.until(is_complete, limit=40_000)
        await stage.world.clock.sleep(60)
        await controllers.end()
        status = (await stage.client.get(Job, "work")).status
        succeeded = sum(phase == "Succeeded" for phase in made.values())
        assert status.succeeded == succeeded >= 60
        assert (status.failed or 0) == sum(phase == "Failed" for phase in made.values())
        assert not any(each.metadata.finalizers for each in await stage.client.list(Pod))

    on_stage(play, seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_only_garbage_is_deleted_despite_faults(seed: int) -> None:
    async def play(stage: Stage) -> None:
        controllers = Restarted(stage, seed, GARBAGE)
        roots = [await stage.client.create(config(f"root{number}")) for number in range(3)]
        for number, root in enumerate(roots):
            for child in range(5):
                made = await stage.client.create(config(f"c{number}-{child}", owner(root, blockOwnerDeletion=True)))
                await stage.client.create(config(f"c{number}-{child}-g", owner(made, blockOwnerDeletion=True)))
        await stage.world.clock.sleep(5)
        await stage.client.delete(ConfigMap, "root0", propagation="Foreground")
        await stage.client.delete(ConfigMap, "root1", propagation="Background")
        await stage.client.delete(ConfigMap, "root2", propagation="Orphan")
        kept = sorted([f"c2-{child}{more}" for child in range(5) for more in ("", "-g")])

        async def is_done() -> bool:
            return await names(stage) == kept

        await stage.until(is_done, limit=4000)
        await stage.world.clock.sleep(20)
        await controllers.end()
        assert await is_done()

    on_stage(play, seed=seed)


def test_namespaces_are_deleted_despite_faults() -> None:
    async def play(stage: Stage) -> None:
        controllers = Restarted(stage, 1, "namespace-controller")
        mine = [f"n{number}" for number in range(5)]
        for name in mine:
            await stage.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            for number in range(5):
                finalizers = ("a.b/hold",) if number == 0 else ()
                await stage.client.create(config(f"c{number}", namespace=name, finalizers=finalizers))
            await stage.client.delete(Namespace, name)

        async def are_gone() -> bool:
            for each in await stage.client.list(ConfigMap):
                if stage.world.rng.random() < 0.02:
                    await stage.client.patch(ConfigMap, each.metadata, MergePatch({"metadata": {"finalizers": None}}))
            return not {each.metadata.name for each in await stage.client.list(Namespace)} & set(mine)

        await stage.until(are_gone, limit=2000)
        await controllers.end()
        assert not {each.metadata.namespace for each in await stage.client.list(ConfigMap)} & set(mine)

    on_stage(play)
