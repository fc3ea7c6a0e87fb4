"""A plain HTTPS client of an API server: requests, raw connections for upgrades, streams."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

MERGE = "application/merge-patch+json"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def value(self) -> Any:
        """The body: decoded, if it is JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return self.body.decode("utf-8", "replace")


class ApiClient:
    """Sends requests to an API server as the owner of a token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token = token
        self._context = ssl._create_unverified_context()

    async def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str | bytes] | None = None
    ) -> Answer:
        return await asyncio.to_thread(self._ask, method, path, body, headers or {})

    def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str | bytes]) -> Answer:
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = MERGE if method == "PATCH" else "application/json"
        fields = {
            "Authorization": f"Bearer {self._token}",
            **({} if sent is None else {"Content-Type": kind}),
            **headers,
        }
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=30)
        try:
            connection.request(method, path, sent, fields)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    async def upgrade(self, path: str, headers: Mapping[str, str], then: bytes = b"") -> bytes:
        """Ask for an upgrade, send more after the head of the answer, and return all that is received until the end."""
        return await asyncio.to_thread(self._upgrade, path, headers, then)

    def _upgrade(self, path: str, headers: Mapping[str, str], then: bytes) -> bytes:
        fields = {"Host": "server", "Authorization": f"Bearer {self._token}", "Connection": "Upgrade", **headers}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        plain = socket.create_connection((self._host, self._port), timeout=2)
        with plain, self._context.wrap_socket(plain) as connection:
            connection.sendall("\r\n".join(lines).encode())
            received = b""
            try:
                while b"\r\n\r\n" not in received and (data := connection.recv(65536)):
                    received += data
                if received.startswith(b"HTTP/1.1 503"):  # the connection is not upgraded
                    return received
                connection.sendall(then)
                while data := connection.recv(65536):
                    received += data
            except (TimeoutError, OSError):
                received += b"<no end>"
            return received

    async def stream(self, path: str, size: int) -> bytes:
        """The first `size` bytes of the body of a stream that does not end."""

        def read() -> bytes:
            connection = http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=30)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
                return connection.getresponse().read(size)
            finally:
                connection.close()

        return await asyncio.to_thread(read)

    async def ask_with_certificate(self, method: str, path: str, certificate: Path, key: Path) -> int:
        """The status of a request by the owner of a client certificate."""

        def ask() -> int:
            context = ssl._create_unverified_context()
            context.load_cert_chain(certificate, key)
            connection = http.client.HTTPSConnection(self._host, self._port, context=context, timeout=30)
            try:
                connection.request(method, path)
                return connection.getresponse().status
            finally:
                connection.close()

        return await asyncio.to_thread(ask)
