"""Requests of metacontroller and of `ostinato meta` for the same objects on the same API server.

Each implementation has definitions, parents and children of its own, whose names end with its word. After each step and
when no more requests arrive, the last request that each hook got must be the same after normalisation:

| removed | why |
|---|---|
| `uid`, `resourceVersion`, `creationTimestamp`, `deletionTimestamp` | differ between any two objects |
| `managedFields` | caches here do not hold them: requests are smaller |
| annotation `metacontroller.k8s.io/last-applied-configuration` | the record of metacontroller's own merge |
| `controller`, but for its name and spec | metacontroller adds empty fields of its Go types |
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
WORDS = ("theirs", "ours")
_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields")
_LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


class RecordingHook:
    """Serves `/WORD/HOOK`; `answers` by hook."""

    def __init__(self, answers: dict[str, Callable[[Json], Json]]) -> None:
        self.requests: list[tuple[str, str, Json]] = []  # word, hook, document
        recorded = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, word, hook = self.path.split("/")
                recorded.append((word, hook, document))
                body = json.dumps(answers[hook](document)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def last(self, word: str, hook: str) -> Json | None:
        """The last request of an implementation, normalised."""
        found = [document for at, name, document in self.requests if (at, name) == (word, hook)]
        return normalised(found[-1], word) if found else None

    def first(self, word: str, hook: str) -> Json | None:
        found = [document for at, name, document in self.requests if (at, name) == (word, hook)]
        return normalised(found[0], word) if found else None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def normalised(document: Json, word: str) -> Json:
    """Return a request without what differs for reasons that are known; see the module."""
    text = json.dumps(_without_volatile(document)).replace(word, "WORD")
    found: Json = json.loads(text)
    controller = found["controller"]
    found["controller"] = {"name": controller["metadata"]["name"], "spec": _without_empty(controller["spec"])}
    return found


def _without_volatile(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_volatile(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_volatile(each) for name, each in value.items() if name not in _VOLATILE}
    kept.pop(_LAST_APPLIED, None)
    if kept.get("annotations") == {}:
        del kept["annotations"]
    return kept


def _without_empty(value: Any) -> Any:
    """Return the spec of a definition without empty objects and the defaults that the server sets."""
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if each not in ({}, [], None)}
