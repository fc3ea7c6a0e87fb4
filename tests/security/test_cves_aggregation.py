"""Attacks by, and through, extension API servers that an administrator has registered."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ostinato.server.access.authority import Authority
from ostinato.world import World
from tests.stage.extension_api import API_SERVICES, BASE, GROUP, TOKEN, extension_api
from tests.stage.extension_server import Received, json_answer, response

SMUGGLED = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
WEBSOCKET = {"Upgrade": "websocket"}


def test_cve_2022_3172_an_aggregated_server_that_redirects(tmp_path: Path) -> None:
    """A compromised extension server sends clients elsewhere, where they would show their credentials: an error."""

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            for status in (300, 301, 302, 303, 304, 307, 308):
                place = ("Location", "https://192.0.2.77/steals")
                api.backend.answers[f"{BASE}/things"] = response(status, b"", "text/plain", place)
                answer = await api.client.ask("GET", f"{BASE}/things")
                assert answer.status == 502, status
                assert "location" not in answer.headers
                assert b"192.0.2.77" not in answer.body
            for request in api.backend.received:
                assert not request.values("authorization")
                assert TOKEN not in str(request)

    asyncio.run(attack())


REFUSALS = [
    response(403, b"no", "text/plain"),
    response(200, b"ok", "text/plain"),
    response(302, b"", "text/plain", ("Location", "https://192.0.2.77/")),
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
]


def test_cve_2018_1002105_and_cve_2020_8559_a_failed_upgrade_leaves_no_tunnel(tmp_path: Path) -> None:
    """The extension server refuses an upgrade: what the client sends next does not reach it, and nothing leads on."""
    late: list[bytes] = []
    left = [*REFUSALS]

    async def refuse(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0))
        await writer.drain()
        late.append(await reader.read(1000))

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            api.backend.answers[f"{BASE}/things"] = refuse
            for refusal in REFUSALS:
                received = await api.client.upgrade(f"{BASE}/things", WEBSOCKET, SMUGGLED)
                assert received.startswith((b"HTTP/1.1 403", b"HTTP/1.1 503")), refusal
                assert b"192.0.2.77" not in received
            assert len(api.backend.requests(f"{BASE}/things")) == len(REFUSALS)
        assert late == [b""] * len(REFUSALS)

    asyncio.run(attack())


def test_headers_of_a_client_cannot_change_the_identity(tmp_path: Path) -> None:
    """A client adds the headers of a front proxy, in any spelling, or has them dropped as hop-by-hop headers."""

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            api.backend.answers[f"{BASE}/things"] = json_answer({})
            forged = {"X-Remote-User": "root", "x_remote_user": "root", "X-REMOTE-GROUP": "system:masters"}
            forged |= {"X-Remote-Extra-Scopes": "all", "X-Remote-Uid": "0", "X-Remote-Anything": "x"}
            forged |= {"Connection": "close, X-Remote-User, X-Remote-Group, X-Remote-Uid"}
            forged |= {"Impersonate-User": "eve", "Impersonate-Group": "system:masters"}
            answer = await api.client.ask("GET", f"{BASE}/things", headers=forged)
            assert answer.status == 200
            [request] = api.backend.requests(f"{BASE}/things")
            named = [each for each in request.headers if each[0].replace("_", "-").startswith(("x-remote", "imperson"))]
            assert sorted(named) == [
                ("x-remote-group", "system:authenticated"),
                ("x-remote-group", "system:masters"),
                ("x-remote-user", "eve"),
            ]
            assert request.certificate == "front-proxy-client"

    asyncio.run(attack())


def test_a_user_name_with_line_breaks_names_no_one_else(tmp_path: Path) -> None:
    """A certificate's common name holds a second header: it must not arrive as one."""

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            api.backend.answers[f"{BASE}/things"] = json_answer({})
            acting = {"Impersonate-User": "eve%0d%0aX-Remote-Group: system:masters"}
            await api.client.ask("GET", f"{BASE}/things", headers=acting)
            world = World.real(workers=1)
            name = "eve\r\nX-Remote-Group: system:masters"
            pair = Authority(world, tmp_path / "state").client("eve", name, ["system:masters"])
            world.executor.close()
            status = await api.client.ask_with_certificate("GET", f"{BASE}/things", pair.certificate, pair.key)
            assert status == 503
            for request in api.backend.requests(f"{BASE}/things"):
                assert request.values("x-remote-group") == ["system:authenticated"] or not request.values(
                    "x-remote-user"
                )

    asyncio.run(attack())


def test_an_extension_server_at_an_address_of_this_machine_is_not_asked(tmp_path: Path) -> None:
    """Whoever may write Services has the server connect, with its certificate, to itself or to a metadata server."""

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            own = int(api.server.url.rpartition(":")[2])
            places = [("127.0.0.1", 0), ("localhost", 0), ("169.254.169.254", 0), ("0.0.0.0", 0), ("127.1", 0)]
            for host, port in [*places, (api.backend.host, own)]:
                spec = {"type": "ExternalName", "externalName": host}
                spec |= dict.fromkeys(("clusterIP", "clusterIPs", "ports", "ipFamilies", "ipFamilyPolicy"))
                changed = await api.client.ask("PATCH", "/api/v1/namespaces/default/services/things", {"spec": spec})
                assert changed.status == 200, changed.body
                service = {"namespace": "default", "name": "things", "port": port or api.backend.port}
                await api.client.ask("PATCH", f"{API_SERVICES}/v1.{GROUP}", {"spec": {"service": service}})
                await api.condition("FailedDiscoveryCheck")
                before = len(api.backend.received)
                assert (await api.client.ask("GET", f"{BASE}/things")).status == 503
                assert len(api.backend.received) == before

    asyncio.run(attack())


AMBIGUOUS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-A: b\r\n Folded: c\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nSet Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 999999 OK\r\n\r\n",
    b"\x16\x03\x01 nonsense\r\n\r\n",
]


def test_a_response_that_can_be_read_in_two_ways_is_refused(tmp_path: Path) -> None:
    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            for head in AMBIGUOUS:
                api.backend.answers[f"{BASE}/things"] = head
                answer = await api.client.ask("GET", f"{BASE}/things")
                assert answer.status == 503, head
                assert answer.body.startswith(b"error trying to reach service: net/http: HTTP/1.x")

    asyncio.run(attack())


PATHS = [
    f"{BASE}/namespaces/mine/things/../../../api/v1/secrets",
    f"{BASE}/namespaces/mine%2F..%2Fother/things",
    f"/apis/{GROUP}//v1/things",
    f"//apis/{GROUP}/v1/things",
    f"/apis/{GROUP}/v1%2Fnamespaces%2Fother/things",
]


def test_what_is_forwarded_is_what_was_authorized(tmp_path: Path) -> None:
    """A user with rights in one namespace spells a path so that authorization and extension server read two."""

    async def attack() -> None:
        async with extension_api(tmp_path) as api:
            rules = [{"apiGroups": [GROUP], "resources": ["things"], "verbs": ["*"]}]
            access = "/apis/rbac.authorization.k8s.io/v1/namespaces/mine"
            await api.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
            await api.client.ask("POST", f"{access}/roles", {"metadata": {"name": "r"}, "rules": rules})
            subjects = [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]
            reference = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
            binding = {"metadata": {"name": "r"}, "subjects": subjects, "roleRef": reference}
            await api.client.ask("POST", f"{access}/rolebindings", binding)
            own = await api.client.ask("GET", f"{BASE}/namespaces/mine/things", headers={"Impersonate-User": "eve"})
            assert own.status == 404  # the extension server's
            for path in PATHS:
                before = len(api.backend.received)
                answer = await api.client.ask("GET", path, headers={"Impersonate-User": "eve"})
                asked = [each.path for each in api.backend.received[before:] if each.values("x-remote-user") == ["eve"]]
                assert answer.status in (403, 404), path
                for each in asked:  # what follows the namespace that was authorized is its own affair
                    assert each.startswith(f"{BASE}/namespaces/mine/things")

    asyncio.run(attack())
