"""Tokens of Pods are bound to their Pod: an earlier defect, reproduced as a former user of the Pod."""

from __future__ import annotations

from pathlib import Path

from tests.stage.server import started_server

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.kinds.core_v1 import Container, Pod, PodSpec, ServiceAccount, ServiceAccountTokenProjection
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Request
from ostinato.world import Simulation


def test_pod_tokens_are_bound_to_their_pod(tmp_path: Path) -> None:
    simulation = Simulation(seed=1)

    async def main() -> None:
        async with started_server(simulation) as server:
            client = Client(InProcessTransport(server), world=simulation, namespace="default")
            await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
            spec = PodSpec(service_account_name="robot", containers=[Container(name="c", image="i")])
            pod = await client.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
            objects = ObjectReader(client, simulation)
            asked = ServiceAccountTokenProjection(path="token", expiration_seconds=3607)
            token = await objects.token(pod, asked)

            async def code() -> int:
                headers = {"authorization": f"Bearer {token}"}
                return (await server.handle(Request("GET", "/api", "", headers))).status

            assert await code() == 200
            await client.delete(pod, grace_period=0)
            assert await code() == 401

    simulation.run(main())
