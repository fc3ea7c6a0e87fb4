"""Cluster IPs of two families: allocated together or not at all, released, repaired; ranges of both families."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from tests.stage.api import Answer, Api

from ostinato.server.controllers.service_repair import INTERVAL
from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.world import Simulation

_SERVICES = "/api/v1/namespaces/default/services"
_ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
_BOTH = {"ipFamilyPolicy": "RequireDualStack"}


def _service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def with_ranges(ranges: str, test: Callable[[Api], Coroutine[Any, Any, None]], store: Path | None = None) -> None:
    """Run a test with a server that has these ranges, in virtual time."""
    world = Simulation(seed=1)

    async def main() -> None:
        server = Server(world, MemoryLog() if store is None else SQLiteLog(store, world))
        server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
        await server.start(service_ranges=[ip_network(each) for each in ranges.split(",")])
        try:
            await test(Api(server))
        finally:
            await server.close()

    world.run(main())


async def _named(api: Api) -> set[str]:
    return {each["metadata"]["name"] for each in (await api.get(_ADDRESSES)).body["items"]}


def test_services_that_are_created_at_once_get_different_addresses_of_both_families() -> None:
    async def test(api: Api) -> None:
        made: list[Answer] = await asyncio.gather(
            *(api.post(_SERVICES, _service(f"s-{i}", **_BOTH)) for i in range(40))
        )
        addresses = [ip for answer in made for ip in answer.body["spec"]["clusterIPs"]]
        assert len(set(addresses)) == 80
        assert [ip_address(each).version for each in addresses] == [4, 6] * 40
        assert await _named(api) == {*addresses, "10.0.0.1"}

    with_ranges("10.0.0.0/24,fd00:10::/112", test)


def test_the_last_address_of_an_ipv6_range_is_allocated_and_its_first_is_not() -> None:
    async def test(api: Api) -> None:
        made = [await api.post(_SERVICES, _service(f"s-{i}")) for i in range(7)]
        own = (await api.get(f"{_SERVICES}/kubernetes")).body["spec"]["clusterIP"]
        found = [own, *(each.body["spec"]["clusterIP"] for each in made[:6])]
        assert {*found} == {f"fd00::{number}" for number in range(1, 8)}
        assert "range is full" in made[6].message

    with_ranges("fd00::/125", test)


@pytest.mark.parametrize("cidr", ["fd00::/64", "fd00::/8", "fd00:10:96::/112"])
def test_ranges_may_be_large(cidr: str) -> None:
    async def test(api: Api) -> None:
        made = await api.post(_SERVICES, _service("a"))
        assert ip_address(made.body["spec"]["clusterIP"]) in ip_network(cidr)
        name = made.body["spec"]["clusterIP"]
        assert (await api.get(f"{_ADDRESSES}/{name}")).body["spec"]["parentRef"]["name"] == "a"

    with_ranges(cidr, test)


def test_a_service_whose_second_address_is_taken_takes_no_first_one() -> None:
    async def test(api: Api) -> None:
        before = await _named(api)
        given = {**_BOTH, "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "fd00:10::9"]}
        assert (await api.post(_SERVICES, _service("a", ipFamilies=["IPv6"], clusterIP="fd00:10::9"))).code == 201
        refused = await api.post(_SERVICES, _service("b", **given))
        assert "failed to allocate IP fd00:10::9: provided IP is already allocated" in refused.message
        assert await _named(api) == {*before, "fd00:10::9"}

    with_ranges("10.0.0.0/24,fd00:10::/112", test)


def test_a_rejected_upgrade_keeps_no_second_address() -> None:
    async def test(api: Api) -> None:
        await api.post(_SERVICES, _service("a"))
        before = await _named(api)
        change = {"spec": {**_BOTH, "sessionAffinity": "Unknown"}}
        assert (await api.merge(f"{_SERVICES}/a", change)).code == 422
        assert await _named(api) == before

    with_ranges("10.0.0.0/24,fd00:10::/112", test)


def test_an_address_in_another_notation_is_allocated_by_its_canonical_name() -> None:
    async def test(api: Api) -> None:
        made = await api.post(_SERVICES, _service("a", clusterIP="FD00:10:0::0A", ipFamilies=["IPv6"]))
        assert made.body["spec"]["clusterIPs"] == ["FD00:10:0::0A"]
        assert "fd00:10::a" in await _named(api)
        assert (await api.post(_SERVICES, _service("b", clusterIP="fd00:10::a"))).code == 422
        await api.server.world.clock.sleep(2 * INTERVAL * 1.2)
        assert "fd00:10::a" in await _named(api)
        await api.delete(f"{_SERVICES}/a")
        assert "fd00:10::a" not in await _named(api)

    with_ranges("10.0.0.0/24,fd00:10::/112", test)


def test_lost_addresses_of_both_families_are_repaired() -> None:
    async def test(api: Api) -> None:
        made = await api.post(_SERVICES, _service("a", **_BOTH))
        addresses = made.body["spec"]["clusterIPs"]
        for each in addresses:
            await api.delete(f"{_ADDRESSES}/{each}")
        await api.server.world.clock.sleep(INTERVAL * 1.2)
        assert {*addresses} <= await _named(api)
        labels = (await api.get(f"{_ADDRESSES}/{addresses[1]}")).body["metadata"]["labels"]
        assert labels["ipaddress.kubernetes.io/ip-family"] == "IPv6"

    with_ranges("10.0.0.0/24,fd00:10::/112", test)


def test_a_store_with_one_range_gets_that_of_the_other_family(tmp_path: Path) -> None:
    """As kube-apiserver does it; a range that is there is never replaced."""
    seen: list[list[str]] = []

    async def test(api: Api) -> None:
        found = await api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
        seen.append(found.body["spec"]["cidrs"])
        own = (await api.get(f"{_SERVICES}/kubernetes")).body["spec"]
        assert (own["clusterIPs"], own["ipFamilyPolicy"]) == (["10.9.0.1"], "SingleStack")

    for given in ("10.9.0.0/16", "10.8.0.0/16,fd00:8::/112", "10.9.0.0/16,fd00:9::/112", "10.9.0.0/16"):
        with_ranges(given, test, tmp_path / "store.db")
    both = ["10.9.0.0/16", "fd00:9::/112"]
    assert seen == [["10.9.0.0/16"], ["10.9.0.0/16"], both, both]


def test_further_ranges_of_ipv6_are_used_after_the_servers_own() -> None:
    async def test(api: Api) -> None:
        for i in range(6):
            assert (await api.post(_SERVICES, _service(f"s-{i}", ipFamilies=["IPv6"]))).code == 201
        assert (await api.post(_SERVICES, _service("s-6", ipFamilies=["IPv6"]))).code == 201
        assert (await api.post(_SERVICES, _service("full", ipFamilies=["IPv6"]))).code == 500
        more = {"metadata": {"name": "more"}, "spec": {"cidrs": ["fd00:11::/112"]}}
        assert (await api.post("/apis/networking.k8s.io/v1/servicecidrs", more)).code == 201
        made = await api.post(_SERVICES, _service("a", ipFamilies=["IPv6"]))
        assert ip_address(made.body["spec"]["clusterIP"]) in ip_network("fd00:11::/112")

    with_ranges("10.0.0.0/24,fd00:10::/125", test)
