"""Pod CIDRs of Nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_network

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import Node, NodeSpec
from ostinato.plane.access import identities
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers
from ostinato.plane.network.cidr_pool import pod_ranges

IPAM = "node-ipam-controller"


async def join(stage: Stage, *names: str, cidrs: tuple[str, ...] = ()) -> None:
    for name in names:
        spec = NodeSpec(pod_cidr=cidrs[0] if cidrs else None, pod_cidrs=list(cidrs))
        await stage.client.create(Node(metadata=ObjectMeta(name=name), spec=spec))


async def cidrs(stage: Stage) -> dict[str, list[str]]:
    await stage.settle()
    return {each.metadata.name: each.spec.pod_cidrs for each in await stage.client.list(Node)}


def with_ranges(play: Callable[[Stage], Awaitable[None]], *ranges: str, services: str = "") -> None:
    async def started(stage: Stage) -> None:
        options = Options(
            pod_ranges=pod_ranges([ip_network(each) for each in ranges], {}),
            service_ranges=(ip_network(services),) if services else (),
        )
        start(stage, options)
        await play(stage)

    on_stage(started)


def start(stage: Stage, options: Options) -> None:
    without = set(CONTROLLERS) - {IPAM}
    stage.run(lambda manager: add_controllers(manager, options, without=without), identity=identities.MANAGER)


def test_each_node_gets_a_cidr_of_each_family() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", "b")
        assert await cidrs(stage) == {
            "a": ["10.244.0.0/24", "fd00:10:244::/64"],
            "b": ["10.244.1.0/24", "fd00:10:244:1::/64"],
        }
        assert (await stage.client.get(Node, "b")).spec.pod_cidr == "10.244.1.0/24"

    with_ranges(play, "10.244.0.0/16", "fd00:10:244::/56")


def test_the_family_of_the_first_range_is_that_of_the_first_cidr() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        assert await cidrs(stage) == {"a": ["fd00:10:244::/64", "10.244.0.0/24"]}

    with_ranges(play, "fd00:10:244::/56", "10.244.0.0/16")


def test_cidrs_that_nodes_have_are_not_given_again_also_after_a_restart() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", cidrs=("10.1.0.0/24",))
        await join(stage, "b")
        assert await cidrs(stage) == {"a": ["10.1.0.0/24"], "b": ["10.1.1.0/24"]}
        await stage.stop_managers()
        start(stage, Options(pod_ranges=pod_ranges([ip_network("10.1.0.0/22")], {})))
        await join(stage, "c", "d", "e")
        found = await cidrs(stage)
        assert [found[name] for name in "abcde"] == [
            ["10.1.0.0/24"],
            ["10.1.1.0/24"],
            ["10.1.2.0/24"],
            ["10.1.3.0/24"],
            [],
        ]

    with_ranges(play, "10.1.0.0/22")


def test_a_node_without_a_free_cidr_gets_one_when_another_is_deleted() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", "b")
        assert await cidrs(stage) == {"a": ["10.1.0.0/24", "fd00:1::/64"], "b": []}
        assert ("CIDRNotAvailable", "Node b status is now: CIDRNotAvailable") in await stage.events("b")
        await stage.client.delete(Node, "a")
        await stage.world.clock.sleep(20)
        first, second = (await cidrs(stage))["b"]
        assert first == "10.1.0.0/24"
        assert ip_network(second).subnet_of(ip_network("fd00:1::/56"))  # type: ignore[arg-type]

    with_ranges(play, "10.1.0.0/24", "fd00:1::/56")


def test_ranges_of_services_are_not_used_for_pods() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        assert await cidrs(stage) == {"a": ["10.1.1.0/24"]}

    with_ranges(play, "10.1.0.0/16", services="10.1.0.0/24")


def test_without_ranges_nodes_get_no_cidrs() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        assert await cidrs(stage) == {"a": []}

    on_stage(play, IPAM)
