"""Hooks of a chart: objects that are created at certain points of an action, in the order of their weights.

- Jobs and Pods must complete before the next hook runs; other objects only have to be created.
- Delete policies as in Helm: before a new one is created (the default), after a success, after a failure.
- Hooks are skipped in a namespace that is being deleted: nothing can be created there, and it would never go.
- A process that dies during a hook runs the hooks of the action again: they run at least once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import APIError, Forbidden
from ostinato.api.owners import set_controller_reference
from ostinato.api.time import MicroTime
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured
from ostinato.controllers.objects.readiness import readiness_of
from ostinato.frontends.charts.actions.objects import ReleaseError, ReleaseObjects
from ostinato.frontends.charts.manifests import objects_of
from ostinato.frontends.charts.releases.record import HookRecord

Json = dict[str, Any]

BEFORE, SUCCEEDED, FAILED = "before-hook-creation", "hook-succeeded", "hook-failed"
_COMPLETING: Final = frozenset({"Job", "Pod"})
_POLL: Final = 1.0  # seconds


def _is_terminating(error: Exception) -> bool:
    """Whether an object cannot be created because its namespace is being deleted."""
    return isinstance(error, Forbidden) and error.has_cause("NamespaceTerminating")


class HookRunner:
    def __init__(self, client: CachedClient, objects: ReleaseObjects, owner: Json, timeout: float) -> None:
        """`timeout`: seconds for each hook."""
        self._client = client
        self._objects = objects
        self._owner = owner
        self._timeout = timeout

    async def run(self, hooks: Iterable[HookRecord], event: str) -> None:
        """Run the hooks of an event. Raises `ReleaseError` for the first that fails."""
        chosen = sorted((each for each in hooks if event in each.events), key=lambda each: (each.weight, each.name))
        done: list[HookRecord] = []
        for hook in chosen:
            try:
                await self._run(hook)
            except (ReleaseError, APIError) as error:
                if _is_terminating(error):
                    continue  # nothing can run in the namespace any more
                await self._clean([hook], FAILED)
                await self._clean(done, SUCCEEDED)
                raise ReleaseError(f"{event} hook {hook.path}: {error}") from error
            done.append(hook)
        await self._clean(reversed(done), SUCCEEDED)

    async def _run(self, hook: HookRecord) -> None:
        policies = hook.delete_policies or [BEFORE]
        if BEFORE in policies:
            await self._delete(hook)
        hook.last_run = {"started_at": self._now(), "completed_at": "", "phase": "Running"}
        try:
            for info, instance in await self._objects.placed(objects_of(hook.manifest)):
                wanted = copy.deepcopy(instance)
                if self._objects.owned(info, wanted) is not None:
                    set_controller_reference(self._owner, wanted)
                created = await self._client.create(wanted)
                if info.gvk.kind in _COMPLETING:
                    await self._completed(created)
        except BaseException:
            hook.last_run |= {"completed_at": self._now(), "phase": "Failed"}
            raise
        hook.last_run |= {"completed_at": self._now(), "phase": "Succeeded"}

    async def _completed(self, instance: Json) -> None:
        """Wait until a Job or Pod has completed."""
        view, key = Unstructured(access.gvk(instance)), access.key(instance)
        try:
            async with self._client.world.clock.timeout(self._timeout):
                while True:
                    found = await self._client.live.get(view, key, missing=None)
                    if found is None:
                        raise ReleaseError(f"{access.describe(instance)} was deleted before it had completed")
                    readiness = readiness_of(found, complete=True)
                    if readiness.state == "Failed":
                        raise ReleaseError(f"{access.describe(instance)} failed: {readiness.message}")
                    if readiness:
                        return
                    await self._client.world.clock.sleep(_POLL)
        except TimeoutError:
            raise ReleaseError(f"{access.describe(instance)} has not completed after {self._timeout:g} s") from None

    async def _clean(self, hooks: Iterable[HookRecord], policy: str) -> None:
        for each in hooks:
            if policy in each.delete_policies:
                await self._delete(each)

    async def _delete(self, hook: HookRecord) -> None:
        """Delete the objects of a hook, and wait until they are gone."""
        for info, instance in await self._objects.placed(objects_of(hook.manifest)):
            if not access.name(instance):
                continue  # a generated name
            view, key = Unstructured(info.gvk, info), access.key(instance)
            await self._client.delete(view, key, propagation="Background", missing_ok=True)
            try:
                async with self._client.world.clock.timeout(self._timeout):
                    while await self._client.live.get(view, key, missing=None) is not None:
                        await self._client.world.clock.sleep(_POLL)
            except TimeoutError:
                raise ReleaseError(f"{access.describe(instance)} is not gone after {self._timeout:g} s") from None

    def _now(self) -> str:
        return str(MicroTime.of(self._client.world.clock.now()))
