"""Front proxies: those with a certificate of their own authority name users in headers; nobody else does.

The answers are those that kube-apiserver was seen to give with the same certificates and headers.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    RequestHeaderSettings,
)
from ostinato.server.access.authority import Authority, Pair
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
Headers = list[tuple[str, str]]


class Scene:
    """A server, the authority of its proxies, and a client without a kept connection."""

    def __init__(self, directory: Path) -> None:
        self.world = World.real(workers=1)
        self.state = directory / "state"
        (directory / "proxies").mkdir()
        self.proxies = Authority(self.world, directory / "proxies")
        self.token_file = directory / "tokens.csv"
        self.token_file.write_text("secret,admin,u-1,system:masters\n")
        proxy = RequestHeaderSettings(
            authority=self.proxies.files.certificate,
            allowed_names=("proxy",),
            uid_headers=("X-Remote-Uid",),
            username_headers=("X-Remote-User",),
            group_headers=("X-Remote-Group",),
            extra_prefixes=("X-Remote-Extra-",),
        )
        self.settings = AuthenticationSettings(token_file=self.token_file, front_proxy=proxy)

    async def __aenter__(self) -> Self:
        self.server = Standalone(
            self.world, Settings(state=self.state, port=0, store="memory", authentication=self.settings)
        )
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()
        self.world.executor.close()

    def client(self, name: str) -> Pair:
        """The certificate of a client of the server's own authority."""
        return Authority(self.world, self.state).client(name, name, ["dev"])

    async def ask(
        self, method: str, path: str, pair: Pair | None, headers: Headers, sent: bytes = b""
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=self.state / "ca.crt")
        if pair is not None:
            context.load_cert_chain(*pair)
        host, _, port = self.server.url.removeprefix("https://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Content-Length: {len(sent)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in [*headers, ("Content-Type", "application/json")]]
        writer.write("\r\n".join([*lines, "", ""]).encode() + sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)

    async def who(self, pair: Pair | None, *headers: tuple[str, str]) -> Any:
        """The user that a request is of, or the code."""
        body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
        code, answer = await self.ask("POST", REVIEWS, pair, list(headers), body)
        return answer["status"]["userInfo"] if code == 201 else code


def test_only_a_front_proxy_may_name_users_in_headers(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path) as scene:
            proxy = scene.proxies.client("proxy", "proxy", ["system:masters"])
            other = scene.proxies.client("other", "other", ["system:masters"])
            jane, bearer = ("X-Remote-User", "jane"), ("Authorization", "Bearer secret")
            masters = ("X-Remote-Group", "system:masters")
            team = "X-Remote-Extra-example.com%2fteam"
            admin = {"username": "admin", "uid": "u-1", "groups": ["system:masters", "system:authenticated"]}
            assert await scene.who(
                proxy,
                jane,
                ("X-Remote-Group", "a"),
                ("X-Remote-Group", "b"),
                ("X-Remote-Extra-Scope", "x"),
                (team, "y"),
                (team, "z"),
                ("X-Remote-Uid", "u1"),
            ) == {
                "username": "jane",
                "uid": "u1",
                "groups": ["a", "b", "system:authenticated"],
                "extra": {"example.com/team": ["y", "z"], "scope": ["x"]},
            }
            assert await scene.who(proxy) == 401
            assert await scene.who(proxy, ("X-Remote-User", "")) == 401
            assert await scene.who(proxy, masters) == 401
            assert await scene.who(proxy, bearer) == admin
            assert (await scene.who(proxy, bearer, jane))["username"] == "jane"
            assert await scene.who(other, jane) == 401
            assert await scene.who(other, jane, bearer) == admin
            own = scene.client("joe")
            assert (await scene.who(own, jane, masters))["groups"] == ["dev", "system:authenticated"]
            assert (await scene.who(own, jane, masters))["username"] == "joe"
            assert await scene.who(None, jane, masters) == 403

    asyncio.run(main())


def test_extension_servers_learn_how_clients_authenticate(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path) as scene:
            code, found = await scene.ask("GET", CONFIG_MAP, None, [("Authorization", "Bearer secret")])
            assert (code, found["data"]) == (
                200,
                {
                    "client-ca-file": (scene.state / "ca.crt").read_text(),
                    "requestheader-client-ca-file": scene.proxies.files.certificate.read_text(),
                    "requestheader-allowed-names": '["proxy"]',
                    "requestheader-username-headers": '["X-Remote-User"]',
                    "requestheader-uid-headers": '["X-Remote-Uid"]',
                    "requestheader-group-headers": '["X-Remote-Group"]',
                    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
                },
            )

    asyncio.run(main())


def test_a_further_authority_signs_client_certificates(tmp_path: Path) -> None:
    async def main() -> None:
        scene = Scene(tmp_path)
        scene.settings = AuthenticationSettings(
            token_file=scene.token_file, client_authority=scene.proxies.files.certificate
        )
        async with scene:
            jane = scene.proxies.client("jane", "jane", ["dev"])
            assert (await scene.who(jane, ("X-Remote-User", "root")))["username"] == "jane"
            assert (await scene.who(scene.client("joe")))["username"] == "joe"

    asyncio.run(main())


def test_an_authority_that_is_both_needs_the_names_of_its_proxies(tmp_path: Path) -> None:
    async def main() -> None:
        scene = Scene(tmp_path)
        both = scene.proxies.files.certificate
        assert scene.settings.front_proxy is not None
        proxy = msgspec.structs.replace(scene.settings.front_proxy, allowed_names=())
        scene.settings = AuthenticationSettings(client_authority=both, front_proxy=proxy)
        try:
            with pytest.raises(AuthenticationSettingsError, match="--requestheader-allowed-names must be specified"):
                await scene.__aenter__()
        finally:
            scene.world.executor.close()

    asyncio.run(main())


@pytest.mark.parametrize("content", [None, "nothing"])
def test_an_authority_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    async def main() -> None:
        scene = Scene(tmp_path)
        path = tmp_path / "authority.crt"
        if content is not None:
            path.write_text(content)
        scene.settings = AuthenticationSettings(client_authority=path)
        try:
            with pytest.raises(
                AuthenticationSettingsError, match=r"cannot load the certificate authority .*authority\.crt"
            ):
                await scene.__aenter__()
        finally:
            scene.world.executor.close()

    asyncio.run(main())
