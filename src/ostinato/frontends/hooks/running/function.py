"""Python hooks: the context of a run, and the program that calls the function."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.object import Object, kind_of
from ostinato.cache.client import CachedClient
from ostinato.frontends.hooks.contexts import Context, Rendering
from ostinato.frontends.hooks.metrics import MetricError, MetricOperation, metric_operation
from ostinato.frontends.hooks.native import HookFunction
from ostinato.frontends.hooks.running.outcome import HookFailed, Outcome
from ostinato.frontends.kernel.operations.specification import Operation, OperationError, operation
from ostinato.frontends.kernel.snapshots.snapshot import Item
from ostinato.world import World

Json = dict[str, Any]


class SnapshotObject:
    """An object of a snapshot: `object` as a dict, `value` the result of `keep`."""

    def __init__(self, item: Item) -> None:
        self._item = item

    @property
    def name(self) -> str:
        return self._item.key.name

    @property
    def namespace(self) -> str:
        return self._item.key.namespace

    @cached_property
    def object(self) -> Json | None:
        """None if the binding does not keep objects."""
        return self._item.object()

    @cached_property
    def value(self) -> Any:
        return self._item.value()

    def read(self, kind: type[Object]) -> Any:
        """Return the object as a class."""
        found = self._item.read(kind)
        if found is None:
            raise ValueError(f"{self._item.key}: the binding does not keep objects (keep_objects=False)")
        return found

    def __repr__(self) -> str:
        return f"<{self._item.key}>"


class TriggerContext:
    """Why the hook runs: one binding context.

    - `binding`: the name; `type`: Startup, Schedule, Synchronization, Event or Group.
    - `change`: Added, Modified or Deleted, of an event. `event`: its object. `objects`: those of a Synchronization.
    """

    def __init__(self, context: Context, rendering: Rendering) -> None:
        self._rendering = rendering
        self.binding = context.binding
        self.group = context.group
        self.change = context.change
        self.type = _type(context)
        self._context = context

    @property
    def event(self) -> SnapshotObject | None:
        item = self._context.item
        return None if item is None else SnapshotObject(item)

    @property
    def objects(self) -> list[SnapshotObject]:
        if not self._context.is_synchronization:
            return []
        return [SnapshotObject(item) for item in self._rendering.items(self.binding)]

    def __repr__(self) -> str:
        return f"<{self.type} {self.binding}>"


class HookContext:
    """The context of a run: what happened, the snapshots, and what to do about it."""

    def __init__(self, rendering: Rendering, client: CachedClient | None, logger: logging.Logger) -> None:
        self.contexts = [TriggerContext(each, rendering) for each in rendering.contexts]
        self._client = client
        self.log = logger
        self.operations: list[Operation] = []
        self.metrics: list[MetricOperation] = []
        names = dict.fromkeys(name for each in rendering.contexts for name in each.include_snapshots)
        self.snapshots: dict[str, list[SnapshotObject]] = {
            name: [SnapshotObject(item) for item in rendering.items(name)] for name in names
        }

    @property
    def client(self) -> CachedClient:
        """For `async def`. Raises RuntimeError while a recording is replayed: there is no cluster."""
        if self._client is None:
            raise RuntimeError("ctx.client: there is no cluster while a recording is replayed")
        return self._client

    @property
    def events(self) -> list[TriggerContext]:
        """The contexts that are events."""
        return [each for each in self.contexts if each.type == "Event"]

    # Object operations, executed when the function has returned

    def create(self, instance: AnyObject) -> None:
        self._add("Create", object=_dict(instance))

    def create_if_not_exists(self, instance: AnyObject) -> None:
        self._add("CreateIfNotExists", object=_dict(instance))

    def create_or_update(self, instance: AnyObject) -> None:
        self._add("CreateOrUpdate", object=_dict(instance))

    def delete(self, kind: Any, name: str, *, namespace: str = "", propagation: str = "Foreground") -> None:
        """`propagation`: Foreground waits until it is gone; or Background, or Orphan. Defaults to Foreground."""
        verbs = {"Foreground": "Delete", "Background": "DeleteInBackground", "Orphan": "DeleteNonCascading"}
        self._add(verbs[propagation], **_target(kind, name, namespace))

    def merge_patch(self, kind: Any, name: str, patch: Json, *, namespace: str = "", **options: Any) -> None:
        """`options`: subresource=, ignoreMissingObject=."""
        self._add("MergePatch", mergePatch=patch, **_target(kind, name, namespace), **options)

    def json_patch(self, kind: Any, name: str, patch: list[Json], *, namespace: str = "", **options: Any) -> None:
        self._add("JSONPatch", jsonPatch=patch, **_target(kind, name, namespace), **options)

    patch = merge_patch

    def _add(self, verb: str, **fields: Any) -> None:
        self.operations.append(operation({"operation": verb, **fields}))

    # Metrics

    def gauge(self, name: str, value: float, labels: Mapping[str, str] | None = None, *, group: str = "") -> None:
        """Set a gauge. `group`: series of the group that the run does not set disappear. Defaults to none."""
        self._measure("set", name, value, labels, group)

    def counter(self, name: str, value: float = 1, labels: Mapping[str, str] | None = None, *, group: str = "") -> None:
        """Increment a counter."""
        self._measure("add", name, value, labels, group)

    def observe(self, name: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Add to a histogram."""
        self._measure("observe", name, value, labels, "")

    def expire(self, group: str) -> None:
        """Drop the series of a group."""
        self.metrics.append(metric_operation({"action": "expire", "group": group}))

    def _measure(self, action: str, name: str, value: float, labels: Mapping[str, str] | None, group: str) -> None:
        found = {"action": action, "name": name, "value": value, "labels": dict(labels or {}), "group": group}
        self.metrics.append(metric_operation(found))


class FunctionProgram:
    def __init__(
        self, declared: HookFunction, world: World, client: CachedClient | None, logger: logging.Logger
    ) -> None:
        self._declared = declared
        self._world = world
        self._client = client
        self._logger = logger

    async def run(self, rendering: Rendering, fields: Mapping[str, str]) -> Outcome:
        context = HookContext(rendering, self._client, self._logger)
        seconds = self._declared.config.options.timeout
        try:
            if seconds > 0:
                async with self._world.clock.timeout(seconds):
                    await self._call(context)
            else:
                await self._call(context)
        except TimeoutError as error:
            raise HookFailed(str(error) or f"timed out after {seconds:g} s") from None
        except (OperationError, MetricError) as error:
            raise HookFailed(str(error)) from None
        except Exception as error:
            self._logger.exception("hook failed hook=%s queue=%s", fields.get("hook", ""), fields.get("queue", ""))
            raise HookFailed(f"{type(error).__name__}: {error}") from error
        return Outcome(operations=context.operations, metrics=context.metrics)

    async def _call(self, context: HookContext) -> None:
        if self._declared.is_async:
            await self._declared.function(context)
        else:
            await self._world.executor.run(self._declared.function, context)

    async def close(self) -> None:
        """Nothing is held between runs."""


def _type(context: Context) -> str:
    if context.source == "onStartup":
        return "Startup"
    if context.group:
        return "Group"
    if context.source == "schedule":
        return "Schedule"
    return "Synchronization" if context.change is None else "Event"


def _dict(instance: AnyObject) -> Json:
    return instance if isinstance(instance, dict) else to_dict(instance)


def _target(kind: Any, name: str, namespace: str) -> Json:
    if isinstance(kind, str):
        api_version, _, short = kind.rpartition("/")
        return {"apiVersion": api_version, "kind": short, "name": name, "namespace": namespace}
    gvk = kind_of(kind).gvk if isinstance(kind, type) else kind
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name, "namespace": namespace}
