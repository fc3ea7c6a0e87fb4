"""Objects that are read again and again are decoded once per state."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api, asking

from ostinato.server.resources.lister import Lister

MAPS = "/api/v1/namespaces/default/configmaps"


def lister(api: Api) -> Lister:
    return Lister(api.server.registry, "", "v1", "configmaps")


def config(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def test_a_shared_object_is_decoded_once_per_state() -> None:
    @asking
    async def talk(api: Api) -> None:
        maps = lister(api)
        assert maps.shared("a", "default") is None
        await api.post(MAPS, config("a", x="1"))
        first = maps.shared("a", "default")
        assert first is not None
        assert first["data"] == {"x": "1"}
        assert maps.shared("a", "default") is first
        assert maps.shared("a", "other") is None
        await api.put(f"{MAPS}/a", config("a", x="2"))
        second = maps.shared("a", "default")
        assert second is not None
        assert second["data"] == {"x": "2"}
        await api.delete(f"{MAPS}/a")
        assert maps.shared("a", "default") is None
        await api.post(MAPS, config("a", x="3"))
        assert (maps.shared("a", "default") or {})["data"] == {"x": "3"}

    talk()


def test_few_shared_objects_are_kept() -> None:
    @asking
    async def talk(api: Api) -> None:
        maps = lister(api)
        for number in range(200):
            await api.post(MAPS, config(f"a{number}", x=str(number)))
            assert (maps.shared(f"a{number}", "default") or {})["data"] == {"x": str(number)}
        assert len(maps._shared) <= 64
        assert (maps.shared("a0", "default") or {})["data"] == {"x": "0"}

    talk()


def test_all_objects_are_those_of_the_newest_state() -> None:
    @asking
    async def talk(api: Api) -> None:
        maps = lister(api)
        assert maps.all() == []
        await api.post(MAPS, config("a", x="1"))
        assert [each["data"] for each in maps.all()] == [{"x": "1"}]
        assert maps.all() is maps.all()
        await api.put(f"{MAPS}/a", config("a", x="2"))
        await api.post(MAPS, config("b", x="3"))
        assert [each["data"] for each in maps.all()] == [{"x": "2"}, {"x": "3"}]
        await api.delete(f"{MAPS}/a")
        assert [each["data"] for each in maps.all()] == [{"x": "3"}]

    talk()
