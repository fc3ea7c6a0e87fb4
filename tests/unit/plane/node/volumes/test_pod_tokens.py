"""Tokens of Pods: bound to their Pod, renewed in time, rejected after its deletion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.stage.server import started_server

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.kinds.core_v1 import (
    Container,
    Node,
    Pod,
    PodSpec,
    ServiceAccount,
    ServiceAccountTokenProjection,
)
from ostinato.plane.node.volumes.contents import ContentError
from ostinato.plane.node.volumes.tokens import PodTokens
from ostinato.server.access.authentication.identity import Identity, RefusedToken
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Limits, Simulation

ASKED = ServiceAccountTokenProjection(path="token", expiration_seconds=3600)
ADDED = ServiceAccountTokenProjection(path="token", expiration_seconds=3607)  # as admission adds it


class Scene:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.world = server.world
        self.client = Client(InProcessTransport(server), world=server.world, namespace="default")
        self.tokens = PodTokens(self.client, server.world)

    async def pod(self) -> Pod:
        spec = PodSpec(service_account_name="robot", node_name="n1", containers=[Container(name="c", image="i")])
        return await self.client.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))

    async def whose(self, token: str) -> Identity:
        return await self.server.authenticator.authenticate_token(token, self.server.authenticator.audiences)


def on(play: Callable[[Scene], Awaitable[None]]) -> None:
    simulation = Simulation(seed=1, limits=Limits(time=10 * 86_400.0))

    async def main() -> None:
        async with started_server(simulation) as server:
            scene = Scene(server)
            for kind, name in ((ServiceAccount, "robot"), (Node, "n1")):
                await scene.client.create(kind(metadata=ObjectMeta(name=name)))
            await play(scene)

    simulation.run(main())


def claims(token: str) -> dict[str, Any]:
    return jwt.parse(token).claims


def test_a_pods_token_is_bound_to_its_pod_and_refused_after_its_deletion() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        node = await scene.client.get(Node, "n1")
        token = await scene.tokens.get(pod, ADDED)
        said = claims(token)
        account = await scene.client.get(ServiceAccount, "robot")
        assert said["kubernetes.io"] == {
            "namespace": "default",
            "node": {"name": "n1", "uid": node.metadata.uid},
            "pod": {"name": "p", "uid": pod.metadata.uid},
            "serviceaccount": {"name": "robot", "uid": account.metadata.uid},
            "warnafter": said["iat"] + 3607,
        }
        assert said["exp"] - said["iat"] == 365 * 24 * 3600
        found = await scene.whose(token)
        prefix = "authentication.kubernetes.io/"
        assert found.user.extra == {
            f"{prefix}credential-id": (f"JTI={said['jti']}",),
            f"{prefix}node-name": ("n1",),
            f"{prefix}node-uid": (node.metadata.uid,),
            f"{prefix}pod-name": ("p",),
            f"{prefix}pod-uid": (pod.metadata.uid,),
        }
        await scene.client.delete(Node, "n1")
        assert await scene.whose(token)  # the Pod goes with its node, in time; kube-apiserver waits for that, too
        await scene.client.delete(pod, grace_period=0)
        with pytest.raises(RefusedToken, match="service account token has been invalidated"):
            await scene.whose(token)
        again = await scene.pod()
        with pytest.raises(RefusedToken, match=rf"pod UID \({again.metadata.uid}\) does not match"):
            await scene.whose(token)

    on(play)


def test_a_terminating_pod_may_use_its_token_for_a_minute_more() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        token = await scene.tokens.get(pod, ASKED)
        await scene.client.delete(pod, grace_period=30)
        await scene.world.clock.sleep(89)
        assert await scene.whose(token)
        await scene.world.clock.sleep(3)
        with pytest.raises(RefusedToken, match="service account token has been invalidated"):
            await scene.whose(token)

    on(play)


def test_a_token_is_renewed_after_80_percent_of_its_lifetime() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        first = await scene.tokens.get(pod, ASKED)
        await scene.world.clock.sleep(0.8 * 3600 - 5)
        assert await scene.tokens.get(pod, ASKED) == first
        await scene.world.clock.sleep(10)
        second = await scene.tokens.get(pod, ASKED)
        assert second != first
        assert claims(second)["exp"] > claims(first)["exp"]

    on(play)


def test_a_long_token_is_renewed_every_day() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        asked = msgspec.structs.replace(ASKED, expiration_seconds=30 * 86_400)
        first = await scene.tokens.get(pod, asked)
        await scene.world.clock.sleep(86_401)
        assert await scene.tokens.get(pod, asked) != first

    on(play)


def test_the_old_token_is_used_while_its_renewal_fails() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        first = await scene.tokens.get(pod, ASKED)
        await scene.client.delete(ServiceAccount, "robot")
        await scene.world.clock.sleep(3000)
        assert await scene.tokens.get(pod, ASKED) == first
        await scene.world.clock.sleep(601)
        with pytest.raises(ContentError, match='failed to fetch token: serviceaccounts "robot" not found'):
            await scene.tokens.get(pod, ASKED)

    on(play)


def test_a_pod_that_was_replaced_gets_no_token() -> None:
    async def play(scene: Scene) -> None:
        pod = await scene.pod()
        await scene.client.delete(pod, grace_period=0)
        await scene.pod()
        with pytest.raises(ContentError, match="the UID in the bound object reference"):
            await scene.tokens.get(pod, ASKED)

    on(play)
