"""Wait for a condition of an object, with a watch instead of polling.

await client.wait_for(Deployment, "web", "Available", timeout=60)
await client.wait_for(Pod, "web-0", lambda pod: pod is not None and pod.status.phase == "Running", timeout=60)
await client.wait_for(Pod, "web-0", is_deleted, timeout=60)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.conditions import conditions_of, is_condition_true
from ostinato.api.errors import Expired, Gone
from ostinato.api.gvk import NamespacedName
from ostinato.client.collection import Collection
from ostinato.client.list_watch import ListOptions
from ostinato.client.listing import Listing
from ostinato.client.views import View
from ostinato.client.watch import Watch
from ostinato.world import World

T = TypeVar("T")

Condition = str | Callable[[T | None], bool]


class WaitTimedOut(TimeoutError):  # noqa: N818
    """The condition was not met in time. The message names the condition and the last state of the object."""


def is_deleted(instance: object | None) -> bool:
    """Condition: the object does not exist."""
    return instance is None


def exists(instance: object | None) -> bool:
    """Condition: the object exists."""
    return instance is not None


class Waiting:
    """Wait for one condition of one object. `collection`: selects only that object."""

    def __init__(self, collection: Collection, view: View[Any], world: World, condition: Condition[Any]) -> None:
        self._collection = collection
        self._view = view
        self._world = world
        self._condition = condition
        self._found: Any = None  # the last state of the object

    async def run(self, key: NamespacedName, seconds: float | None) -> Any:
        limit = self._world.clock.timeout(seconds)
        try:
            async with limit:
                while not await self._list_and_watch():
                    pass
        except TimeoutError:
            if not limit.expired():  # of a request, not of this wait
                raise
            kind = self._view.gvk.kind
            raise WaitTimedOut(
                f"{kind} {key}: timed out after {seconds:g} s waiting {self._wanted()}; {self._state()}"
            ) from None
        return self._found

    async def _list_and_watch(self) -> bool:
        """Return True when the condition is met, False if the resourceVersion expired and a relist is needed."""
        items = await Listing(self._collection, self._view, ListOptions())
        self._found = items[0] if items else None
        if self._holds():
            return True
        async with Watch(self._collection, self._view, self._world, since=items.resource_version) as events:
            try:
                async for event in events:
                    self._found = None if event.type == "DELETED" else event.object
                    if self._holds():
                        return True
            except (Expired, Gone):
                pass
        return False

    def _holds(self) -> bool:
        if isinstance(self._condition, str):
            return self._found is not None and is_condition_true(cast("AnyObject", self._found), self._condition)
        return self._condition(self._found)

    def _wanted(self) -> str:
        if isinstance(self._condition, str):
            return f"for condition {self._condition}"
        return f"until {getattr(self._condition, '__name__', 'the condition is met')}"

    def _state(self) -> str:
        if self._found is None:
            return "the object does not exist"
        if not isinstance(self._condition, str):
            return "the object exists, the condition is not met"
        for each in conditions_of(self._found):
            condition = each if isinstance(each, dict) else to_dict(each)
            if condition.get("type") == self._condition:
                parts = [condition.get(name) for name in ("status", "reason", "message")]
                return "the condition is " + ": ".join(str(part) for part in parts if part)
        return "the object has no such condition"
