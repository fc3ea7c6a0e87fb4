from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.api.codec import from_dict
from ostinato.api.owners import controller_reference_to
from ostinato.api.selectors.labels import from_set
from ostinato.cache.store.entry import Entry
from ostinato.client import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager
from ostinato.plane.objects.decoded import DecodedCache
from ostinato.plane.ownership.controller_refs import add_controller_index, claim_entries


def config_map(name: str, **labels: str) -> ConfigMap:
    return from_dict(ConfigMap, {"metadata": {"name": name, "labels": labels}, "data": {"key": "1"}})


class Nothing:
    async def reconcile(self, request: Request, ctx: Context) -> None: ...


def watch(manager: Manager) -> None:
    add_controller_index(manager, ConfigMap)
    manager.build("watcher").watch_for(ConfigMap).complete(Nothing())


def test_each_state_is_decoded_once_and_missing_entries_are_forgotten() -> None:
    async def play(stage: Stage) -> None:
        read: list[str] = []

        def value(entry: Entry) -> str:
            read.append(entry.key.name)
            return entry.read(ConfigMap).data["key"]

        manager = stage.run(watch)
        for name in ("a", "b"):
            await stage.client.create(config_map(name))
        await stage.settle()
        store = manager.informers.of(ConfigMap).store

        def entries() -> list[Entry]:
            return [entry for entry in store.entries() if entry.key.namespace == "default"]  # another client updated it

        decoded = DecodedCache(value)
        assert decoded.get("me", entries()) == ["1", "1"]
        await stage.client.patch(ConfigMap, "b", MergePatch({"data": {"key": "2"}}))
        await stage.settle()
        assert decoded.get("me", entries()) == ["1", "2"]
        assert read == ["a", "b", "b"]
        await stage.client.delete(ConfigMap, "a")
        await stage.settle()
        assert decoded.get("me", entries()) == ["2"]
        assert len(decoded) == 1
        decoded.forget("me")
        assert len(decoded) == 0

    on_stage(play)


def test_claimed_entries_equal_claimed_objects() -> None:
    async def play(stage: Stage) -> None:
        manager = stage.run(watch)
        await stage.settle()
        owner = await stage.client.create(config_map("owner"))
        other = await stage.client.create(config_map("other"))
        for name, label, manages in (
            ("mine", "web", owner),
            ("orphan", "web", None),
            ("let-go", "db", owner),
            ("stranger", "web", other),
            ("named-otherwise", "web", None),
        ):
            made = config_map(name, app=label)
            made.metadata.owner_references = [] if manages is None else [controller_reference_to(manages)]
            await stage.client.create(made)
        await stage.settle()
        entries = await claim_entries(
            manager.client, owner, from_set({"app": "web"}), ConfigMap, lambda entry: "-" not in entry.key.name
        )
        assert [entry.key.name for entry in entries] == ["mine", "orphan"]
        owners = {
            each.metadata.name: [reference.name for reference in each.metadata.owner_references]
            for each in await stage.client.list(ConfigMap)
        }
        assert owners["orphan"] == ["owner"]
        assert owners["let-go"] == owners["named-otherwise"] == []
        assert owners["stranger"] == ["other"]

    on_stage(play)
