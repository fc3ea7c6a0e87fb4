"""The cases: what a client does with APIServices and an extension API server, and what it observes.

`observe` plays all of them against one API server. The extension API server is a script (see
`tests.stage.extension_server`) at an address of this machine, in the EndpointSlice of a Service.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.stage.extension_server import ExtensionServer, Received, echo, json_answer, response
from tests.stage.https_client import Answer, ApiClient
from tests.unit.client.http import certificates

GROUP = "fruits.example.dev"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
BASE = f"/apis/{GROUP}/v1"
NAMESPACE = "aggregated"
HOST = f"fruits.{NAMESPACE}.svc"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
RESOURCES = [
    {
        "name": "apples",
        "singularName": "apple",
        "namespaced": True,
        "kind": "Apple",
        "verbs": ["get", "list", "watch"],
        "shortNames": ["ap"],
    },
    {"name": "apples/status", "singularName": "", "namespaced": True, "kind": "Apple", "verbs": ["get"]},
]
_FORWARDED = (
    "host",
    "x-remote-user",
    "x-remote-uid",
    "x-remote-group",
    "x-forwarded-for",
    "x-forwarded-uri",
    "x-forwarded-host",
    "x-forwarded-proto",
    "authorization",
    "impersonate-user",
    "x-custom",
    "accept",
    "user-agent",
    "via",
    "te",
    "keep-alive",
    "x-remote-extra-scopes",
    "x-remote-extra-example.dev%2fteam",
)


async def observe(api: ApiClient, host: str) -> dict[str, Any]:
    """Play the cases. `host`: the address of the extension server."""
    return await _Cases(api, host).play()


class _Cases:
    def __init__(self, api: ApiClient, host: str) -> None:
        self._api = api
        self._host = host
        self._seen: dict[str, Any] = {}
        self._port = 0
        self._pokes = 0

    async def play(self) -> dict[str, Any]:
        trusted = await self._trusted()
        backend = ExtensionServer(_context(trusted), self._host)
        async with backend:
            self._port = backend.port
            backend.answers = _answers()
            await self._api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            await self._unavailable()
            await self._forwarded(backend)
            await self._documents(backend)
            await self._failing(backend)
            await self._upgrades(backend)
            await self._custom_resources()
        await self._ended()
        return self._seen

    async def _trusted(self) -> str:
        """The authority of front proxies, as extension servers learn it."""
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        data = (await self._api.ask("GET", path)).value["data"]
        self._seen["authentication"] = {
            name: value for name, value in data.items() if not name.endswith("-ca-file") and "uid" not in name
        }
        trusted: str = data["requestheader-client-ca-file"]
        return trusted

    # Steps

    async def _unavailable(self) -> None:
        await self._apply(caBundle=base64.b64encode(certificates.authority().pem).decode())
        await self._condition("no service", "ServiceNotFound")
        self._show("request without service", await self._api.ask("GET", f"{BASE}/apples"))
        self._show("discovery without service", await self._api.ask("GET", BASE))
        self._show("group without service", await self._api.ask("GET", f"/apis/{GROUP}"))
        self._seen["aggregated without service"] = await self._aggregated("Stale")
        self._seen["listed without service"] = GROUP in (await self._groups())
        await self._service(80)
        await self._condition("other port", "ServicePortError")
        await self._service(443)
        await self._condition("no endpoints", "EndpointsNotFound")
        await self._slice(self._port, ready=False)
        await self._condition("not ready", "MissingEndpoints")
        await self._slice(1, ready=True)
        await self._condition("refused", "FailedDiscoveryCheck")
        await self._slice(self._port, ready=True)
        await self._condition("passed", "Passed")

    async def _forwarded(self, backend: ExtensionServer) -> None:
        await self._until_served()
        ask = self._api.ask
        self._show("get", await ask("GET", f"{BASE}/echo/a?x=1&y=%20z&x=2"))
        self._show("trailing slash", await ask("GET", f"{BASE}/echo/"))
        self._show("escaped", await ask("GET", f"{BASE}/echo/a%2Fb%20c"))
        self._show("post", await ask("POST", f"{BASE}/echo/a", {"kind": "Apple"}))
        self._show("put", await ask("PUT", f"{BASE}/echo/a", {"kind": "Apple"}))
        self._show("delete", await ask("DELETE", f"{BASE}/echo/a"))
        self._show("head", await ask("HEAD", f"{BASE}/echo/a"))
        self._show("other version", await ask("GET", f"/apis/{GROUP}/v2/echo"))
        self._show("prefix of the version", await ask("GET", f"/apis/{GROUP}/v1x/echo"))
        self._show("resources", await ask("GET", BASE))
        sent = {
            "X-Custom": "kept",
            "X-Remote-User": "system:admin",
            "X-Remote-Group": "system:masters",
            "TE": "trailers",
        }
        sent |= {"X-Remote-Extra-Scopes": "all", "X-Remote-Uid": "0", "Keep-Alive": "5", "User-Agent": "test"}
        self._show("headers", await ask("GET", f"{BASE}/echo/headers", headers=sent), only_status=True)
        self._seen["headers received"] = self._fields(backend, f"{BASE}/echo/headers")
        acting = {"Impersonate-User": "ada", "Impersonate-Uid": "7", "Impersonate-Group": "system:masters"}
        acting |= {"Impersonate-Extra-Scopes": "view", "Impersonate-Extra-Example.dev%2Fteam": "é".encode()}
        self._show("impersonated", await ask("GET", f"{BASE}/echo/acting", headers=acting), only_status=True)
        self._seen["impersonated received"] = self._fields(backend, f"{BASE}/echo/acting")
        before = len(backend.received)
        nobody = {"Impersonate-User": "nobody"}
        self._show("forbidden", await ask("GET", f"{BASE}/echo/forbidden", headers=nobody))
        self._seen["forbidden received"] = [each.path for each in backend.received[before:] if "echo" in each.path]
        stream = await self._api.stream(f"{BASE}/apples?watch=true", 30)
        self._seen["watch"] = stream.decode()

    async def _documents(self, backend: ExtensionServer) -> None:
        self._show("group", await self._api.ask("GET", f"/apis/{GROUP}"))
        self._seen["aggregated"] = await self._aggregated("Current")
        groups = await self._groups()
        self._seen["listed"] = [group for group in groups if group in (GROUP, "apps", "apiregistration.k8s.io")]
        await self._changed(groupPriorityMinimum=17900, versionPriority=200)
        self._seen["listed with priority"] = [
            group for group in await self._until_groups(GROUP, "apps") if group in (GROUP, "apps")
        ]
        index = (await self._until_described()).value["paths"]
        self._seen["openapi v3 index"] = index[f"apis/{GROUP}/v1"]
        self._show("openapi v3", await self._api.ask("GET", f"/openapi/v3/apis/{GROUP}/v1"))
        whole = (await self._api.ask("GET", "/openapi/v2")).value
        self._seen["openapi v2 paths"] = sorted(path for path in whole["paths"] if GROUP in path)
        self._seen["openapi v2 definitions"] = {
            name: value for name, value in whole["definitions"].items() if "Fruit" in name or "Apple" in name
        }
        self._seen["requests of the server"] = sorted(
            {
                (each.path, ",".join(each.values("x-remote-user")), ",".join(each.values("x-remote-group")))
                for each in backend.received
                if ",".join(each.values("x-remote-user")).startswith("system:")
            }
        )

    async def _failing(self, backend: ExtensionServer) -> None:
        ask = self._api.ask
        for name in ("moved", "found", "unchanged", "silent", "nonsense", "unlocated"):
            self._show(f"answer {name}", await ask("GET", f"{BASE}/{name}"))
        backend.answers[BASE] = response(418, b"", "text/plain")
        await self._poke()
        await self._condition("bad status", "FailedDiscoveryCheck")
        self._show("request with bad status", await ask("GET", f"{BASE}/echo/a"))
        backend.answers[BASE] = response(302, b"", "text/plain", ("Location", "/elsewhere"))
        await self._poke()
        await self._condition("redirected", "FailedDiscoveryCheck", "302")
        backend.answers[BASE] = _resource_list()
        other = base64.b64encode(certificates.authority("other").pem).decode()
        await self._changed(caBundle=other)
        await self._condition("other authority", "FailedDiscoveryCheck", "x509")
        await self._changed(caBundle=None, insecureSkipTLSVerify=True)
        await self._condition("insecure", "Passed")
        await self._until_served()

    async def _upgrades(self, backend: ExtensionServer) -> None:
        for name in ("accepted", "refused", "ignored", "redirecting"):
            backend.answers[f"{BASE}/{name}"] = _UPGRADES[name]
            sent = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
            received = await self._api.upgrade(f"{BASE}/{name}", {"Upgrade": "websocket"}, sent)
            self._seen[f"upgrade {name}"] = _lines(received)
            self._seen[f"upgrade {name} received"] = len(backend.requests(f"{BASE}/{name}"))
        self._seen["upgrade fields"] = {
            name: backend.requests(f"{BASE}/accepted")[0].values(name)
            for name in ("x-remote-user", "x-remote-group", "authorization", "connection", "upgrade")
        }

    async def _custom_resources(self) -> None:
        ask = self._api.ask
        await ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition())
        made = await self._until(f"{SERVICES}/v1.seeds.example.dev", lambda found: found.status == 200)
        self._seen["of a definition"] = _object(made.value)
        listed = await self._until_listed("seeds.example.dev")
        self._seen["listed definition"] = [each for each in listed if each in ("apps", "seeds.example.dev")]
        await ask("DELETE", f"{SERVICES}/v1.seeds.example.dev")
        again = await self._until(f"{SERVICES}/v1.seeds.example.dev", lambda found: found.status == 200)
        self._seen["of a definition again"] = _object(again.value)
        await ask("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/seeds.seeds.example.dev")
        gone = await self._until(f"{SERVICES}/v1.seeds.example.dev", lambda found: found.status == 404)
        self._seen["of a deleted definition"] = gone.status

    async def _ended(self) -> None:
        self._show("connection lost", await self._api.ask("GET", f"{BASE}/echo/a"))
        await self._poke()
        await self._condition("down", "FailedDiscoveryCheck", "refused")
        self._show("request when down", await self._api.ask("GET", f"{BASE}/echo/a"))
        self._show("removed", await self._api.ask("DELETE", f"{SERVICES}/v1.{GROUP}"))
        gone = await self._until(f"{BASE}/echo/a", lambda found: found.status != 503)
        self._show("request after removal", gone)
        self._show("group after removal", await self._api.ask("GET", f"/apis/{GROUP}"))
        await self._api.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/fruits")
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        await self._api.ask("DELETE", f"{slices}/fruits")

    # Objects

    async def _apply(self, **spec: Any) -> None:
        wanted = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": "v1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 15,
                "service": {"namespace": NAMESPACE, "name": "fruits"},
                **spec,
            },
        }
        made = await self._api.ask("POST", SERVICES, wanted)
        assert made.status == 201, made.body

    async def _changed(self, **spec: Any) -> None:
        done = await self._api.ask("PATCH", f"{SERVICES}/v1.{GROUP}", {"spec": spec})
        assert done.status == 200, done.body

    async def _poke(self) -> None:
        """A change that has the server check again at once."""
        self._pokes += 1
        labels = {"metadata": {"labels": {"poked": str(self._pokes)}}}
        await self._api.ask("PATCH", f"{SERVICES}/v1.{GROUP}", labels)

    async def _service(self, port: int) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/services"
        spec = {"ports": [{"name": "api", "port": port, "targetPort": 8443}]}
        made = await self._api.ask("POST", path, {"metadata": {"name": "fruits"}, "spec": spec})
        if made.status == 409:
            made = await self._api.ask("PATCH", f"{path}/fruits", {"spec": spec})
        assert made.status in (200, 201), made.body

    async def _slice(self, port: int, *, ready: bool) -> None:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        wanted = {
            "metadata": {"name": "fruits", "labels": {"kubernetes.io/service-name": "fruits"}},
            "addressType": "IPv4",
            "ports": [{"name": "api", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [self._host], "conditions": {"ready": ready}}],
        }
        made = await self._api.ask("POST", path, wanted)
        if made.status == 409:
            made = await self._api.ask("PATCH", f"{path}/fruits", wanted)
        assert made.status in (200, 201), made.body

    # Observations

    def _show(self, name: str, answer: Answer, *, only_status: bool = False) -> None:
        self._seen[name] = {"status": answer.status}
        if not only_status:
            kind = answer.headers.get("content-type", "")
            value = self._masked(answer.value)
            self._seen[name] |= {"type": kind, "body": _object(value) if isinstance(value, dict) else value}

    async def _condition(self, name: str, reason: str, about: str = "") -> None:
        def fits(found: Answer) -> bool:
            condition = _available(found.value)
            return condition.get("reason") == reason and about in condition.get("message", "")

        found = await self._until(f"{SERVICES}/v1.{GROUP}", fits)
        condition = {key: value for key, value in _available(found.value).items() if key != "lastTransitionTime"}
        self._seen[f"condition {name}"] = self._masked(condition)

    async def _aggregated(self, freshness: str) -> Any:
        def fits(found: Answer) -> bool:
            entry = _entry(found.value)
            return entry is not None and all(each["freshness"] == freshness for each in entry["versions"])

        return _entry((await self._until("/apis", fits, {"Accept": AGGREGATED})).value)

    async def _groups(self) -> list[str]:
        return [group["name"] for group in (await self._api.ask("GET", "/apis")).value["groups"]]

    async def _until_groups(self, first: str, second: str) -> list[str]:
        def fits(found: Answer) -> bool:
            names = [group["name"] for group in found.value["groups"]]
            return first in names and names.index(first) < names.index(second)

        return [group["name"] for group in (await self._until("/apis", fits)).value["groups"]]

    async def _until_listed(self, name: str) -> list[str]:
        found = await self._until("/apis", lambda found: any(each["name"] == name for each in found.value["groups"]))
        return [group["name"] for group in found.value["groups"]]

    async def _until_served(self) -> None:
        await self._until(f"{BASE}/echo/a", lambda found: found.status == 200)

    async def _until_described(self) -> Answer:
        def is_merged(found: Answer) -> bool:
            return any(GROUP in path for path in found.value["paths"])

        await self._until("/openapi/v2", is_merged, seconds=90)
        return await self._until("/openapi/v3", is_merged, seconds=90)

    async def _until(
        self, path: str, fits: Any, headers: Mapping[str, str | bytes] | None = None, seconds: float = 40
    ) -> Answer:
        for _ in range(int(seconds * 10)):
            found = await self._api.ask("GET", path, headers=headers)
            try:
                if fits(found):
                    return found
            except (KeyError, TypeError, AttributeError):
                pass
            await asyncio.sleep(0.1)
        raise AssertionError(f"{path}: {found.status} {found.body[:2000]!r}")

    def _fields(self, backend: ExtensionServer, path: str) -> dict[str, Any]:
        request = backend.requests(path)[0]
        fields = {name: self._masked(request.values(name)) for name in _FORWARDED if request.values(name)}
        return {**fields, "certificate": request.certificate}

    def _masked(self, value: Any) -> Any:
        text = json.dumps(value).replace(f"{self._host}:{self._port}", "<backend>").replace(self._host, "<host>")
        text = re.sub(r"127\.0\.0\.1:\d+", "<server>", text)
        return json.loads(re.sub(r"<host>:\d+->", "<client>->", text))


def _available(obj: dict[str, Any]) -> dict[str, Any]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Available"), {})


def _entry(found: dict[str, Any]) -> dict[str, Any] | None:
    entry = next((each for each in found["items"] if each["metadata"].get("name") == GROUP), None)
    if entry is not None:
        entry["metadata"].pop("creationTimestamp", None)
    return entry


def _object(value: dict[str, Any]) -> dict[str, Any]:
    """An object without what differs from run to run."""
    meta = value.get("metadata")
    if isinstance(meta, dict):
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            meta.pop(field, None)
        for entry in meta.get("managedFields") or ():
            entry.pop("time", None)
    for condition in (
        (value.get("status") or {}).get("conditions") or () if isinstance(value.get("status"), dict) else ()
    ):
        condition.pop("lastTransitionTime", None)
    if isinstance(value.get("details"), dict):
        value["details"].pop("uid", None)
    return value


def _lines(received: bytes) -> list[str]:
    """What a client received, without the fields that differ from run to run."""
    skipped = ("date:", "audit-id:", "x-kubernetes-pf-", "cache-control:")
    head, _, rest = received.decode("latin-1").partition("\r\n\r\n")
    first, *fields = head.split("\r\n")
    return [first, *sorted(line for line in fields if not line.lower().startswith(skipped)), "", rest]


# The extension server


def _context(trusted: str) -> ssl.SSLContext:
    pair = certificates.server(HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=trusted)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "pair.pem"
        file.write_bytes(pair.pem + pair.key_pem)
        context.load_cert_chain(file)
    return context


def _resource_list() -> bytes:
    return json_answer(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": RESOURCES}
    )


def _answers() -> dict[str, Any]:
    async def watch(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(2):
            writer.write(b'10\r\n{"type":"ADDED"}\r\n')
            await writer.drain()
        await reader.read()  # until the client leaves

    async def silent(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    answers: dict[str, Any] = {
        BASE: _resource_list(),
        f"{BASE}/apples": watch,
        f"{BASE}/moved": response(301, b"", "text/plain", ("Location", f"https://{HOST}/elsewhere")),
        f"{BASE}/found": response(302, b"gone", "text/plain", ("Location", "/api/v1/secrets")),
        f"{BASE}/unlocated": response(300, b"choose", "text/plain"),
        f"{BASE}/unchanged": b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nConnection: close\r\n\r\n',
        f"{BASE}/silent": silent,
        f"{BASE}/nonsense": b"HTTP/9.9 what\r\n\r\n",
        "/openapi/v2": json_answer(_openapi_v2()),
        "/openapi/v3": json_answer(
            {"paths": {f"apis/{GROUP}/v1": {"serverRelativeURL": f"/openapi/v3/apis/{GROUP}/v1?hash=AB"}}}
        ),
        f"/openapi/v3/apis/{GROUP}/v1": json_answer({"openapi": "3.0.0", "paths": {}}),
    }
    for name in ("a", "", "a%2Fb%20c", "a/b%20c", "headers", "acting"):
        answers[f"{BASE}/echo/{name}"] = echo
    return answers


def _openapi_v2() -> dict[str, Any]:
    reference = {"$ref": "#/definitions/dev.example.Apple"}
    read = {"responses": {"200": {"description": "OK", "schema": reference}}, "operationId": "readApple"}
    return {
        "swagger": "2.0",
        "info": {"title": "Fruits", "version": "v0"},
        "paths": {
            f"{BASE}/apples": {"get": read},
            f"/apis/{GROUP}/": {"get": {"responses": {"200": {"description": "OK"}}}},
            "/healthz": {"get": {"responses": {"200": {"description": "OK"}}}},
        },
        "definitions": {
            "dev.example.Apple": {
                "type": "object",
                "properties": {"spec": {"$ref": "#/definitions/dev.example.Fruit"}},
            },
            "dev.example.Fruit": {"type": "object", "properties": {"name": {"type": "string"}}},
            "dev.example.UnusedFruit": {"type": "object"},
        },
    }


async def _accepted(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    writer.write(b"received " + await reader.readuntil(b"\r\n"))


_UPGRADES: dict[str, Any] = {
    "accepted": _accepted,
    "refused": response(403, b"no", "text/plain"),
    "ignored": response(200, b"ok", "text/plain"),
    "redirecting": response(302, b"", "text/plain", ("Location", "https://192.0.2.99/")),
}


def _definition() -> dict[str, Any]:
    names = {"plural": "seeds", "singular": "seed", "kind": "Seed", "listKind": "SeedList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema},
        {"name": "v2", "served": False, "storage": False, "schema": schema},
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "seeds.seeds.example.dev"},
        "spec": {"group": "seeds.example.dev", "names": names, "scope": "Namespaced", "versions": versions},
    }
