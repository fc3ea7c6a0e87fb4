"""EndpointSlices, Endpoints and their mirrors."""

from __future__ import annotations

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.cache import Entry
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import (
    Container,
    ContainerPort,
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Node,
    Pod,
    PodSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.plane.endpoints import selected_pods
from ostinato.plane.endpoints.pods import EndpointPod

SLICES, ENDPOINTS = "endpointslice-controller", "endpoints-controller"
MIRROR = "endpointslice-mirroring-controller"


def service(**spec: object) -> Service:
    given = {"selector": {"app": "web"}, "ports": [ServicePort(name="main", port=80, target_port="http")], **spec}
    return Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(**given))  # type: ignore[arg-type]


async def serve(stage: Stage, name: str, *, ready: bool = True, port: int = 8080, **labels: str) -> Pod:
    """A running Pod, as its kubelet reports it."""
    container = Container(name="c", image="i", ports=[ContainerPort(name="http", container_port=port)])
    metadata = ObjectMeta(name=name, labels={"app": "web"} | labels)
    created = await stage.client.create(
        Pod(metadata=metadata, spec=PodSpec(containers=[container], node_name="a", hostname=name))
    )
    number = serve.__dict__["count"] = serve.__dict__.get("count", 0) + 1
    address = f"10.1.{number >> 8}.{number & 255}"
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await stage.set_pod_status(
        created, phase="Running", podIP=address, podIPs=[{"ip": address}], conditions=[condition]
    )
    return created


async def slices(stage: Stage) -> list[EndpointSlice]:
    return await stage.client.list(EndpointSlice, labels="kubernetes.io/service-name=web")


def targets(found: list[EndpointSlice]) -> list[str]:
    return sorted(each.target_ref.name or "" for part in found for each in part.endpoints if each.target_ref)


def test_a_service_without_pods_has_one_empty_slice() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await stage.settle()
        (found,) = await slices(stage)
        assert (found.endpoints, found.ports) == ([], [])
        await serve(stage, "p")
        await stage.settle()
        (again,) = await slices(stage)
        assert again.metadata.uid == found.metadata.uid
        assert targets([again]) == ["p"]
        assert [(each.name, each.port) for each in again.ports] == [("main", 8080)]

    on_stage(play, SLICES)


def test_a_slice_holds_a_hundred_endpoints_and_new_ones_fill_the_gaps() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        for number in range(103):
            await serve(stage, f"p-{number}")
        await stage.settle()
        found = await slices(stage)
        assert sorted(len(each.endpoints) for each in found) == [3, 100]
        full = next(each for each in found if len(each.endpoints) == 100)
        gone = full.endpoints[0].target_ref
        assert gone is not None
        await stage.client.delete(Pod, gone.name or "", grace_period=0)
        await stage.settle()
        await serve(stage, "late")
        await stage.settle()
        found = await slices(stage)
        assert sorted(len(each.endpoints) for each in found) == [3, 100]
        assert "late" in targets([each for each in found if each.metadata.uid == full.metadata.uid])

    on_stage(play, SLICES)


def test_pods_with_other_ports_have_slices_of_their_own() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await serve(stage, "old", port=8080)
        await serve(stage, "new", port=9090)
        await stage.settle()
        assert sorted((each.ports[0].port, targets([each])) for each in await slices(stage)) == [
            (8080, ["old"]),
            (9090, ["new"]),
        ]

    on_stage(play, SLICES)


def test_a_terminating_pod_serves_and_is_not_ready() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await serve(stage, "p")
        await stage.settle()
        await stage.client.delete(Pod, "p")
        await stage.settle()
        conditions = (await slices(stage))[0].endpoints[0].conditions
        assert conditions is not None
        assert (conditions.ready, conditions.serving, conditions.terminating) == (False, True, True)

    on_stage(play, SLICES)


def test_a_deleted_or_modified_slice_is_restored() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await serve(stage, "p")
        await stage.settle()
        (found,) = await slices(stage)
        await stage.client.patch(EndpointSlice, found.metadata, MergePatch({"endpoints": []}))
        await stage.settle()
        assert targets(await slices(stage)) == ["p"]
        await stage.client.delete(found)
        await stage.settle()
        assert targets(await slices(stage)) == ["p"]

    on_stage(play, SLICES)


def test_pods_that_no_service_selects_cause_no_writes() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await stage.settle()
        await serve(stage, "other", app="other")
        before = stage.version
        await stage.settle()
        assert stage.version == before
        assert targets(await slices(stage)) == []

    on_stage(play, SLICES, ENDPOINTS)


def test_pods_are_not_decoded_for_services_without_selectors(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    decode = selected_pods._decoded

    def counted(entry: Entry) -> EndpointPod:
        decoded.append(entry.key.name)
        return decode(entry)

    monkeypatch.setattr(selected_pods, "_decoded", counted)

    async def play(stage: Stage) -> None:
        manual = service()
        manual.spec.selector = {}
        await stage.client.create(manual)
        await stage.settle()
        await serve(stage, "p")
        await stage.settle()
        assert decoded == []
        assert await slices(stage) == []

    on_stage(play, SLICES, ENDPOINTS)


def test_endpoints_separate_ready_addresses_and_are_deleted_with_the_service() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service())
        await serve(stage, "good")
        await serve(stage, "bad", ready=False)
        await stage.settle()
        found = await stage.client.get(Endpoints, "web")
        (subset,) = found.subsets
        assert [each.target_ref.name for each in subset.addresses if each.target_ref] == ["good"]
        assert [each.target_ref.name for each in subset.not_ready_addresses if each.target_ref] == ["bad"]
        assert found.metadata.labels["endpoints.kubernetes.io/managed-by"] == "endpoint-controller"
        await stage.client.delete(Service, "web")
        await stage.settle()
        assert await stage.client.get(Endpoints, "web", missing=None) is None

    on_stage(play, ENDPOINTS)


def test_endpoints_are_truncated_at_a_thousand() -> None:
    async def play(stage: Stage) -> None:
        for number in range(1003):
            await serve(stage, f"p-{number}")
        await stage.client.create(service())
        await stage.settle()
        found = await stage.client.get(Endpoints, "web")
        assert sum(len(each.addresses) for each in found.subsets) == 1000
        assert found.metadata.annotations["endpoints.kubernetes.io/over-capacity"] == "truncated"

    on_stage(play, ENDPOINTS)


def test_manual_endpoints_are_mirrored_until_they_are_deleted() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(service(selector={}))
        subset = EndpointSubset(
            addresses=[EndpointAddress(ip="10.9.8.7")],
            not_ready_addresses=[EndpointAddress(ip="fd00::1")],
            ports=[EndpointPort(name="main", port=8080)],
        )
        await stage.client.create(Endpoints(metadata=ObjectMeta(name="web"), subsets=[subset]))
        await stage.settle()
        found = await slices(stage)
        assert sorted((each.address_type, each.endpoints[0].addresses) for each in found) == [
            ("IPv4", ["10.9.8.7"]),
            ("IPv6", ["fd00::1"]),
        ]
        await stage.client.patch(
            Endpoints, "web", MergePatch({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}})
        )
        await stage.settle()
        assert await slices(stage) == []

    on_stage(play, SLICES, ENDPOINTS, MIRROR)


def test_ready_endpoints_have_the_hints_of_the_traffic_distribution() -> None:
    async def play(stage: Stage) -> None:
        zone = {"topology.kubernetes.io/zone": "red"}
        await stage.client.create(Node(metadata=ObjectMeta(name="a", labels=zone)))
        await stage.client.create(service(traffic_distribution="PreferSameNode"))
        await serve(stage, "ready")
        await serve(stage, "unready", ready=False)

        async def hints() -> dict[str, tuple[list[str], list[str]] | None]:
            await stage.settle()
            (found,) = await slices(stage)
            return {
                each.target_ref.name or "": None
                if each.hints is None
                else ([zone.name for zone in each.hints.for_zones], [node.name for node in each.hints.for_nodes])
                for each in found.endpoints
                if each.target_ref
            }

        assert await hints() == {"ready": (["red"], ["a"]), "unready": None}
        for distribution, expected in (("PreferSameZone", (["red"], [])), (None, None)):
            patch = MergePatch({"spec": {"trafficDistribution": distribution}})
            await stage.client.patch(Service, "web", patch)
            assert await hints() == {"ready": expected, "unready": None}

    on_stage(play, SLICES)
