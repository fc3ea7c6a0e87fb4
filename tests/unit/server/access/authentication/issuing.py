"""An OpenID issuer on loopback, over HTTPS, which also misbehaves on request."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from tests.unit.server.access.authentication.mutations import b64

from ostinato.server.access.authority import Authority
from ostinato.world import World

Json = dict[str, Any]


class Key:
    """Signs tokens: RS256 or ES256."""

    def __init__(self, name: str, *, elliptic: bool = False) -> None:
        self.name = name
        self.key: Any = ec.generate_private_key(ec.SECP256R1()) if elliptic else rsa.generate_private_key(65537, 2048)
        self.algorithm = "ES256" if elliptic else "RS256"

    def jwk(self) -> Json:
        numbers = self.key.public_key().public_numbers()
        if self.algorithm == "RS256":
            return {"kty": "RSA", "kid": self.name, "n": _number(numbers.n), "e": _number(numbers.e), "use": "sig"}
        return {"kty": "EC", "kid": self.name, "crv": "P-256", "x": _number(numbers.x, 32), "y": _number(numbers.y, 32)}

    def token(self, claims: Json, **header: Any) -> str:
        head = {"alg": self.algorithm, "kid": self.name} | header
        signed = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        return f"{signed}.{b64(self.sign(signed.encode(), head['alg']))}"

    def sign(self, data: bytes, algorithm: str) -> bytes:
        if isinstance(self.key, rsa.RSAPrivateKey):
            hashed = {"384": hashes.SHA384, "512": hashes.SHA512}.get(algorithm[2:], hashes.SHA256)()
            pad: Any = padding.PKCS1v15()
            if algorithm.startswith("PS"):
                pad = padding.PSS(padding.MGF1(hashed), hashed.digest_size)
            return bytes(self.key.sign(data, pad, hashed))
        r, s = utils.decode_dss_signature(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _number(value: int, size: int = 0) -> str:
    return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class HttpsIssuer:
    """Serves discovery and keys for any path: `https://127.0.0.1:PORT/anything` is an issuer.

    - `answers`: by path, instead of what it would serve: (status, headers, body).
    - `reviews`: the same by the token that a posted TokenReview asks about.
    - `stalled`: it accepts connections and never answers.
    - `asked`: the paths that it was asked for.
    """

    def __init__(self, world: World, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._authority = Authority(world, directory)
        self._pair = self._authority.server("issuer", ["127.0.0.1"])
        self.authority = self._authority.files.certificate
        self.keys: list[Key] = [Key("one")]
        self.answers: dict[str, tuple[int, Json, bytes]] = {}
        self.reviews: dict[str, tuple[int, Json, bytes]] = {}
        self.stalled = False
        self.asked: list[str] = []
        self.bodies: list[Json] = []
        self.heads: list[str] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._pair.certificate, self._pair.key)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            sent = await reader.readexactly(int(length)) if length else b""
            path = head.split(" ")[1]
            self.asked.append(path)
            self.heads.append(head)
            if sent:
                self.bodies.append(json.loads(sent))
            if self.stalled:
                await asyncio.get_running_loop().create_future()
            token = json.loads(sent)["spec"]["token"] if sent else ""
            chosen = self.reviews.get(token) or self.answers.get(path.partition("?")[0])
            status, headers, body = chosen or self._document(path)
            lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in {"Content-Type": "application/json", **headers}.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    def _document(self, path: str) -> tuple[int, Json, bytes]:
        issuer, found, _ = path.partition("/.well-known/openid-configuration")
        if found:
            told = {"issuer": f"{self.url}{issuer}", "jwks_uri": f"{self.url}/keys"}
            return 200, {}, json.dumps(told).encode()
        if path == "/keys":
            return 200, {}, json.dumps({"keys": [key.jwk() for key in self.keys]}).encode()
        return 404, {}, b"{}"
