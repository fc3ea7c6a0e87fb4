"""Roles limit what clients may do, whoever decides it: ours over HTTP, or another server with --cluster KUBECONFIG."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato.api.errors import APIError, Forbidden
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.client.config.config import Impersonation, Tls
from ostinato.client.config.secret import Secret
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request
from ostinato.kinds.authentication_v1 import SelfSubjectReview
from ostinato.kinds.authorization_v1 import (
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)
from ostinato.kinds.core_v1 import ConfigMap, ServiceAccount
from ostinato.kinds.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from ostinato.world import World

GROUP = "rbac.authorization.k8s.io"
READ = PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list"])


async def eventually(ask: Callable[[], Awaitable[Any]]) -> None:
    """Wait for what an API server does in its own time: it may take a moment until a role counts."""
    async with asyncio.timeout(30):
        while True:
            try:
                await ask()
            except APIError:
                await asyncio.sleep(0.1)
            else:
                return


async def grant(client: Client, rule: PolicyRule, subject: Subject) -> None:
    await client.create(Role(metadata=ObjectMeta(name="some"), rules=[rule]))
    reference = RoleRef(api_group=GROUP, kind="Role", name="some")
    await client.create(RoleBinding(metadata=ObjectMeta(name="some"), role_ref=reference, subjects=[subject]))


async def token_of(config: Config, account: str) -> str:
    transport = HttpTransport(config, World.real())
    path = f"/api/v1/namespaces/{config.namespace}/serviceaccounts/{account}/token"
    headers = [("Content-Type", "application/json")]
    answer = await transport.request(Request("POST", path, headers=headers, body=b'{"spec":{}}'))
    token: str = msgspec.json.decode(await answer.read())["status"]["token"]
    await transport.close()
    return token


def test_a_service_account_has_the_permissions_of_its_role(kubeconfig: Path, namespace: str) -> None:
    async def play() -> None:
        config = Config.load(path=kubeconfig, namespace=namespace)
        async with Client.connect(config) as client:
            await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
            token = Secret(await token_of(config, "robot"))
            tls = Tls(ca_data=config.tls.ca_data, ca_file=config.tls.ca_file)
            async with Client.connect(replace(config, tls=tls, token=token)) as robot:
                user = f'User "system:serviceaccount:{namespace}:robot"'
                with pytest.raises(Forbidden, match=f'{user} cannot list resource "configmaps" in API group ""'):
                    await robot.list(ConfigMap, namespace=namespace)
                await grant(client, READ, Subject(kind="ServiceAccount", name="robot"))
                await eventually(lambda: robot.list(ConfigMap, namespace=namespace))
                with pytest.raises(Forbidden, match='cannot create resource "configmaps"'):
                    await robot.create(ConfigMap(metadata=ObjectMeta(name="a")))
                with pytest.raises(Forbidden, match="at the cluster scope"):
                    await robot.list(ConfigMap)
                where = ResourceAttributes(namespace=namespace, verb="get", resource="configmaps")
                spec = SelfSubjectAccessReviewSpec(resource_attributes=where)
                assert (await robot.create(SelfSubjectAccessReview(spec=spec))).status.allowed

    asyncio.run(play())


def test_an_administrator_can_impersonate_users(kubeconfig: Path, namespace: str) -> None:
    async def play() -> None:
        config = Config.load(path=kubeconfig, namespace=namespace)
        jane = Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"acme.com/scopes": ("view", "edit")})
        async with Client.connect(config) as client, Client.connect(replace(config, impersonate=jane)) as other:
            told = (await other.create(SelfSubjectReview())).status.user_info
            assert told is not None
            assert (told.username, told.uid, told.groups) == ("jane", "7", ["a", "b", "system:authenticated"])
            assert told.extra == {"acme.com/scopes": ["view", "edit"]}
            with pytest.raises(Forbidden, match='User "jane" cannot list resource "configmaps"'):
                await other.list(ConfigMap, namespace=namespace)
            await grant(client, READ, Subject(kind="Group", name="b", api_group=GROUP))
            await eventually(lambda: other.list(ConfigMap, namespace=namespace))

    asyncio.run(play())
