"""Events that a stage publishes, of one of the two API groups with an Event kind."""

from __future__ import annotations

from typing import Generic, TypeVar

from tests.stage.client import Stage

from ostinato.kinds import core_v1, events_v1
from ostinato.manager.events.events import Events

E = TypeVar("E", core_v1.Event, events_v1.Event)


class PublishedEvents(Generic[E]):
    def __init__(self, stage: Stage, kind: type[E]) -> None:
        self.stage = stage
        self.kind: type[E] = kind
        self.events = Events(stage.client, stage.world)
        is_core = kind is core_v1.Event
        recorder = self.events.core_recorder if is_core else self.events.recorder
        self.recorder = recorder("deployment-controller" if is_core else "widgets")
        self.events.start()

    async def settled(self, seconds: float = 1.0) -> list[E]:
        await self.stage.clock.sleep(seconds)
        return [event async for event in self.stage.client.list(self.kind) if event.reason != "Ready"]
