"""An attacker's tools: raw HTTPS requests to a running server, and the facts that show what they did to it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.conftest import ApiServer


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Attacker:
    """Talks to one server. `token` is the administrator's unless another is given."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        address = urlsplit(server.url)
        assert address.hostname is not None
        assert address.port is not None
        self.host, self.port = address.hostname, address.port
        self.tls = ssl.create_default_context(cafile=str(server.ca))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """A request on a connection of its own. A `body` that is not bytes is sent as JSON."""
        sent = {"Authorization": f"Bearer {self.server.token if token is None else token}", **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=60)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def connect(self, *alpn: str) -> ssl.SSLSocket:
        """A connection that has said nothing yet."""
        context = ssl.create_default_context(cafile=str(self.server.ca))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        plain = socket.create_connection((self.host, self.port), timeout=60)
        return context.wrap_socket(plain, server_hostname=self.host)

    def is_alive(self) -> bool:
        return self.ask("GET", "/readyz").status == 200

    def resident(self) -> int:
        """Bytes of memory that the server has used at most."""
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
