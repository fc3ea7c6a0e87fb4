"""Health checks of load balancers."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from tests.unit.plane.network.services.test_proxy import free_port

from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Service, ServiceSpec
from ostinato.plane.network.services.health_checks import HealthChecks, health_check_port
from ostinato.world import World

WEB = NamespacedName("default", "web")


def fetch(port: int) -> tuple[int, Any, str]:
    """Status, content and weight; status 0 if nobody answers."""
    try:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    except OSError:
        return 0, None, ""
    with answer:
        return answer.status, json.load(answer), answer.headers["X-Load-Balancing-Endpoint-Weight"]


def test_a_check_says_how_many_endpoints_are_local_and_ends_with_its_service() -> None:
    async def scenario() -> None:
        world = World.real()
        checks, port, other = HealthChecks(world.clock), free_port(), free_port()
        asked = {"service": {"namespace": "default", "name": "web"}, "serviceProxyHealthy": True}
        await checks.update(WEB, port, 2)
        assert await asyncio.to_thread(fetch, port) == (200, {**asked, "localEndpoints": 2}, "2")
        await checks.update(WEB, port, 0)
        assert await asyncio.to_thread(fetch, port) == (503, {**asked, "localEndpoints": 0}, "0")
        await checks.update(WEB, other, 1)
        assert [(await asyncio.to_thread(fetch, each))[0] for each in (port, other)] == [0, 200]
        await checks.update(WEB, 0, 0)
        assert (await asyncio.to_thread(fetch, other))[0] == 0
        await checks.update(WEB, port, 1)
        await checks.close()
        assert (await asyncio.to_thread(fetch, port))[0] == 0
        world.executor.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("spec", "port"),
    [
        ({"type": "LoadBalancer", "external_traffic_policy": "Local", "health_check_node_port": 31000}, 31000),
        ({"type": "LoadBalancer", "external_traffic_policy": "Cluster", "health_check_node_port": 31000}, 0),
        ({"type": "NodePort", "external_traffic_policy": "Local"}, 0),
        ({}, 0),
    ],
)
def test_only_local_load_balancers_have_a_check(spec: dict[str, Any], port: int) -> None:
    assert health_check_port(Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(**spec))) == port
