"""FlowSchema controller: the Dangling condition reports whether the priority level exists.

Conditions are updated after every write of a FlowSchema or priority level, before the write is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry
from ostinato.server.verbs import write
from ostinato.world import World

GROUP = "flowcontrol.apiserver.k8s.io"
_MANAGER = "api-priority-and-fairness-config-consumer-v1"


def reconciles_after_write(
    registry: Registry, index: Index, world: World, changed: Callable[[], None]
) -> Mapping[GroupResource, Callable[[], Awaitable[None]]]:
    """By resource, the reconcile to run after a write. `changed`: called after each such write."""
    schemas, levels = (_resource(registry, name) for name in ("flowschemas", "prioritylevelconfigurations"))

    async def reconcile() -> None:
        assert schemas.collection is not None
        changed()
        for entry in list(schemas.collection.entries.values()):
            with suppress(Conflict):  # the concurrent write reconciles it
                await _update_condition(schemas, levels, entry, index, world)

    return dict.fromkeys((schemas.group_resource, levels.group_resource), reconcile)


async def _update_condition(schemas: Resource, levels: Resource, entry: Entry, index: Index, world: World) -> None:
    assert levels.collection is not None
    schema, now = schemas.object(entry.data), write.now(world.clock)
    level = schema["spec"]["priorityLevelConfiguration"].get("name", "")
    condition = dangling(level, now, found=levels.collection.newest(level) is not None)
    conditions = (schema.get("status") or {}).get("conditions") or ()
    before: Json = next((each for each in conditions if each.get("type") == condition["type"]), {})
    if any(before.get(field) != condition[field] for field in ("status", "reason", "message")):
        await write.put_object(index, schemas, with_condition(schemas, schema, condition, now), entry)


def with_condition(schemas: Resource, schema: Json, condition: Json, now: str) -> Json:
    """Return the FlowSchema with a condition applied."""
    config = {"apiVersion": schema["apiVersion"], "kind": schema["kind"]}
    config |= {"metadata": {"name": schema["metadata"]["name"]}, "status": {"conditions": [condition]}}
    return schemas.managers["status"].apply(schema, config, _MANAGER, now, force=True)


def dangling(level: str, now: str, *, found: bool) -> Json:
    what = f"This FlowSchema references the PriorityLevelConfiguration object named {quote(level)}"
    return {
        "type": "Dangling",
        "status": "False" if found else "True",
        "lastTransitionTime": now,
        "reason": "Found" if found else "NotFound",
        "message": f"{what} and it exists" if found else f"{what} but there is no such object",
    }


def _resource(registry: Registry, name: str) -> Resource:
    found = registry.get(GROUP, "v1", name)
    assert found is not None
    return found
