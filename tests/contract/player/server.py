"""The server under test: requests without retries, and paths from discovery."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

import aiohttp
from yarl import URL

from ostinato.client import Config
from ostinato.client.config.tls import TlsFiles, make_context
from ostinato.world import World
from tests.contract.player.paths import Json, Object, pick

PATCH_TYPES: Final = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}

WATCHED: Final = {
    "Pod": "v1",
    "Service": "v1",
    "Endpoints": "v1",
    "ConfigMap": "v1",
    "ServiceAccount": "v1",
    "Event": "v1",
    "ResourceQuota": "v1",
    "PersistentVolumeClaim": "v1",
    "ReplicationController": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ControllerRevision": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}
"""The kinds that make up the history."""

_VERSIONS: Final = {
    **WATCHED,
    "Node": "v1",
    "Namespace": "v1",
    "Secret": "v1",
    "LimitRange": "v1",
    "PersistentVolume": "v1",
    "Lease": "coordination.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
}
"""The kinds that scenarios name without a version."""

FAILURES: Final = (OSError, aiohttp.ClientError)
"""No answer, or not all of one."""

_LONGEST_LINE: Final = 2**24
_NEW_KIND_SECONDS: Final = 5.0  # a new CRD is not served immediately


class _Answer(aiohttp.ClientResponse):
    """A response that is closed without waiting for the TLS shutdown: the loop may end before it."""

    def close(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()


class Server:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}  # (version, kind): plural, namespaced

    @classmethod
    @asynccontextmanager
    async def of_kubeconfig(cls, kubeconfig: Path) -> AsyncIterator[Self]:
        config = Config.load(path=kubeconfig)
        tls = make_context(config, await TlsFiles(config, World.real()).current())
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if config.token is not None:
            headers["Authorization"] = f"Bearer {config.token.reveal()}"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=30),
            read_bufsize=_LONGEST_LINE,
            response_class=_Answer,
        ) as session:
            yield cls(session, config.url)

    async def call(self, method: str, path: str, body: Json = None, kind: str = "application/json") -> tuple[int, Json]:
        """Send one request; return the status code and the decoded answer."""
        data = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": kind}
        try:
            return await self._send(method, path, data, headers)
        except aiohttp.ServerDisconnectedError:  # a kept-alive connection that the server has just closed
            return await self._send(method, path, data, headers)

    async def _send(self, method: str, path: str, data: str | None, headers: dict[str, str]) -> tuple[int, Json]:
        url = URL(self._url + path, encoded=True)
        async with self._session.request(method, url, data=data, headers=headers) as response:
            answer = await response.read()
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer.decode("utf-8", "replace")

    async def watch(self, path: str) -> AsyncGenerator[Object, None]:
        """The events of a watch, until the server ends it; a rejection is an event of type ERROR."""
        url = URL(self._url + path, encoded=True)
        async with self._session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as response:
            if response.status != 200:
                yield {"type": "ERROR", "object": await response.json()}
                return
            try:
                async for line in response.content:
                    yield json.loads(line)
            finally:
                response.close()

    async def path(self, kind: str, namespace: str | None, name: str = "", sub: str = "", version: str = "") -> str:
        """The path of objects of a kind: one listed here, or `group/version/Kind`."""
        if "/" in kind:
            version, kind = kind.rsplit("/", 1)
        version = version or _VERSIONS[kind]
        plural, namespaced = await self._resource(version, kind)
        parts = ["/apis" if "/" in version else "/api", version]
        parts += ["namespaces", namespace] if namespaced and namespace else []
        return "/".join([*parts, plural, *([name] if name else []), *([sub] if sub else [])])

    async def items(self, kind: str, namespace: str | None, selector: str = "") -> list[Object]:
        query = "?labelSelector=" + quote(selector) if selector else ""
        code, body = await self.call("GET", await self.path(kind, namespace) + query)
        return body.get("items") or [] if code == 200 else []

    async def ready_nodes(self) -> list[str]:
        nodes = await self.items("Node", None)
        return [n["metadata"]["name"] for n in nodes if pick(n, "status.conditions[type=Ready].status") == "True"]

    async def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        """The resource of a kind; KeyError if it is not served."""
        end = asyncio.get_running_loop().time() + (0 if kind in WATCHED else _NEW_KIND_SECONDS)
        while (version, kind) not in self._resources:
            code, found = await self.call("GET", ("/apis/" if "/" in version else "/api/") + version)
            for entry in found.get("resources", []) if code == 200 else []:
                if "/" not in entry["name"]:
                    self._resources[version, entry["kind"]] = entry["name"], entry["namespaced"]
            if asyncio.get_running_loop().time() >= end:
                break
            if (version, kind) not in self._resources:
                await asyncio.sleep(0.1)
        return self._resources[version, kind]
