"""Record the answers of a running server to all cases of the routing table.

python -m tests.contract.routing.record https://127.0.0.1:6443 TOKEN answers.json
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from tests.contract.routing.table import Case, cases, objects

RECORDED = Path(__file__).parent / "recorded.json"


class Asker:
    """One connection to a server, as its administrator or impersonating another user."""

    def __init__(self, url: str, token: str) -> None:
        self._host = urlsplit(url).netloc
        self._token = token
        self._context = ssl._create_unverified_context()
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self, case: Case, sent: Any = None) -> tuple[int, str, bytes]:
        """Send a request; return status, content type and body. The body of a watch is not read."""
        connection = self._connection
        if connection is None:
            connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=30)
        self._connection = None
        data = b"" if sent is None else json.dumps(sent).encode()
        connection.putrequest(case.method, case.target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", "routing.example")
        connection.putheader("Authorization", f"Bearer {self._token}")
        connection.putheader("Content-Type", _media(case))
        connection.putheader("Content-Length", str(len(data)))
        if case.user != "admin":
            connection.putheader("Impersonate-User", case.user)
        connection.endheaders(data)
        response = connection.getresponse()
        kind = response.headers.get("Content-Type", "")
        if case.watches and response.status == 200:  # its body does not end
            connection.close()
            return response.status, kind, b""
        body = response.read()
        if response.will_close:
            connection.close()
        else:
            self._connection = connection
        return response.status, kind, body


def _media(case: Case) -> str:
    return "application/merge-patch+json" if case.method == "PATCH" else "application/json"


def told(status: int, kind: str, body: bytes) -> list[Any]:
    """The compared part: status, reason and message of an error; else the names of the objects.

    The message of a 403 repeats the path, so a checksum of it is enough.
    """
    if status >= 400:
        if "json" not in kind or not body:
            return [status, "", body.decode("utf-8", "replace").strip()]
        value = json.loads(body)
        message = value.get("message", "")
        return [status, value.get("reason", ""), crc32(message.encode()) if status == 403 else message]
    if "json" not in kind or not body:
        return [status, "", ""]
    value = json.loads(body)
    if "items" in value:
        found = {_place(item) for item in value["items"]}
        return [status, value["kind"], sorted(place for place in found if place.startswith(("mine/", "victim/")))]
    return [status, value.get("kind", ""), _place(value)]


def _place(value: Any) -> str:
    meta = value.get("metadata") or {}
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}"


def prepare(asker: Asker) -> None:
    for path, value in objects():
        status, _, body = asker.ask(Case("admin", "POST", path), value)
        if status not in (201, 409):
            sys.exit(f"POST {path}: {status} {body.decode()}")


def main(url: str, token: str, file: str) -> None:
    asker = Asker(url, token)
    prepare(asker)
    answers = [
        [*case, *told(*asker.ask(case, {} if case.method in ("POST", "PUT", "PATCH") else None))] for case in cases()
    ]
    lines = ",\n".join(json.dumps(answer, ensure_ascii=False) for answer in answers)
    Path(file).write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
