"""Token Secrets: filled, tracked, invalidated and deleted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.core_v1 import (
    Container,
    EnvFromSource,
    ObjectReference,
    Pod,
    PodSpec,
    Secret,
    SecretEnvSource,
    ServiceAccount,
)
from ostinato.manager import ClientOptions, Manager, ReportingOptions
from ostinato.plane.controllers import FIELD_MANAGER, Options
from ostinato.plane.controllers.accounts import legacy_token_cleaner
from ostinato.plane.controllers.accounts import token_secrets as account_secrets
from ostinato.server.access.authentication.identity import RefusedToken
from ostinato.server.access.authentication.settings import AuthenticationSettings, ServiceAccountSettings
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Limits, Simulation

LAST_USED, INVALID = "kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"


class Scene:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.world = server.world
        self.client = Client(InProcessTransport(server), world=server.world, namespace="default")

    async def secret(self, name: str = "t") -> Secret:
        return await self.client.get(Secret, name)

    async def create(self, name: str = "t", account: str = "robot") -> Secret:
        annotations = {"kubernetes.io/service-account.name": account}
        metadata = ObjectMeta(name=name, namespace="default", annotations=annotations)
        await self.client.create(Secret(metadata=metadata, type="kubernetes.io/service-account-token"))
        await self.world.clock.sleep(5)
        return await self.secret(name)

    async def whose(self, secret: Secret) -> str:
        authenticator = self.server.authenticator
        found = await authenticator.authenticate_token(secret.data["token"].decode(), authenticator.audiences)
        await self.world.clock.sleep(1)  # usage tracking
        return found.user.name


def on(directory: Path, play: Any) -> None:
    simulation = Simulation(seed=1, limits=Limits(time=60 * 86_400.0))

    async def main() -> None:
        key = directory / "sa.key"
        settings = AuthenticationSettings(accounts=ServiceAccountSettings(generated_key=key))
        server = Server(simulation, MemoryLog(), authentication=settings)
        await server.start(tracks_tokens=True)
        scene = Scene(server)
        for name in ("default", "robot"):
            await scene.client.create(ServiceAccount(metadata=ObjectMeta(name=name)))
        manager = Manager(
            connect=lambda _: InProcessTransport(server),
            client=ClientOptions(field_manager=FIELD_MANAGER),
            reporting=ReportingOptions(core_events=True),
            world=simulation,
        )
        options = Options(account_key=key)
        account_secrets.add_to(manager, options)
        legacy_token_cleaner.add_to(manager, options)
        serving = asyncio.get_running_loop().create_task(manager.serve())
        await simulation.clock.sleep(1)
        await play(scene)
        manager.stop()
        await serving
        await server.close()

    simulation.run(main())


def test_a_secret_gets_a_token_of_its_account_and_its_use_is_tracked(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        secret = await scene.create()
        account = await scene.client.get(ServiceAccount, "robot")
        assert secret.metadata.annotations["kubernetes.io/service-account.uid"] == account.metadata.uid
        assert secret.data["namespace"] == b"default"
        assert LAST_USED not in secret.metadata.labels
        assert await scene.whose(secret) == "system:serviceaccount:default:robot"
        assert (await scene.secret()).metadata.labels[LAST_USED] == scene.world.clock.now().date().isoformat()
        await scene.world.clock.sleep(2 * 86_400)
        await scene.whose(secret)
        assert (await scene.secret()).metadata.labels[LAST_USED] == scene.world.clock.now().date().isoformat()

    on(tmp_path, play)


def test_a_token_is_rejected_without_its_secret_its_data_or_its_account(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        secret = await scene.create()
        other = await scene.create("other")
        change = {"data": {"token": "AAAA"}}
        await scene.client.patch(Secret, "other", MergePatch(change))
        with pytest.raises(RefusedToken, match="Token does not match server's copy"):
            await scene.whose(other)
        await scene.client.delete(Secret, "t")
        with pytest.raises(RefusedToken, match="Token has been invalidated"):
            await scene.whose(secret)
        third = await scene.create("third")
        await scene.client.delete(ServiceAccount, "robot")
        with pytest.raises(RefusedToken, match='serviceaccounts "robot" not found'):
            await scene.whose(third)
        await scene.world.clock.sleep(5)
        assert await scene.client.list(Secret, namespace="default") == []

    on(tmp_path, play)


def test_an_unused_generated_token_is_invalidated_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_token_cleaner, "_CLEANUP_PERIOD", timedelta(days=3))

    async def play(scene: Scene) -> None:
        secret, manual = await scene.create(), await scene.create("manual")
        listed = [ObjectReference(name="t"), ObjectReference(name="mounted")]
        account = await scene.client.get(ServiceAccount, "robot")
        account.secrets = listed
        await scene.client.update(account)
        await scene.create("mounted")
        mounted = EnvFromSource(secret_ref=SecretEnvSource(name="mounted"))
        spec = PodSpec(containers=[Container(name="c", image="i", env_from=[mounted])])
        await scene.client.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
        await scene.world.clock.sleep(6 * 86_400)
        found = await scene.secret()
        assert found.metadata.labels[INVALID]
        with pytest.raises(RefusedToken, match="has been marked invalid"):
            await scene.whose(secret)
        assert await scene.whose(manual)
        assert INVALID not in (await scene.secret("mounted")).metadata.labels
        # The token is used again.
        await scene.client.patch(Secret, "t", MergePatch({"metadata": {"labels": {INVALID: None}}}))
        assert await scene.whose(secret)
        await scene.world.clock.sleep(12 * 86_400)
        assert await scene.client.get(Secret, "t", missing=None) is None
        assert [each.name for each in (await scene.client.get(ServiceAccount, "robot")).secrets] == ["mounted"]

    on(tmp_path, play)
