"""Services get addresses and ports of their own, whatever happens at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.server.asking import Answer, Api, asking

_SERVICES = "/api/v1/namespaces/default/services"


def _service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def _many(api: Api, count: int, **spec: Any) -> list[Answer]:
    return await asyncio.gather(*(api.post(_SERVICES, _service(f"s-{i}", **spec)) for i in range(count)))


@asking
async def test_services_that_are_created_at_once_get_different_addresses_and_ports(api: Api) -> None:
    made = await _many(api, 100, type="NodePort")
    assert {answer.code for answer in made} == {201}
    assert len({answer.body["spec"]["clusterIP"] for answer in made}) == 100
    assert len({answer.body["spec"]["ports"][0]["nodePort"] for answer in made}) == 100


@asking
async def test_the_range_of_addresses_is_used_up_to_the_last_and_an_address_comes_back(api: Api) -> None:
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
async def test_an_address_that_was_asked_for_is_not_given_twice(api: Api) -> None:
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
