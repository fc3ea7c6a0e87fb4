"""Requests to either server, and all objects that it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from tests.contract.conversations import Server

Json = dict[str, Any]
Key = tuple[str, str, str]  # path of the collection, namespace, name
_PATCHES = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}
_SECONDS = 30.0


class Api:
    """The API of a server, for its administrator."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._server = Server(url, token, None)
        self._connection = self._server.connect(_SECONDS)

    def call(self, method: str, path: str, body: Json | None = None, content_type: str = "") -> tuple[int, Any]:
        headers = {"Content-Type": content_type or "application/json", "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        headers["Authorization"] = f"Bearer {self._server.token}"
        self._connection.request(method, path, data, headers)
        response = self._connection.getresponse()
        text = response.read().decode()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str) -> Any:
        status, body = self.call("GET", path)
        while status == 429:  # kube-apiserver fills the cache of a new kind
            status, body = self.call("GET", path)
        assert status == 200, (path, status, body)
        return body

    def patch(self, kind: str, path: str, body: Json) -> Json:
        """Send a patch: merge, or apply."""
        status, answer = self.call("PATCH", path, body, _PATCHES[kind])
        assert status in (200, 201), (path, status, answer)
        found: Json = answer
        return found

    def collections(self) -> Iterator[str]:
        """The paths of all collections that can be listed, one for each kind."""
        groups = [("/api/v1", self.get("/api/v1"))]
        for group in self.get("/apis")["groups"]:
            path = f"/apis/{group['preferredVersion']['groupVersion']}"
            groups.append((path, self.get(path)))
        for path, found in groups:
            for resource in found["resources"]:
                if {"list", "create"} <= set(resource["verbs"]):
                    yield f"{path}/{resource['name']}"

    def objects(self) -> dict[Key, Json]:
        """All objects, of all kinds."""
        found: dict[Key, Json] = {}
        for path in self.collections():
            listed = self.get(path)
            for item in listed["items"]:
                metadata = item["metadata"]
                whole = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List"), **item}
                found[path, metadata.get("namespace", ""), metadata["name"]] = whole
        return found

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Json]]:
        """The events of a collection from now on."""
        version = self.get(f"{path}?limit=1")["metadata"]["resourceVersion"]
        connection: HTTPConnection
        target = f"{path}?watch=1&resourceVersion={version}&timeoutSeconds=60"
        connection, response = self._server.request("GET", target, {}, None, timeout=_SECONDS)
        try:
            yield (json.loads(line) for line in iter(response.readline, b""))
        finally:
            response.close()
            connection.close()


def path_of(key: Key) -> str:
    """The path of an object."""
    collection, namespace, name = key
    head, _, plural = collection.rpartition("/")
    return f"{head}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{collection}/{name}"
