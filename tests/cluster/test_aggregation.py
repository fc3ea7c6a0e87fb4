"""Extension API servers behind an API server: k8s.io/sample-apiserver, metrics-server, and an adapter of metrics.

The Go programs take minutes to build: they are used if OSTINATO_GO_PROGRAMS has them, and built there if
OSTINATO_BUILD_AGGREGATED is set.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ostinato.client import Config
from ostinato.server.access.authority import Authority
from ostinato.world import World
from tests.cluster.planes import PlaneProcess
from tests.conftest import ADMIN_TOKEN, GO, built_programs, started_apiserver
from tests.etcd_cluster import EtcdCluster, needs_etcd
from tests.stage.extension_api import machine_address
from tests.stage.extension_server import ExtensionServer, Received, json_answer
from tests.stage.https_client import ApiClient

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PACKAGES = {
    "sample-apiserver": "k8s.io/sample-apiserver",
    "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
}


def program(name: str, factory: pytest.TempPathFactory) -> Path:
    """Where a Go program is; skips the test if it would have to be built."""
    kept = os.environ.get("OSTINATO_GO_PROGRAMS", "")
    if not (kept and (Path(kept) / name).exists()) and not os.environ.get("OSTINATO_BUILD_AGGREGATED"):
        pytest.skip(f"{name} is not in OSTINATO_GO_PROGRAMS; OSTINATO_BUILD_AGGREGATED=1 builds it")
    return built_programs(factory, GO / "aggregated", [PACKAGES[name]], "main.") / name


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def free_port(host: str) -> int:
    with socket.socket() as found:
        found.bind((host, 0))
        return int(found.getsockname()[1])


async def until(check: Callable[[], Awaitable[Any]], seconds: float = 120) -> Any:
    """Repeat a check until it returns something true."""
    last: Any = None
    for _ in range(int(seconds * 5)):
        last = await check()
        if last:
            return last
        await asyncio.sleep(0.2)  # real time: other programs answer
    raise AssertionError(f"not within {seconds} seconds: {last!r}")


async def register(api: ApiClient, name: str, versions: list[tuple[str, str]], host: str, port: int) -> None:
    """A Service with one endpoint, and APIServices for it."""
    spec = {"ports": [{"name": "https", "port": 443}]}
    slice_ = {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": [host]}],
    }
    sent = [
        ("/api/v1/namespaces/kube-system/services", {"metadata": {"name": name}, "spec": spec}),
        ("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", slice_),
    ]
    for group, version in versions:
        about = {"group": group, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 15}
        about |= {"service": {"namespace": "kube-system", "name": name}, "insecureSkipTLSVerify": True}
        sent.append((API_SERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": about}))
    for path, body in sent:
        made = await api.ask("POST", path, body)
        assert made.status == 201, made.body


async def available(api: ApiClient, name: str) -> None:
    async def is_available() -> bool:
        found = await api.ask("GET", f"{API_SERVICES}/{name}")
        return bool((found.value.get("status") or {}).get("conditions", [{}])[0].get("status") == "True")

    await until(is_available)


@needs_etcd
def test_the_sample_api_server_serves_behind_ours(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Objects, watches, discovery, OpenAPI, a user's rights, and the end of the server."""
    binary, host = program("sample-apiserver", tmp_path_factory), machine_address()
    base = "/apis/wardle.example.com/v1alpha1"

    async def play(api: ApiClient, kubeconfig: Path, etcd: str) -> None:
        port = free_port(host)
        command = [str(binary), f"--etcd-servers={etcd}", f"--secure-port={port}", f"--bind-address={host}"]
        command += [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
        command.append(f"--cert-dir={tmp_path}/sample")
        with running(command, tmp_path / "sample.log") as process:
            await register(api, "wardle", [("wardle.example.com", "v1alpha1")], host, port)
            await available(api, "v1alpha1.wardle.example.com")
            flunder = {"metadata": {"name": "a"}, "spec": {"reference": "b"}}
            path = f"{base}/namespaces/default/flunders"
            kind = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder"}
            made = await api.ask("POST", path, {**kind, **flunder})
            assert made.status == 201, made.body
            assert (await api.ask("GET", f"{path}/a")).value["spec"]["reference"] == "b"
            assert b'"ADDED"' in await api.stream(f"{path}?watch=true", 20)
            refused = await api.ask("GET", path, headers={"Impersonate-User": "eve"})
            assert refused.status == 403

            async def listed() -> bool:
                found = (await api.ask("GET", "/apis", headers={"Accept": AGGREGATED})).value["items"]
                [entry] = [each for each in found if each["metadata"].get("name") == "wardle.example.com"]
                return bool(entry["versions"][0].get("resources")) and entry["versions"][0]["freshness"] == "Current"

            await until(listed)

            async def described() -> bool:
                index = (await api.ask("GET", "/openapi/v3")).value["paths"]
                return "apis/wardle.example.com/v1alpha1" in index

            await until(described)
            document = (await api.ask("GET", f"/openapi/v3{base}")).value
            assert f"{base}/namespaces/{{namespace}}/flunders" in document["paths"]
            whole = await until(lambda: _merged(api, f"{base}/namespaces/{{namespace}}/flunders"))
            assert any(name.endswith("v1alpha1.Flunder") for name in whole["definitions"])
            assert (await api.ask("DELETE", f"{path}/a")).status == 200
            process.kill()
            process.wait(10)

            async def is_down() -> bool:
                return (await api.ask("GET", path)).body == b"service unavailable\n"

            await until(is_down)

    with EtcdCluster.start(tmp_path / "etcd") as etcd, started_apiserver(tmp_path) as server:
        api = ApiClient(server.url, ADMIN_TOKEN)
        asyncio.run(play(api, server.kubeconfig, etcd.settings.endpoints[0]))


async def _merged(api: ApiClient, path: str) -> Any:
    found = (await api.ask("GET", "/openapi/v2")).value
    return found if path in found["paths"] else None


@contextmanager
def plane(directory: Path, *options: str) -> Iterator[tuple[ApiClient, Path]]:
    """A control plane, and a client of its administrator."""
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,admin-uid,"system:masters"\n')
    started = PlaneProcess(directory, "--token-auth-file", str(tokens), *options)
    started.start()
    try:
        server = Config.load(path=started.kubeconfig).server
        yield ApiClient(server, ADMIN_TOKEN), started.kubeconfig
    finally:
        started.stop()


def deployment(image: str = "busybox") -> dict[str, Any]:
    container = {"name": "c", "image": image, "command": ["sleep", "1000"]}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def autoscaler(*metrics: dict[str, Any]) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [*metrics]},
    }


async def scaled(api: ApiClient, replicas: int, *metrics: dict[str, Any]) -> None:
    """Create a Deployment and its autoscaler; wait until it has a number of replicas."""
    made = await api.ask("POST", "/apis/apps/v1/namespaces/default/deployments", deployment())
    assert made.status == 201, made.body
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    made = await api.ask("POST", path, autoscaler(*metrics))
    assert made.status == 201, made.body

    async def is_scaled() -> bool:
        found = await api.ask("GET", "/apis/apps/v1/namespaces/default/deployments/web")
        return bool(found.value["spec"]["replicas"] == replicas)

    await until(is_scaled, 90)
    found = (await api.ask("GET", f"{path}/web")).value["status"]
    conditions = {each["type"]: each["status"] for each in found["conditions"]}
    assert conditions["ScalingActive"] == "True", found


def test_an_autoscaler_works_on_the_figures_of_metrics_server(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """metrics-server reads the node's API with a verified certificate; our own metrics.k8s.io gives way to it."""
    binary, host = program("metrics-server", tmp_path_factory), machine_address()

    async def play(api: ApiClient, kubeconfig: Path) -> None:
        port = free_port(host)
        command = [str(binary), f"--secure-port={port}", f"--bind-address={host}", f"--cert-dir={tmp_path}/metrics"]
        command += [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
        command += [f"--kubelet-certificate-authority={kubeconfig.parent}/ca.crt", "--kubelet-use-node-status-port"]
        command += ["--metric-resolution=10s", "--kubelet-request-timeout=9s"]
        command += ["--kubelet-preferred-address-types=InternalIP"]
        with running(command, tmp_path / "metrics.log"):
            await register(api, "metrics-server", [("metrics.k8s.io", "v1beta1")], host, port)
            await available(api, "v1beta1.metrics.k8s.io")
            target = {"type": "AverageValue", "averageValue": "64Ki"}
            await scaled(api, 3, {"type": "Resource", "resource": {"name": "memory", "target": target}})
            [node] = (await api.ask("GET", "/apis/metrics.k8s.io/v1beta1/nodes")).value["items"]
            assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"  # as metrics-server has it

    with plane(tmp_path, "--runtime", "process", "--insecure-processes") as (api, kubeconfig):
        asyncio.run(play(api, kubeconfig))


@asynccontextmanager
async def adapter(directory: Path, host: str) -> AsyncIterator[ExtensionServer]:
    """An adapter that serves `requests` of each Pod, and the external metric `queue`."""
    custom, external = "/apis/custom.metrics.k8s.io/v1beta2", "/apis/external.metrics.k8s.io/v1beta1"
    backend = ExtensionServer(_context(directory), host)
    names: list[str] = []

    async def requests(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "describedObject": {"kind": "Pod", "namespace": "default", "name": name, "apiVersion": "/v1"},
                "metric": {"name": "requests"},
                "timestamp": now,
                "value": "20",
            }
            for name in names
        ]
        writer.write(json_answer({"kind": "MetricValueList", "apiVersion": custom[6:], "metadata": {}, "items": items}))

    async def queue(request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        item = {"metricName": "queue", "metricLabels": {}, "timestamp": now, "value": "30"}
        answer = {"kind": "ExternalMetricValueList", "apiVersion": external[6:], "metadata": {}, "items": [item]}
        writer.write(json_answer(answer))

    for base, resource in ((custom, "pods/requests"), (external, "queue")):
        resources = [{"name": resource, "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}]
        backend.answers[base] = json_answer(
            {"kind": "APIResourceList", "groupVersion": base[6:], "resources": resources}
        )
    backend.answers[f"{custom}/namespaces/default/pods/*/requests"] = requests
    backend.answers[f"{external}/namespaces/default/queue"] = queue
    async with backend:
        backend.pods = names  # type: ignore[attr-defined]  # filled by the test
        yield backend


def _context(directory: Path) -> ssl.SSLContext:
    world = World.real(workers=1)
    pair = Authority(world, directory).server("adapter", ["adapter.kube-system.svc"])
    world.executor.close()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.mark.parametrize("source", ["Pods", "External"])
def test_an_autoscaler_works_on_an_adapter_of_custom_metrics(tmp_path: Path, source: str) -> None:
    host = machine_address()
    of_pods = {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    of_queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "15"}}
    metric = {"Pods": {"type": "Pods", "pods": of_pods}, "External": {"type": "External", "external": of_queue}}[source]

    async def play(api: ApiClient) -> None:
        (tmp_path / "adapter").mkdir()
        async with adapter(tmp_path / "adapter", host) as backend:
            versions = [("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")]
            await register(api, "adapter", versions, host, backend.port)
            for group, version in versions:
                await available(api, f"{version}.{group}")

            async def follow() -> None:
                while True:
                    found = (await api.ask("GET", "/api/v1/namespaces/default/pods")).value["items"]
                    backend.pods[:] = [each["metadata"]["name"] for each in found]  # type: ignore[attr-defined]
                    await asyncio.sleep(0.5)

            following = asyncio.create_task(follow())
            try:
                await scaled(api, 3 if source == "Pods" else 2, metric)
            finally:
                following.cancel()
            [user] = {request.values("x-remote-user")[0] for request in backend.received if "default" in request.path}
            assert user == "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

    with plane(tmp_path, "--nodes", "1", "--runtime", "simulated") as (api, _):
        asyncio.run(play(api))
