"""An API server calls our webhooks: what they change, warn of, refuse and convert arrives at the user."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from ostinato.api.errors import APIError, InternalError, Invalid
from ostinato.api.markers import Stored, marked
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.api.validation.field_errors import FieldError
from ostinato.api.validation.field_errors import Path as FieldPath
from ostinato.cache import CachedClient, Informers
from ostinato.client import Client, Config, HttpTransport, Unstructured, exists, is_deleted
from ostinato.controllers import Dependencies, controller
from ostinato.crd import crd_of
from ostinato.kinds.apiextensions_v1 import CustomResourceDefinition
from ostinato.kinds.core_v1 import (
    ConfigMap,
    Container,
    EnvVar,
    Pod,
    PodSpec,
    Probe,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
    TCPSocketAction,
)
from ostinato.manager import Manager
from ostinato.server.access.authority import Authority
from ostinato.webhook import (
    AdmissionRequest,
    Denied,
    ServiceEndpoint,
    UrlEndpoint,
    Webhooks,
    converter,
    defaulter,
    validator,
)
from ostinato.world import World
from tests.cluster.planes import PlaneProcess

GROUP = "webhooks.example.dev"
GADGETS = "conversions.example.dev"
NAME = "ostinato-test-webhooks"


class WidgetSpec(Struct):
    replicas: int | None = None
    image: str = ""


class Widget(CustomResource, group=GROUP, version="v1"):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)


class WidgetV2Spec(Struct):
    count: int = 0


class WidgetV2(CustomResource, group=GROUP, version="v2", kind="Widget"):
    spec: WidgetV2Spec = msgspec.field(default_factory=WidgetV2Spec)


@defaulter(Widget)
def fill_in(widget: Widget, request: AdmissionRequest) -> None:
    if widget.spec.replicas is None:
        widget.spec.replicas = 2
    widget.metadata.annotations = {**(widget.metadata.annotations or {}), "example.dev/user": request.user.username}


@validator(Widget, operations=["CREATE", "UPDATE", "DELETE"])
def check(widget: Widget, old: Widget | None, request: AdmissionRequest) -> Iterator[FieldError | str]:
    labels = widget.metadata.labels or {}
    if request.operation == "DELETE":
        if "protected" in labels:
            raise Denied("it is protected")
        return
    if "broken" in labels:
        raise ZeroDivisionError("division by zero")
    if request.dry_run:
        yield "it is a dry run"
    if widget.spec.image.endswith(":latest"):
        yield "spec.image: latest moves,\nname a version"
    replicas = widget.spec.replicas or 0
    if replicas % 2:
        yield FieldError.invalid(FieldPath("spec", "replicas"), replicas, "must be even")
    if old is not None and replicas < (old.spec.replicas or 0):
        raise Denied("replicas cannot shrink")


@validator(Widget, operations=["UPDATE"], subresources=["scale"], path="/few", name=f"few.widgets.{GROUP}")
def few(thing: dict[str, Any], request: AdmissionRequest) -> None:
    if request.subresource == "scale" and thing["spec"]["replicas"] > 10:
        raise Denied(f"the {thing['kind']} is too large")


@converter
def up(old: Widget) -> WidgetV2:
    if old.spec.image == "inconvertible":
        raise ValueError("no such image in v2")
    return WidgetV2(metadata=old.metadata, spec=WidgetV2Spec(count=old.spec.replicas or 0))


@converter
def down(new: WidgetV2) -> Widget:
    return Widget(spec=WidgetSpec(replicas=new.spec.count))  # its metadata is taken over


def definition(webhooks: Webhooks) -> dict[str, Any]:
    def version(name: str, **properties: Any) -> dict[str, Any]:
        spec = {"type": "object", "properties": properties}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        subresources = {"scale": scale} if name == "v1" else {}
        return {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": schema,
            "subresources": subresources,
        }

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "conversion": webhooks.conversion(),
            "versions": [
                version("v1", replicas={"type": "integer"}, image={"type": "string"}, unknown={"type": "string"}),
                version("v2", count={"type": "integer"}),
            ],
        },
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def eventually(ask: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what an API server does in its own time."""
    async with asyncio.timeout(30):
        while not await ask():  # noqa: ASYNC110 - it tells nobody when it has done it
            await asyncio.sleep(0.1)


@asynccontextmanager
async def serving(client: Client, world: World) -> AsyncIterator[None]:
    """The hooks, served and known to the API server; all certificates are made, and made known, by themselves."""
    port = free_port()
    endpoint = UrlEndpoint(f"https://127.0.0.1:{port}")
    webhooks = Webhooks(fill_in, check, few, up, down, endpoint=endpoint, name=NAME, host="127.0.0.1", port=port)
    documents = [definition(webhooks), *webhooks.configurations()]
    kinds = [Unstructured.of(document["apiVersion"], document["kind"]) for document in documents]
    for document in documents:
        await client.create(document)
    informers = Informers(client)
    dependencies = Dependencies(client=CachedClient(client, informers), informers=informers, world=world)
    running = asyncio.create_task(webhooks.run(dependencies))

    async def all_is_known() -> bool:
        found = [await client.get(kind, each["metadata"]["name"]) for kind, each in zip(kinds, documents, strict=True)]
        return all(msgspec.json.encode(each).count(b'"caBundle"') > 0 for each in found)

    async def hooks_are_called() -> bool:
        odd = Widget(metadata=ObjectMeta(name="odd"), spec=WidgetSpec(replicas=3))
        try:
            await client.create(odd, dry_run=True)
        except Invalid:
            return True
        except APIError:
            pass
        return False

    try:
        await eventually(all_is_known)
        await eventually(hooks_are_called)
        yield
    finally:
        for kind, document in zip(kinds[::-1], documents[::-1], strict=True):
            await client.delete(kind, document["metadata"]["name"])
        running.cancel()
        await asyncio.wait([running])


async def conversation(kubeconfig: Path, namespace: str) -> None:
    world = World.real()
    warnings: list[str] = []
    config = Config.load(path=kubeconfig)
    transport = HttpTransport(config, world)
    client = Client(transport, world=world, namespace=namespace, warn=warnings.append)
    async with client, serving(client, world):
        warnings.clear()
        await changes_and_warnings(client, warnings)
        await refusals(client)
        await scaling(client)
        await conversions(client)
    world.executor.close()


async def changes_and_warnings(client: Client, warnings: list[str]) -> None:
    document: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {"image": "nginx:latest", "unknown": "kept"},
    }
    made = await client.create(document)
    assert made["spec"] == {"replicas": 2, "image": "nginx:latest", "unknown": "kept"}
    assert made["metadata"]["annotations"]["example.dev/user"]
    assert warnings == ["spec.image: latest moves, name a version"]
    warnings.clear()
    await client.create(Widget(metadata=ObjectMeta(name="dry")), dry_run=True)
    assert warnings == ["it is a dry run"]


async def refusals(client: Client) -> None:
    with pytest.raises(Invalid) as invalid:
        await client.create(Widget(metadata=ObjectMeta(name="odd"), spec=WidgetSpec(replicas=3)))
    assert str(invalid.value) == (
        f'admission webhook "validate.v1.widgets.{GROUP}" denied the request: '
        f'Widget.{GROUP} "odd" is invalid: spec.replicas: Invalid value: 3: must be even'
    )
    assert invalid.value.causes[0].field == "spec.replicas"
    widget = await client.get(Widget, "a")
    widget.spec.replicas = 0
    with pytest.raises(APIError, match=f'"validate.v1.widgets.{GROUP}" denied the request: replicas cannot') as denied:
        await client.update(widget)
    assert (denied.value.code, denied.value.reason) == (403, "Forbidden")
    with pytest.raises(APIError, match=r"check failed: ZeroDivisionError: division by zero") as failed:
        await client.create(Widget(metadata=ObjectMeta(name="broken", labels={"broken": ""})))
    assert failed.value.code == 500
    await client.create(Widget(metadata=ObjectMeta(name="protected", labels={"protected": ""})))
    with pytest.raises(APIError, match="denied the request: it is protected"):
        await client.delete(Widget, "protected")


async def scaling(client: Client) -> None:
    with pytest.raises(APIError, match="denied the request: the Scale is too large"):
        await client.scale.set(Widget, "a", 12)
    assert (await client.scale.set(Widget, "a", 2)).spec.replicas == 2


async def conversions(client: Client) -> None:
    assert (await client.get(WidgetV2, "a")).spec.count == 2
    # Hooks for v1 are asked about v2 as well: the server converts.
    with pytest.raises(Invalid, match="must be even"):
        await client.create(WidgetV2(metadata=ObjectMeta(name="odd"), spec=WidgetV2Spec(count=5)))
    await client.create(WidgetV2(metadata=ObjectMeta(name="b", labels={"by": "v2"}), spec=WidgetV2Spec(count=4)))
    stored = await client.get(Widget, "b")
    assert (stored.spec.replicas, stored.metadata.labels) == (4, {"by": "v2"})
    assert stored.metadata.annotations  # the defaulter saw it too
    listed = [widget.spec.count async for widget in client.list(WidgetV2, namespace=client.namespace)]
    assert listed == [2, 4, 2]
    await client.create(Widget(metadata=ObjectMeta(name="v1-only"), spec=WidgetSpec(image="inconvertible")))
    with pytest.raises(InternalError) as failed:
        await client.get(WidgetV2, "v1-only")
    assert str(failed.value).endswith(
        f"conversion webhook for {GROUP}/v1, Kind=Widget failed: "
        f"Widget {client.namespace}/v1-only: ValueError: no such image in v2"
    )


# A cache that needs conversion


class GadgetSpec(Struct):
    size: int = 0


@marked(Stored())
class Gadget(CustomResource, group=GADGETS, version="v1"):
    spec: GadgetSpec = msgspec.field(default_factory=GadgetSpec)


class GadgetV2Spec(Struct):
    width: int = 0
    height: int = 0


class GadgetV2(CustomResource, group=GADGETS, version="v2", kind="Gadget"):
    spec: GadgetV2Spec = msgspec.field(default_factory=GadgetV2Spec)


@converter
def widen(old: Gadget) -> GadgetV2:
    return GadgetV2(metadata=old.metadata, spec=GadgetV2Spec(width=old.spec.size, height=old.spec.size))


@converter
def narrow(new: GadgetV2) -> Gadget:
    return Gadget(metadata=new.metadata, spec=GadgetSpec(size=new.spec.width))


async def start_with_old_objects(kubeconfig: Path, namespace: str) -> None:
    """Caches of v2 are filled from objects of v1, by the webhooks of the same manager: those must be up before."""
    config = Config.load(path=kubeconfig, namespace=namespace)
    port = free_port()
    endpoint = UrlEndpoint(f"https://127.0.0.1:{port}")
    webhooks = Webhooks(widen, narrow, endpoint=endpoint, name="ostinato-test-gadgets", host="127.0.0.1", port=port)
    seen: dict[str, tuple[int, int]] = {}
    all_are_seen = asyncio.Event()

    @controller(GadgetV2)
    async def gadgets(gadget: GadgetV2) -> None:
        seen[gadget.metadata.name] = (gadget.spec.width, gadget.spec.height)
        if len(seen) == 3:
            all_are_seen.set()

    definition = crd_of(Gadget, GadgetV2, conversion=webhooks.conversion())
    name = definition["metadata"]["name"]
    async with Client.connect(config) as client:
        await client.create(definition)
        try:
            await client.wait_for(CustomResourceDefinition, name, "Established", timeout=30)
            for number in range(3):
                await client.create(Gadget(metadata=ObjectMeta(name=f"g{number}"), spec=GadgetSpec(size=number)))
            manager = Manager(config).add(gadgets, webhooks)
            manager.informers.of(GadgetV2)  # so that the manager waits for it, before anything else runs
            serving = asyncio.create_task(manager.serve())
            async with asyncio.timeout(30):
                await asyncio.wait(
                    [serving, asyncio.ensure_future(all_are_seen.wait())], return_when=asyncio.FIRST_COMPLETED
                )
            manager.stop()
            await serving
        finally:
            await client.delete(CustomResourceDefinition, name)
    assert seen == {"g0": (0, 0), "g1": (1, 1), "g2": (2, 2)}


@pytest.fixture
def calling(request: pytest.FixtureRequest) -> Path:
    """A cluster that calls webhooks on this machine."""
    kubeconfig: Path = request.getfixturevalue("kubeconfig")
    if urlsplit(Config.load(path=kubeconfig).url).hostname not in ("127.0.0.1", "localhost", "::1"):
        pytest.skip("an API server on another machine cannot call a webhook on this one")
    return kubeconfig


def test_an_api_server_is_served(calling: Path, namespace: str) -> None:
    asyncio.run(conversation(calling, namespace))


def test_a_cache_of_converted_objects_is_filled_at_the_start(calling: Path, namespace: str) -> None:
    asyncio.run(start_with_old_objects(calling, namespace))


# In a Pod, behind a Service

SERVED = """
import asyncio, sys
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.webhook import Denied, ServiceEndpoint, Webhooks, validator
from ostinato.world import World

@validator(ConfigMap)
def check(config: ConfigMap) -> None:
    if "bad" in (config.data or {}):
        raise Denied("it is bad")

directory, port = sys.argv[1], int(sys.argv[2])
webhooks = Webhooks(check, endpoint=ServiceEndpoint("default", "hook"), certificates=directory, port=port)
asyncio.run(webhooks.server(World.real(), None).run())
"""


@validator(ConfigMap)
def never_called(config: ConfigMap) -> None:
    """Stands for the one in the Pod."""


def test_a_webhook_in_a_pod_is_found_by_its_service(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it is about Pods that are processes")
    authority = Authority(World.real(), tmp_path)
    pair = authority.server("hook", ["hook.default.svc"])
    directory = tmp_path / "certificates"
    directory.mkdir()
    (directory / "tls.crt").write_bytes(pair.certificate.read_bytes())
    (directory / "tls.key").write_bytes(pair.key.read_bytes())
    (tmp_path / "served.py").write_text(SERVED)
    port = free_port()
    command = [sys.executable, str(tmp_path / "served.py"), str(directory), str(port)]
    environment = [EnvVar(name="PYTHONPATH", value=os.pathsep.join(sys.path))]
    container = Container(name="hook", image="python", command=command, env=environment)
    container.readiness_probe = Probe(tcp_socket=TCPSocketAction(port=port), period_seconds=1)
    pod = Pod(metadata=ObjectMeta(name="hook", labels={"app": "hook"}), spec=PodSpec(containers=[container]))
    ports = [ServicePort(port=443, target_port=port)]
    service = Service(metadata=ObjectMeta(name="hook"), spec=ServiceSpec(selector={"app": "hook"}, ports=ports))
    named = Webhooks(never_called, endpoint=ServiceEndpoint("default", "hook"))
    (configuration,) = named.configurations(authority.certificate)
    configuration["webhooks"][0]["objectSelector"] = {"matchLabels": {"checked": ""}}  # else no Pod gets its own

    async def play(client: Client) -> None:
        await client.create(service)
        await client.create(configuration)
        config = ConfigMap(metadata=ObjectMeta(name="c", labels={"checked": ""}), data={"a": "b"})
        with pytest.raises(InternalError, match='no endpoints available for service "hook"'):
            await client.create(config)
        await client.wait_for(ServiceAccount, "default", exists, timeout=30)
        await client.create(pod)

        async def is_served() -> bool:
            try:
                await client.create(config)
            except InternalError:
                return False
            return True

        await eventually(is_served)
        with pytest.raises(APIError, match="denied the request: it is bad"):
            await client.create(ConfigMap(metadata=ObjectMeta(name="d", labels={"checked": ""}), data={"bad": ""}))
        await client.delete(Pod, "hook", grace_period=1)  # its process outlives the plane
        await client.wait_for(Pod, "hook", is_deleted, timeout=60)

    options = ("--nodes", "1", "--runtime", "process", "--store", "memory", "--expose", str(tmp_path))
    plane = PlaneProcess(tmp_path / "plane", *options)
    plane.start()
    try:

        async def main() -> None:
            async with Client.connect(Config.load(path=plane.kubeconfig, namespace="default")) as client:
                await play(client)

        asyncio.run(main())
    finally:
        plane.stop()
