"""Mapping: kinds and names to resources, however new, ambiguous or short."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.stage.client import Stage, staged
from tests.stage.kinds import WIDGETS

from ostinato.api.errors import ServiceUnavailable
from ostinato.api.gvk import GroupKind, GroupVersion, GroupVersionKind
from ostinato.api.object import KindInfo, plural_of
from ostinato.client.discovery.discovery import ApiResource, ApiVersion, Catalogue
from ostinato.client.discovery.mapping import AmbiguousResource, Mapper, NoSuchResource
from ostinato.client.transport.exchange import NoSuchKind
from ostinato.world import Simulation


def _info(group: str, version: str, kind: str, *short: str, plural: str = "", singular: str = "") -> KindInfo:
    return KindInfo(
        gvk=GroupVersionKind(group, version, kind),
        plural=plural or plural_of(kind),
        singular=singular or kind.lower(),
        namespaced=True,
        short_names=short,
        categories=("all",) if kind in ("Pod", "Deployment") else (),
    )


def _catalogue(*infos: KindInfo, failed: dict[GroupVersion, Exception] | None = None) -> Catalogue:
    versions: dict[GroupVersion, list[ApiResource]] = {}
    for info in infos:
        versions.setdefault(info.gvk.group_version, []).append(ApiResource(info))
    listed = tuple(ApiVersion(version, tuple(resources)) for version, resources in versions.items())
    return Catalogue(listed, failed or {})


USUAL = _catalogue(
    _info("metrics.k8s.io", "v1beta1", "PodMetrics", plural="pods", singular="pod"),
    _info("", "v1", "Pod", "po"),
    _info("", "v1", "Event", "ev"),
    _info("apps", "v1", "Deployment", "deploy"),
    _info("apps", "v1beta1", "Deployment", "deploy"),
    _info("apps", "v1beta1", "Oldie"),
    _info("events.k8s.io", "v1", "Event", "ev"),
    _info("storage.k8s.io", "v1", "StorageClass", "sc"),
    _info("example.dev", "v2", "Widget", "wd"),
    _info("example.dev", "v1", "Widget", "wd"),
    _info("example.org", "v1", "Widget", "wd"),
    _info("example.org", "v1", "Deploy"),
)


class Served:
    """Discovery of a server whose catalogue a test may change."""

    def __init__(self, world: Simulation, catalogue: Catalogue | Exception) -> None:
        self.world = world
        self.catalogue = catalogue
        self.read_at: list[float] = []

    async def read(self) -> Catalogue:
        self.read_at.append(self.world.clock.monotonic())
        found = self.catalogue
        await self.world.clock.sleep(0.1)
        if isinstance(found, Exception):
            raise found
        return found


def _mapper(world: Simulation, catalogue: Catalogue | Exception = USUAL) -> tuple[Mapper, Served]:
    served = Served(world, catalogue)
    return Mapper(served, world.clock), served  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pods", "/v1, Kind=Pod"),
        ("pod", "/v1, Kind=Pod"),
        ("Pod", "/v1, Kind=Pod"),
        ("po", "/v1, Kind=Pod"),
        ("pods.metrics.k8s.io", "metrics.k8s.io/v1beta1, Kind=PodMetrics"),
        ("events", "/v1, Kind=Event"),
        ("events.events.k8s.io", "events.k8s.io/v1, Kind=Event"),
        ("ev.events.k8s.io", "events.k8s.io/v1, Kind=Event"),
        ("deployments", "apps/v1, Kind=Deployment"),
        ("deployments.apps", "apps/v1, Kind=Deployment"),
        ("deployments.v1beta1.apps", "apps/v1beta1, Kind=Deployment"),
        ("deploy", "example.org/v1, Kind=Deploy"),
        ("deploy.apps", "apps/v1, Kind=Deployment"),
        ("oldies", "apps/v1beta1, Kind=Oldie"),
        ("storageclass.storage", "storage.k8s.io/v1, Kind=StorageClass"),
        ("sc.storage", "storage.k8s.io/v1, Kind=StorageClass"),
        ("widgets", "example.dev/v2, Kind=Widget"),
        ("widgets.v1.example.dev", "example.dev/v1, Kind=Widget"),
        ("widgets.example.org", "example.org/v1, Kind=Widget"),
        ("wd.example", "example.dev/v2, Kind=Widget"),
    ],
)
def test_names_are_resolved_as_in_kubectl(name: str, found: str) -> None:
    world = Simulation(1)
    mapper, _ = _mapper(world)
    assert str(world.run(mapper.find(name)).gvk) == found


GO = msgspec.json.decode((Path(__file__).parents[3] / "data" / "client" / "client_go.json").read_bytes())
# The version of a short name counts, which kubectl forgets; of two resources with one name none is chosen.
OURS = {"deploy.v1beta1.apps", "wd.v1.example.dev", "same", "same.ambiguous.dev"}


@pytest.mark.parametrize(("name", "kind", "warned"), [each for each in GO["names"] if each[0] not in OURS])
def test_names_are_those_of_client_go(name: str, kind: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    world = Simulation(1)
    infos = [
        _info(group, version, kind, *short, plural=plural, singular=singular)
        for group, version, kind, plural, singular, short in GO["catalogue"]
    ]
    mapper, _ = _mapper(world, _catalogue(*infos))
    if not kind:
        with pytest.raises(NoSuchResource):
            world.run(mapper.find(name))
        return
    assert str(world.run(mapper.find(name)).gvk) == kind
    assert not warned or caplog.messages


@pytest.mark.parametrize("name", ["nope", "", "pods.v2.apps", "deployments.v9.apps", "pods.nowhere"])
def test_an_unknown_name_is_an_error(name: str) -> None:
    world = Simulation(1)
    mapper, served = _mapper(world)
    with pytest.raises(NoSuchResource, match=f'the server doesn\'t have a resource type "{name}"'):
        world.run(mapper.find(name))
    assert len(served.read_at) == 1


def test_two_resources_of_one_version_with_one_name_are_ambiguous() -> None:
    world = Simulation(1)
    mapper, _ = _mapper(world, _catalogue(_info("g", "v1", "A", singular="x"), _info("g", "v1", "B", singular="x")))
    with pytest.raises(AmbiguousResource, match=r"x matches multiple resources of g/v1: as, bs"):
        world.run(mapper.find("x"))


def test_a_short_name_that_several_groups_have_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    world = Simulation(1)
    mapper, _ = _mapper(world)
    world.run(mapper.find("wd"))
    assert caplog.messages == ["ambiguous short name name=wd chosen=widgets.example.dev others=widgets.example.org"]


def test_a_kind_in_the_version_that_the_server_prefers() -> None:
    world = Simulation(1)
    mapper, _ = _mapper(world)
    assert world.run(mapper.preferred(GroupKind("example.dev", "Widget"))).gvk.version == "v2"
    with pytest.raises(NoSuchResource, match='no matches for kind "Nope" in group "g"'):
        world.run(mapper.preferred(GroupKind("g", "Nope")))


def test_a_category_has_each_kind_once() -> None:
    world = Simulation(1)
    mapper, _ = _mapper(world)
    assert [str(info.gvk) for info in world.run(mapper.category("all"))] == [
        "/v1, Kind=Pod",
        "apps/v1, Kind=Deployment",
    ]


def test_a_kind_is_looked_up_without_asking_again() -> None:
    world = Simulation(1)
    mapper, served = _mapper(world)

    async def main() -> None:
        for _ in range(5):
            assert (await mapper.kind(GroupVersionKind("apps", "v1", "Deployment"))).plural == "deployments"
            assert await mapper.catalogue() is USUAL

    world.run(main())
    assert len(served.read_at) == 1


def test_a_kind_that_was_defined_a_moment_ago_is_found() -> None:
    world = Simulation(1)
    mapper, served = _mapper(world, _catalogue())
    widget = GroupVersionKind("example.dev", "v1", "Widget")

    async def main() -> None:
        with pytest.raises(NoSuchKind):
            await mapper.kind(widget)
        served.catalogue = USUAL
        assert (await mapper.kind(widget)).plural == "widgets"

    world.run(main())
    assert len(served.read_at) == 2


def test_many_failed_lookups_read_discovery_once_a_second() -> None:
    world = Simulation(1)
    mapper, served = _mapper(world, _catalogue())
    widget = GroupVersionKind("example.dev", "v1", "Widget")
    answers: list[str] = []

    async def ask(delay: float) -> None:
        await world.clock.sleep(delay)
        defined = served.catalogue is USUAL
        try:
            await mapper.kind(widget)
            answers.append("found")
        except NoSuchKind:
            assert not defined, "it was there when it was asked for"
            answers.append("missed")

    async def define() -> None:
        await world.clock.sleep(2.05)  # while a reading is under way that does not know of it
        served.catalogue = USUAL

    async def main() -> None:
        await asyncio.gather(define(), *[ask(number / 100) for number in range(400)])

    world.run(main())
    gaps = [later - earlier for earlier, later in zip(served.read_at, served.read_at[1:], strict=False)]
    assert len(served.read_at) <= 5
    assert min(gaps) >= 1.0
    assert answers.count("found") >= 195


def test_a_version_with_stale_discovery_is_not_reported_as_missing() -> None:
    world = Simulation(1)
    failure = ServiceUnavailable.of("stale GroupVersion discovery: g/v1")
    mapper, _ = _mapper(world, _catalogue(failed={GroupVersion("g", "v1"): failure}))
    with pytest.raises(ServiceUnavailable, match="stale GroupVersion discovery: g/v1"):
        world.run(mapper.kind(GroupVersionKind("g", "v1", "Thing")))


def test_a_failed_read_of_discovery_is_raised_and_rate_limited() -> None:
    world = Simulation(1)
    mapper, served = _mapper(world, ServiceUnavailable.of("restarting"))

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(ServiceUnavailable):
                await mapper.find("pods")
        served.catalogue = USUAL
        await mapper.find("pods")

    world.run(main())
    assert [round(at, 6) for at in served.read_at] == [0, 1, 2, 3]


@staged
async def test_names_on_our_server(stage: Stage) -> None:
    await stage.client.create(WIDGETS)
    assert (await stage.client.mapper.find("wd")).gvk == GroupVersionKind("example.dev", "v1", "Widget")
    assert (await stage.client.mapper.find("hpa")).gvk.version == "v2"
    assert "deployments" in {info.plural for info in await stage.client.mapper.category("all")}
