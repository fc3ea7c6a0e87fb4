"""A standalone server in this process, over TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.stage.server import standalone_server

from ostinato.client.config.tls import ResumingContext
from ostinato.client.transport.protocol import Request
from ostinato.server.access.authentication.tokens.keys import make_private_key
from ostinato.server.access.authority import Authority
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.state import StateDirectory, StateError
from ostinato.server.store.records import StoreFailed, UnusableStore
from ostinato.world import World
from ostinato.world.clock import RealClock


def play(path: Path, script: Callable[[Standalone], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        async with standalone_server(path, **{"store": "", **settings}) as server:
            await script(server)

    asyncio.run(main())


def client(path: Path, pair: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=path / "ca.crt")
    if pair:
        context.load_cert_chain(path / f"{pair}.crt", path / f"{pair}.key")
    return context


async def get(server: Standalone, target: str, context: ssl.SSLContext) -> tuple[int, bytes]:
    host, _, port = server.url.removeprefix("https://").rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("store", ["memory", ""])
def test_the_administrators_certificate_opens_everything_and_none_opens_health(tmp_path: Path, store: str) -> None:
    async def script(server: Standalone) -> None:
        status, body = await get(server, "/api/v1/namespaces/default", client(tmp_path, "admin"))
        assert (status, json.loads(body)["kind"]) == (200, "Namespace")
        assert (await get(server, "/api/v1/namespaces", client(tmp_path)))[0] == 403
        assert (await get(server, "/readyz", client(tmp_path)))[0] == 200

    play(tmp_path, script, store=store)


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        other = tmp_path / "other"
        other.mkdir()
        Authority(World.real(workers=1), other).client("admin", "kubernetes-admin", ["system:masters"])
        context = ssl.create_default_context(cafile=tmp_path / "ca.crt")
        context.load_cert_chain(other / "admin.crt", other / "admin.key")
        status, body = await get(server, "/readyz", context)
        assert (status, json.loads(body)["reason"]) == (401, "Unauthorized")

    play(tmp_path, script, store="memory")


def test_a_server_whose_durable_write_cannot_be_applied_fails_and_has_it_after_a_restart(tmp_path: Path) -> None:
    async def break_it(server: Standalone) -> None:
        assert server.core is not None
        path = "/api/v1/namespaces/default/configmaps"
        body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).encode()

        def raise_key_error(event: object) -> None:
            raise KeyError

        server.core.index.collections["configmaps"].apply = raise_key_error  # type: ignore[method-assign]
        async with await InProcessTransport(server.core).request(Request("POST", path, body=body)) as response:
            assert response.status >= 500
            assert b"internal error: KeyError" in await response.read()
        with pytest.raises(StoreFailed, match="the store is unusable"):
            await server.failed()
        assert (await get(server, "/readyz", client(tmp_path, "admin")))[0] == 500

    async def look(server: Standalone) -> None:
        status, _ = await get(server, "/api/v1/namespaces/default/configmaps/a", client(tmp_path, "admin"))
        assert status == 200

    play(tmp_path, break_it)
    play(tmp_path, look)


def test_a_session_can_be_gone_on_with_and_is_still_that_of_the_same_user(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(tmp_path / "ca.crt")
        context.load_cert_chain(tmp_path / "admin.crt", tmp_path / "admin.key")
        host, _, port = server.url.removeprefix("https://").rpartition(":")
        resumed = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.write(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 200 ")
            tls = writer.get_extra_info("ssl_object")
            resumed.append(tls.session_reused)
            context.remember(tls)
            writer.close()
        assert resumed == [False, True, True]

    play(tmp_path, script, store="memory")


def test_the_servers_certificate_cannot_be_used_as_a_clients(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        assert (await get(server, "/readyz", client(tmp_path, "apiserver")))[0] == 401

    play(tmp_path, script, store="memory")


@pytest.mark.parametrize(("host", "shown"), [("localhost", "localhost"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")])
def test_the_kubeconfig_names_an_address_that_can_be_reached(tmp_path: Path, host: str, shown: str) -> None:
    async def script(server: Standalone) -> None:
        config = yaml.safe_load(server.kubeconfig.read_text())
        url = config["clusters"][0]["cluster"]["server"]
        assert url == server.url
        assert url.removeprefix("https://").rpartition(":")[0] == shown
        assert (await get(server, "/readyz", client(tmp_path)))[0] == 200

    try:
        play(tmp_path, script, host=host, store="memory")
    except OSError as error:
        if host == "::1":
            pytest.skip(f"no IPv6 here: {error}")
        raise


def test_a_server_that_cannot_start_leaves_its_directory_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "no-database").write_text("x" * 10_000)

    async def never(server: Standalone) -> None:
        raise AssertionError

    with pytest.raises(UnusableStore):
        play(tmp_path, never, store=f"sqlite:{tmp_path / 'no-database'}")
    StateDirectory(tmp_path).release()


def test_a_write_is_refused_with_503_while_the_disk_is_full_and_reads_go_on(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        from ostinato.server.request import Peer, Request, Response

        assert server.core is not None

        async def post(name: str, size: int) -> Response:
            body = json.dumps({"metadata": {"name": name}, "data": {"k": "x" * size}}).encode()
            request = Request("POST", "/api/v1/namespaces/default/configmaps", body=body)
            request.peer = Peer("admin", ("system:masters",))
            assert server.core is not None
            answer = await server.core.handle(request)
            assert isinstance(answer, Response)
            return answer

        database = server.core.index._log._log._database  # type: ignore[attr-defined]
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages + 2}")
        refused = await post("large", 200_000)
        assert refused.status == 503
        assert json.loads(refused.body)["message"] == "the store cannot write: database or disk is full"
        assert (await get(server, "/api/v1/namespaces/default", client(tmp_path, "admin")))[0] == 200
        for path in ("livez", "readyz", "healthz", "livez/etcd", "readyz/etcd-readiness"):  # as with etcd's NOSPACE
            assert await get(server, f"/{path}", client(tmp_path, "admin")) == (200, b"ok")
        database.execute("PRAGMA max_page_count = 1000000")
        assert (await post("large", 200_000)).status == 201

    play(tmp_path, script)


def test_livez_fails_while_the_store_is_out_of_order(tmp_path: Path) -> None:
    async def script(server: Standalone) -> None:
        assert server.core is not None
        server.core.index.failure = "disk I/O error"
        status, body = await get(server, "/livez", client(tmp_path))
        assert (status, b"[-]etcd failed: reason withheld" in body) == (500, True)

    play(tmp_path, script, store="memory")


class SteppedClock(RealClock):
    """The real time plus a number of days."""

    days = 400.0

    def wall(self) -> float:  # type: ignore[override]
        return RealClock.wall() + self.days * 86_400


@pytest.mark.parametrize("restart", [True, False], ids=["at the next start", "while it runs"])
def test_a_first_start_with_the_clock_400_days_ahead_locks_no_administrator_out(
    tmp_path: Path, restart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL goes by the real time, in which nothing is valid yet that was made then."""
    monkeypatch.setattr("ostinato.server.standalone.RENEWAL_SECONDS", 0.05)

    async def main() -> None:
        clock = SteppedClock()
        real = World.real(workers=1)
        world = World(clock, real.rng, real.ids, real.executor)
        server = Standalone(world, Settings(state=tmp_path, port=0, store="memory"))
        await server.start()
        kubeconfig = server.kubeconfig.read_bytes()
        with pytest.raises(ssl.SSLCertVerificationError, match="not yet valid"):
            await get(server, "/readyz", client(tmp_path))
        clock.days = 0.0
        if restart:
            await server.stop()
            server = Standalone(world, Settings(state=tmp_path, port=0, store="memory"))
            await server.start()
        else:
            async with clock.timeout(20):
                while server.kubeconfig.read_bytes() == kubeconfig:
                    await clock.sleep(0.02)
        assert (await get(server, "/api/v1/namespaces/default", client(tmp_path, "admin")))[0] == 200
        await server.stop()
        world.executor.close()

    asyncio.run(main())


def test_a_renewal_that_fails_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ostinato.server.standalone.RENEWAL_SECONDS", 0.01)
    tries = 0

    def fail(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Standalone, "renew", fail)

    async def script(server: Standalone) -> None:
        clock = RealClock()
        async with clock.timeout(20):
            while tries < 3:
                await clock.sleep(0.01)
        assert (await get(server, "/readyz", client(tmp_path)))[0] == 200

    play(tmp_path, script, store="memory")
    assert "certificate renewal failed" in caplog.text


@pytest.mark.parametrize("how", ["open", "link"])
def test_a_key_of_service_account_tokens_that_others_may_have_is_refused(tmp_path: Path, how: str) -> None:
    async def nothing(server: Standalone) -> None:
        pass

    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    make_private_key(state / "sa.key")
    if how == "open":
        (state / "sa.key").chmod(0o644)
    else:
        (state / "sa.key").rename(tmp_path / "sa.key")
        (state / "sa.key").symlink_to(tmp_path / "sa.key")
    with pytest.raises(StateError, match=r"sa.key (can be read by others|is a symbolic link)"):
        play(state, nothing, store="memory")
