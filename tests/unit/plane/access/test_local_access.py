"""Components in other processes: HTTP over a Unix socket, with the identity of each component."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ostinato.api.errors import Forbidden, Unauthorized
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.http import unix_sockets
from ostinato.kinds.authentication_v1 import SelfSubjectReview
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager import Purpose
from ostinato.plane.access import identities
from ostinato.plane.access.local_access import LocalAccess
from ostinato.plane.access.local_sockets import apiserver_socket, identify
from ostinato.plane.processes.server_process import ServerProcess
from ostinato.server.standalone import Settings
from ostinato.world import World

Play = Callable[[LocalAccess, World], Awaitable[None]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / ("long" * 30)  # the address of a Unix socket has 108 bytes


@pytest.fixture
def served(state: Path) -> Callable[[Play], None]:
    """Run a coroutine beside a server that other processes can connect to."""

    async def main(play: Play) -> None:
        world = World.real()
        server = ServerProcess(world, Settings(state=state, port=0, store="memory"))
        await server.start()
        access = LocalAccess(world, state)
        try:
            await play(access, world)
        finally:
            await access.close()
            await server.stop()
            world.executor.close()

    return lambda play: asyncio.run(main(play))


def client(access: LocalAccess, world: World, identity: str = "") -> Client:
    return Client(access.connect(Purpose(identity=identity)), world=world, namespace="default")


def test_a_component_has_its_identity_and_groups(served: Callable[[Play], None]) -> None:
    account, everyone = identities.user_of_runnable("job-controller"), "system:authenticated"
    expected = {
        "": ("system:kube-controller-manager", [everyone]),
        "system:node:node-7": ("system:node:node-7", [everyone, "system:nodes"]),
        account: (account, [everyone, "system:serviceaccounts", "system:serviceaccounts:kube-system"]),
    }

    async def play(access: LocalAccess, world: World) -> None:
        for identity, user in expected.items():
            found = (await client(access, world, identity).create(SelfSubjectReview())).status.user_info
            assert (found.username, sorted(found.groups)) == user

    served(play)


def test_there_is_no_other_identity(served: Callable[[Play], None]) -> None:
    account = "system:serviceaccount:kube-system:admin"

    async def play(access: LocalAccess, world: World) -> None:
        for identity in ("kubernetes-admin", "system:masters", "system:node:", account, "system:admin"):
            with pytest.raises(Unauthorized):
                await client(access, world, identity).list(Namespace)

    served(play)


def test_the_rights_are_those_of_the_identity(served: Callable[[Play], None]) -> None:
    async def play(access: LocalAccess, world: World) -> None:
        for identity in ("system:node:node-7", identities.SCHEDULER):
            with pytest.raises(Forbidden, match=identity):
                await client(access, world, identity).create(ConfigMap(metadata=ObjectMeta(name="a")))

    served(play)


def test_only_the_owner_can_open_the_socket(served: Callable[[Play], None], state: Path) -> None:
    async def play(_access: LocalAccess, _world: World) -> None:
        assert stat.S_IMODE(os.stat(apiserver_socket(state)).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(state).st_mode) == 0o700

    served(play)


def test_connections_of_other_users_are_closed(
    served: Callable[[Play], None], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(access: LocalAccess, world: World) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, "geteuid", lambda: 12345)
            with pytest.raises(PermissionError, match="another user"):
                unix_sockets.connect(apiserver_socket(state))
        asked = iter([True, False])  # by the client, then by the server
        monkeypatch.setattr(unix_sockets, "is_own", lambda _: next(asked, False))
        with pytest.raises(TransportError):
            await client(access, world).list(Namespace)

    served(play)


def test_identities_are_derived_as_for_certificates() -> None:
    peer = identify("system:node:a")
    assert (peer.name, peer.groups, peer.fault) == ("system:node:a", ("system:nodes",), "")
    assert identify("x").fault
