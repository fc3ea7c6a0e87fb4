"""The ported kopf operator: daemon, timer and index, in virtual time."""

from __future__ import annotations

from tests.examples.example_plane import example, running
from tests.stage.server import on_a_server

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.core_v1 import Container, Pod, PodSpec, ServiceAccount
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation

kopf = example("kopf_port")


async def play(world: Simulation, server: Server) -> None:
    add = running(server, lambda manager: manager.add(kopf.ping, kopf.measure, kopf.count), kopf.CACHES)
    user = Client(InProcessTransport(server), world=world, namespace="default", field_manager="user")
    async with user, add:
        await user.create(ServiceAccount(metadata=ObjectMeta(name="default")))
        await user.create(kopf.KopfExample(metadata=ObjectMeta(name="one"), spec=kopf.KopfExampleSpec(seconds=5)))
        for name in ("a", "b"):
            metadata = ObjectMeta(name=name, labels={kopf.LABEL: "one"})
            await user.create(Pod(metadata=metadata, spec=PodSpec(containers=[Container(name="main", image="main")])))
        await user.patch(Pod, "a", MergePatch({"status": {"phase": "Running"}}), subresource="status")

        await world.clock.sleep(9)
        status = (await user.get(kopf.KopfExample, "one")).status
        assert status == kopf.KopfExampleStatus(pings=1, measured=0, running_pods=1), "not idle for ten seconds yet"

        await world.clock.sleep(53)
        status = (await user.get(kopf.KopfExample, "one")).status
        assert (status.pings, status.measured) == (12, 1)
        await world.clock.sleep(20)
        assert (await user.get(kopf.KopfExample, "one")).status.measured == 2, "every minute"

        await user.delete(kopf.KopfExample, "one")
        await world.clock.sleep(60)
        assert await user.get(kopf.KopfExample, "one", missing=None) is None, "nothing holds it"


test_daemon_timer_and_index_do_what_they_do_in_kopf = on_a_server(play)
