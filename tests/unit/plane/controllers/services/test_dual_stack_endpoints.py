"""EndpointSlices of both IP families, and Endpoints of the first."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Container, Endpoints, Pod, PodSpec, Service, ServicePort, ServiceSpec
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.kinds.networking_v1 import ServiceCIDR

CONTROLLERS = ("endpointslice-controller", "endpoints-controller")


async def make_dual_stack(stage: Stage) -> None:
    await stage.client.patch(
        ServiceCIDR, "kubernetes", MergePatch({"spec": {"cidrs": ["10.0.0.0/24", "fd00:10::/112"]}})
    )


async def serve(stage: Stage, name: str, *ips: str) -> None:
    metadata = ObjectMeta(name=name, labels={"app": "web"})
    pod = Pod(metadata=metadata, spec=PodSpec(containers=[Container(name="c", image="i")], node_name="a"))
    created = await stage.client.create(pod)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await stage.set_pod_status(
        created, phase="Running", podIP=ips[0], podIPs=[{"ip": each} for each in ips], conditions=[condition]
    )


async def create(stage: Stage, policy: str, *families: str, cluster_ip: str | None = None) -> None:
    spec = ServiceSpec(
        selector={"app": "web"},
        ports=[ServicePort(port=80)],
        ip_family_policy=policy,
        ip_families=list(families),
        cluster_ip=cluster_ip,
    )
    await stage.client.create(Service(metadata=ObjectMeta(name="web"), spec=spec))


async def slices(stage: Stage) -> dict[str, list[str]]:
    await stage.settle()
    found = await stage.client.list(EndpointSlice, labels="kubernetes.io/service-name=web")
    assert len({each.address_type for each in found}) == len(found)
    return {
        each.address_type: sorted(address for endpoint in each.endpoints for address in endpoint.addresses)
        for each in found
    }


async def legacy(stage: Stage) -> list[str]:
    found = await stage.client.get(Endpoints, "web")
    return sorted(each.ip for subset in found.subsets for each in subset.addresses)


def test_a_service_of_both_families_has_slices_of_both() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "both", "10.1.0.1", "fd00:1::1")
        await serve(stage, "old", "10.1.0.2")
        await create(stage, "RequireDualStack")
        assert await slices(stage) == {"IPv4": ["10.1.0.1", "10.1.0.2"], "IPv6": ["fd00:1::1"]}
        assert await legacy(stage) == ["10.1.0.1", "10.1.0.2"]

    on_stage(play, *CONTROLLERS)


def test_endpoints_are_of_the_first_family() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "both", "10.1.0.1", "fd00:1::1")
        await create(stage, "RequireDualStack", "IPv6", "IPv4")
        assert await slices(stage) == {"IPv4": ["10.1.0.1"], "IPv6": ["fd00:1::1"]}
        assert await legacy(stage) == ["fd00:1::1"]

    on_stage(play, *CONTROLLERS)


def test_a_service_of_one_family_has_slices_of_that_alone() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "both", "10.1.0.1", "fd00:1::1")
        await create(stage, "SingleStack", "IPv6")
        assert await slices(stage) == {"IPv6": ["fd00:1::1"]}
        assert await legacy(stage) == ["fd00:1::1"]

    on_stage(play, *CONTROLLERS)


def test_slices_follow_the_policy_of_the_service() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "both", "10.1.0.1", "fd00:1::1")
        await create(stage, "SingleStack")
        assert await slices(stage) == {"IPv4": ["10.1.0.1"]}
        both, one = ({"spec": {"ipFamilyPolicy": policy}} for policy in ("PreferDualStack", "SingleStack"))
        await stage.client.patch(Service, "web", MergePatch(both))
        assert await slices(stage) == {"IPv4": ["10.1.0.1"], "IPv6": ["fd00:1::1"]}
        await stage.client.patch(Service, "web", MergePatch(one))
        assert await slices(stage) == {"IPv4": ["10.1.0.1"]}

    on_stage(play, *CONTROLLERS)


def test_a_headless_service_has_slices_of_its_families() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "both", "10.1.0.1", "fd00:1::1")
        await create(stage, "PreferDualStack", cluster_ip="None")
        assert await slices(stage) == {"IPv4": ["10.1.0.1"], "IPv6": ["fd00:1::1"]}

    on_stage(play, *CONTROLLERS)


def test_the_second_address_of_a_pod_may_come_later() -> None:
    async def play(stage: Stage) -> None:
        await make_dual_stack(stage)
        await serve(stage, "a", "10.1.0.1")
        await create(stage, "RequireDualStack")
        assert await slices(stage) == {"IPv4": ["10.1.0.1"], "IPv6": []}
        pod = await stage.client.get(Pod, "a")
        await stage.set_pod_status(pod, podIPs=[{"ip": "10.1.0.1"}, {"ip": "fd00:1::1"}])
        assert await slices(stage) == {"IPv4": ["10.1.0.1"], "IPv6": ["fd00:1::1"]}

    on_stage(play, *CONTROLLERS)
