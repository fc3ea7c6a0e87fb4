"""Users, tokens and certificates."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.etcd_cluster import PASSWORD, Authority, EtcdCluster
from tests.unit.etcd.test_client import play

from ostinato.etcd import EtcdClient, EtcdSettings, PermissionDenied, TlsError, Unauthenticated, Unavailable
from ostinato.world import World


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd"), auth=True, arguments=["--auth-token-ttl", "1"]) as cluster:
        cluster.etcdctl("user", "add", "reader:secret")
        cluster.etcdctl("role", "add", "reader")
        cluster.etcdctl("role", "grant-permission", "reader", "read", "/open/", "/open0")
        cluster.etcdctl("user", "grant-role", "reader", "reader")
        yield cluster


@pytest.fixture(scope="module")
def with_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster.start(tmp_path_factory.mktemp("etcd"), tls=True) as cluster:
        yield cluster


def as_user(settings: EtcdSettings, scene: Callable[[EtcdClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with EtcdClient(settings, World.real()) as etcd:
            await scene(etcd)

    asyncio.run(run())


def test_an_expired_token_is_replaced(with_users: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        async with etcd.watch_stream() as stream:
            watch = stream.watch(b"/open/a")
            await watch.created()
            tokens = set()
            for number in range(3):
                await asyncio.gather(*(etcd.put(b"/open/a", b"%d" % number) for _ in range(20)))
                tokens.add(etcd._transport._token)
                await asyncio.sleep(2.2 if number == 0 else 0)  # tokens are looked through every second
            assert len(tokens) == 2
            with_users.members[0].kill()  # tokens are in its memory
            with_users.members[0].restart()
            with suppress(Unavailable):  # if it was sent to the one that was killed
                await etcd.put(b"/open/a", b"last", within=30)
            await etcd.put(b"/open/a", b"last", within=30)
            async for batch in watch:
                if batch.events[-1].kv.value == b"last":
                    break

    play(with_users, scene)


def test_a_user_may_do_what_its_roles_allow(with_users: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        await etcd.range(b"/open/a")
        for call in (etcd.range(b"/closed"), etcd.put(b"/open/a", b"")):
            with pytest.raises(PermissionDenied) as refused:
                await call
            assert not refused.value.may_have_happened
        async with etcd.watch_stream() as stream:
            with pytest.raises(PermissionDenied):
                await anext(aiter(stream.watch(b"/closed")))

    as_user(dataclasses.replace(with_users.settings, user="reader", password="secret"), scene)


@pytest.mark.parametrize(
    ("user", "password", "message"),
    [
        ("root", "wrong-password", "user root: etcdserver: authentication failed, invalid user ID or password"),
        ("nobody", PASSWORD, "user nobody: etcdserver: authentication failed, invalid user ID or password"),
        ("", "", "etcdserver: user name is empty"),
    ],
)
def test_wrong_users_are_named_without_their_passwords(
    with_users: EtcdCluster, user: str, password: str, message: str
) -> None:
    async def scene(etcd: EtcdClient) -> None:
        with pytest.raises(Unauthenticated, match=message) as refused:
            await etcd.put(b"/open/a", b"")
        assert not refused.value.may_have_happened
        assert not password or password not in str(refused.value)
        async with etcd.watch_stream() as stream:
            with pytest.raises((Unauthenticated, PermissionDenied)):
                await anext(aiter(stream.watch(b"/open/a")))

    as_user(dataclasses.replace(with_users.settings, user=user, password=password), scene)


def test_a_user_is_not_needed_and_may_be_given(one_member: EtcdCluster) -> None:
    async def scene(etcd: EtcdClient) -> None:
        assert await etcd.revision()

    as_user(dataclasses.replace(one_member.settings, user="root", password="x"), scene)


def test_certificates_that_are_not_accepted_are_explained(with_tls: EtcdCluster, tmp_path: Path) -> None:
    other = Authority.make("other")
    (tmp_path / "ca").write_bytes(other.certificate)
    other.issue("stranger", tmp_path / "cert", tmp_path / "key")
    theirs = with_tls.settings
    cases = {
        "the server's certificate is not accepted: unable to get local issuer certificate; check --etcd-cafile": (
            dataclasses.replace(theirs, cafile=str(tmp_path / "ca"))
        ),
        "the server requires a client certificate; give --etcd-certfile and --etcd-keyfile": dataclasses.replace(
            theirs, certfile="", keyfile=""
        ),
        f"the server does not accept the client certificate {tmp_path}/cert; check": dataclasses.replace(
            theirs, certfile=str(tmp_path / "cert"), keyfile=str(tmp_path / "key")
        ),
    }
    for message, settings in cases.items():

        async def scene(etcd: EtcdClient, message: str = message) -> None:
            with pytest.raises(TlsError) as refused:
                await etcd.put(b"/a", b"")
            assert message in str(refused.value)
            assert not refused.value.may_have_happened
            async with etcd.watch_stream() as stream:
                with pytest.raises(TlsError):
                    await anext(aiter(stream.watch(b"/a")))

        as_user(settings, scene)


@pytest.mark.parametrize("tls", [True, False])
def test_tls_on_one_side_only_is_explained(with_tls: EtcdCluster, one_member: EtcdCluster, tls: bool) -> None:
    async def scene(etcd: EtcdClient) -> None:
        with pytest.raises(Unavailable, match="server (may|does) not use TLS" if tls else "may require TLS") as refused:
            await etcd.put(b"/a", b"", within=0.5)
        assert not refused.value.may_have_happened

    endpoints = (one_member if tls else with_tls).settings.endpoints
    as_user(dataclasses.replace(with_tls.settings, tls=tls, endpoints=endpoints), scene)


def test_renewed_certificates_are_used_by_the_next_connection(tmp_path: Path) -> None:
    with EtcdCluster.start(tmp_path / "etcd", tls=True) as cluster:
        cert, key = tmp_path / "cert", tmp_path / "key"
        Authority.make("other").issue("stranger", cert, key)
        own = dataclasses.replace(cluster.settings, certfile=str(cert), keyfile=str(key))

        async def scene(etcd: EtcdClient) -> None:
            with pytest.raises(TlsError):
                await etcd.revision()
            assert cluster.cert is not None
            assert cluster.key is not None
            cert.write_bytes(cluster.cert.read_bytes())
            key.write_bytes(b"half written")
            with pytest.raises(TlsError):
                await etcd.revision()
            key.write_bytes(cluster.key.read_bytes())
            assert await etcd.revision()

        as_user(own, scene)
