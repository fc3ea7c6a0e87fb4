"""Addresses and ports that a crash left allocated are released, and those of Services are allocated."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

from ostinato.server.controllers.service_repair import GRACE, INTERVAL
from ostinato.server.resources.core.services.addresses import claim_address
from ostinato.server.resources.core.services.ports import NodePorts

_SERVICES = "/api/v1/namespaces/default/services"
_ADDRESS = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.77"


def _service(name: str, port: int, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}], **spec}}


@asking
async def test_what_is_allocated_without_a_service_is_released_after_the_grace_period(api: Api) -> None:
    server = api.server
    place = {"namespace": "default", "name": "never-stored"}
    assert await claim_address(server.index, server.world, "10.0.0.77", place)
    await NodePorts().change(server.index, lambda taken: taken | {30077})
    assert (await api.post(_SERVICES, _service("a", 30077))).code == 422
    assert (await api.post(_SERVICES, _service("a", 30078, clusterIP="10.0.0.77"))).code == 422
    assert (await api.get(_ADDRESS)).code == 200
    await server.world.clock.sleep(2 * INTERVAL * 1.2 + GRACE)
    assert (await api.get(_ADDRESS)).code == 404
    assert (await api.post(_SERVICES, _service("a", 30077, clusterIP="10.0.0.77"))).code == 201


@asking
async def test_what_a_service_has_is_allocated_again(api: Api) -> None:
    server = api.server
    assert (await api.post(_SERVICES, _service("a", 30077, clusterIP="10.0.0.77"))).code == 201
    await api.delete(_ADDRESS)
    await server.world.clock.sleep(INTERVAL * 1.2)
    assert (await api.get(_ADDRESS)).body["spec"]["parentRef"]["name"] == "a"


@asking
async def test_a_rejected_service_allocates_nothing(api: Api) -> None:
    named = _service("Not_A_Label", 30077, clusterIP="10.0.0.77")
    assert (await api.post(_SERVICES, named)).code == 422
    assert (await api.get(_ADDRESS)).code == 404
    assert (await api.post(_SERVICES, _service("a", 30077))).code == 201


@asking
async def test_ports_are_released_by_updates_and_deletes(api: Api) -> None:
    await api.post(_SERVICES, _service("a", 30077))
    assert (await api.merge(f"{_SERVICES}/a", {"spec": {"ports": [{"port": 80, "nodePort": 30078}]}})).code == 200
    assert (await api.post(_SERVICES, _service("b", 30077))).code == 201
    await api.delete(f"{_SERVICES}/a")
    assert (await api.post(_SERVICES, _service("c", 30078))).code == 201
