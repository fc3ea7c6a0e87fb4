"""Allocation of cluster IPs and node ports, also under concurrency."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from tests.stage.api import Answer, Api, asking

from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.world import Simulation

_SERVICES = "/api/v1/namespaces/default/services"


def _service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def _many(api: Api, count: int, *, prefix: str = "s", **spec: Any) -> list[Answer]:
    return await asyncio.gather(*(api.post(_SERVICES, _service(f"{prefix}-{i}", **spec)) for i in range(count)))


@asking
async def test_services_that_are_created_at_once_get_different_addresses_and_ports(api: Api) -> None:
    made = await _many(api, 100, type="NodePort")
    assert {answer.code for answer in made} == {201}
    assert len({answer.body["spec"]["clusterIP"] for answer in made}) == 100
    assert len({answer.body["spec"]["ports"][0]["nodePort"] for answer in made}) == 100


@asking
async def test_every_address_of_a_range_is_allocated_and_released(api: Api) -> None:
    made = await _many(api, 253)  # all but that of the service `kubernetes`
    assert {answer.code for answer in made} == {201}
    full = await api.post(_SERVICES, _service("one-more"))
    assert full.code == 500
    assert full.message == (
        'Internal error occurred: failed to allocate a serviceIP for Service "one-more": range is full'
    )
    address = made[7].body["spec"]["clusterIP"]
    await api.delete(f"{_SERVICES}/s-7")
    assert (await api.post(_SERVICES, _service("one-more"))).body["spec"]["clusterIP"] == address


@asking
async def test_a_requested_address_is_not_allocated_twice(api: Api) -> None:
    wanted = _service("a", clusterIP="10.0.0.40"), _service("b", clusterIP="10.0.0.40")
    first, second = await asyncio.gather(*(api.post(_SERVICES, each) for each in wanted))
    assert {first.code, second.code} == {201, 422}
    refused = first if first.code == 422 else second
    assert "failed to allocate IP 10.0.0.40: provided IP is already allocated" in refused.message


@asking
async def test_a_dry_run_takes_no_address(api: Api) -> None:
    dry = await api.post(f"{_SERVICES}?dryRun=All", _service("a", clusterIP="10.0.0.41"))
    assert dry.body["spec"]["clusterIP"] == "10.0.0.41"
    assert (await api.post(_SERVICES, _service("b", clusterIP="10.0.0.41"))).code == 201


@asking
async def test_a_service_that_is_refused_leaves_its_address_free(api: Api) -> None:
    bad = await api.post(_SERVICES, _service("a", clusterIP="10.0.0.42", sessionAffinity="Odd"))
    assert bad.code == 422
    assert (await api.post(_SERVICES, _service("a", clusterIP="10.0.0.42"))).code == 201


@asking
async def test_an_address_is_free_again_when_its_service_has_no_use_for_it(api: Api) -> None:
    await api.post(_SERVICES, _service("a", clusterIP="10.0.0.43"))
    changed = await api.merge(f"{_SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in changed.body["spec"]
    assert (await api.post(_SERVICES, _service("b", clusterIP="10.0.0.43"))).code == 201


@asking
async def test_node_ports_run_out(api: Api) -> None:
    ports = [{"port": i + 1, "name": f"p-{i}"} for i in range(2769)]
    answer = await api.post(_SERVICES, _service("a", type="NodePort", ports=ports))
    assert (answer.code, answer.message) == (
        500,
        "Internal error occurred: failed to allocate a nodePort: range is full",
    )


@asking
async def test_a_health_check_port_must_be_free(api: Api) -> None:
    await api.post(_SERVICES, _service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30007}]))
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30007}
    answer = await api.post(_SERVICES, _service("b", **local))
    assert answer.message.endswith(
        "failed to allocate requested HealthCheck NodePort 30007: provided port is already allocated"
    )
    given = await api.post(_SERVICES, _service("b", **{**local, "healthCheckNodePort": 30008}))
    assert given.body["spec"]["healthCheckNodePort"] == 30008


@asking
async def test_endpoints_with_a_finalizer_outlive_their_service(api: Api) -> None:
    await api.post(_SERVICES, _service("a"))
    endpoints = "/api/v1/namespaces/default/endpoints"
    await api.post(endpoints, {"metadata": {"name": "a", "finalizers": ["example.com/x"]}})
    await api.delete(f"{_SERVICES}/a")
    assert (await api.get(f"{endpoints}/a")).code == 200


_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
_RANGES = "/apis/networking.k8s.io/v1/servicecidrs"


@asking
async def test_an_address_is_an_object_for_as_long_as_a_service_has_it(api: Api) -> None:
    assert (await api.get(f"{_ADDRESSES}/10.0.0.1")).body["spec"]["parentRef"]["name"] == "kubernetes"
    await api.post(_SERVICES, _service("a", clusterIP="10.0.0.50"))
    parent = (await api.get(f"{_ADDRESSES}/10.0.0.50")).body["spec"]["parentRef"]
    assert parent == {"resource": "services", "namespace": "default", "name": "a"}
    outside = {"type": "ExternalName", "externalName": "a.b", "clusterIP": None, "clusterIPs": None}
    await api.merge(f"{_SERVICES}/a", {"spec": outside})
    assert (await api.get(f"{_ADDRESSES}/10.0.0.50")).code == 404
    await api.merge(f"{_SERVICES}/a", {"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.51"}})
    assert (await api.get(f"{_ADDRESSES}/10.0.0.51")).code == 200
    await api.delete(f"{_SERVICES}/a")
    assert [each["metadata"]["name"] for each in (await api.get(_ADDRESSES)).body["items"]] == ["10.0.0.1"]


@asking
async def test_an_address_with_an_ip_address_object_is_not_allocated(api: Api) -> None:
    parent = {"resource": "gateways", "group": "a.b", "name": "g", "namespace": "default"}
    await api.post(_ADDRESSES, {"metadata": {"name": "10.0.0.60"}, "spec": {"parentRef": parent}})
    refused = await api.post(_SERVICES, _service("a", clusterIP="10.0.0.60"))
    assert "provided IP is already allocated" in refused.message


@asking
async def test_a_further_service_cidr_is_used_until_it_is_deleted(api: Api) -> None:
    assert (await api.get(f"{_RANGES}/kubernetes")).body["spec"]["cidrs"] == ["10.0.0.0/24"]
    wanted = _service("a", clusterIP="192.168.7.5")
    assert "does not match the current range" in (await api.post(_SERVICES, wanted)).message
    await api.post(_RANGES, {"metadata": {"name": "more"}, "spec": {"cidrs": ["192.168.7.0/28"]}})
    assert (await api.post(_SERVICES, wanted)).code == 201
    assert (await api.post(_SERVICES, _service("b", clusterIP="192.168.7.15"))).code == 422
    await _many(api, 252)
    beyond = await _many(api, 6, prefix="t")
    assert sum(answer.code == 201 for answer in beyond) == 6
    await api.delete(f"{_RANGES}/more")
    assert "does not match" in (await api.post(_SERVICES, _service("c", clusterIP="192.168.7.14"))).message


@asking
async def test_a_dry_run_returns_placeholder_values(api: Api) -> None:
    for _ in range(2):
        dry = (await api.post(f"{_SERVICES}?dryRun=All", _service("a", type="NodePort"))).body["spec"]
        assert (dry["clusterIP"], dry["ports"][0]["nodePort"]) == ("10.0.0.0", 32769)
    assert (await api.post(f"{_SERVICES}?dryRun=All", _service("a", clusterIP="10.0.0.1"))).code == 201
    assert len((await api.get(_ADDRESSES)).body["items"]) == 1


@asking
async def test_two_ports_of_a_new_service_do_not_share_a_node_port(api: Api) -> None:
    ports = [{"name": "a", "port": 1, "nodePort": 31000}, {"name": "b", "port": 2, "nodePort": 31000}]
    refused = await api.post(_SERVICES, _service("a", type="NodePort", ports=ports))
    assert "spec.ports[1].nodePort: Invalid value: 31000: provided port is already allocated" in refused.message
    ports[1] |= {"port": 1, "protocol": "UDP"}
    assert (await api.post(_SERVICES, _service("a", type="NodePort", ports=ports))).code == 201


def test_the_range_of_a_server_is_kept_in_its_store(tmp_path: Path) -> None:
    """A later start with another range does not change it, as in kube-apiserver."""
    world = Simulation(seed=1)

    async def start(service_range: str) -> list[Answer]:
        server = Server(world, SQLiteLog(tmp_path / "store.db", world))
        server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
        await server.start(service_ranges=[IPv4Network(service_range)])
        api = Api(server)
        try:
            return [
                await api.get(f"{_SERVICES}/kubernetes"),
                await api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes"),
                await api.post(_SERVICES, {"metadata": {"generateName": "a-"}, "spec": {"ports": [{"port": 80}]}}),
                await api.post(_SERVICES, _service("b", clusterIP="10.0.0.9")),
                await api.post(f"{_SERVICES}?dryRun=All", _service("b", clusterIP="10.0.0.9")),
            ]
        finally:
            await server.close()

    async def main() -> None:
        for given in ("10.9.0.0/16", "10.8.0.0/16"):
            own, cidr, made, outside, dry = await start(given)
            assert own.body["spec"]["clusterIP"] == "10.9.0.1"
            assert cidr.body["spec"]["cidrs"] == ["10.9.0.0/16"]
            assert made.body["spec"]["clusterIP"].startswith("10.9.")
            assert "the provided network does not match the current range" in outside.message
            assert "The range of valid IPs is 10.9.0.0/16" in dry.message

    world.run(main())
