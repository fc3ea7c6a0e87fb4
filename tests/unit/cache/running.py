"""Run informers with a scripted server in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.cache.scripted import ScriptedServer

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Added, Deleted, Event, FeedOptions, Informer, Updated
from ostinato.world import Simulation

DEFAULTS = FeedOptions()


def simulate(scenario: Callable[[Simulation, ScriptedServer], Awaitable[Any]], seed: int = 1, **server: Any) -> None:
    simulation = Simulation(seed)

    async def main() -> None:
        await scenario(simulation, ScriptedServer(simulation, **server))

    simulation.run(main())


def with_informer(
    scenario: Callable[[Simulation, ScriptedServer, Informer], Awaitable[Any]],
    options: FeedOptions = DEFAULTS,
    **server: Any,
) -> None:
    """Run a scenario with an informer that has synced with three Pods, a, b and c."""

    async def main(simulation: Simulation, source: ScriptedServer) -> None:
        for name in "abc":
            source.put(name)
        informer = Informer([source], simulation, options)
        informer.start()
        await informer.synced(timeout=1)
        await scenario(simulation, source, informer)
        await informer.stop()

    simulate(main, **server)


def key(name: str, namespace: str = "default") -> NamespacedName:
    return NamespacedName(namespace, name)


def names(informer: Informer) -> list[str]:
    return sorted(entry.key.name for entry in informer.store.entries())


def state(informer: Informer) -> dict[str, str]:
    """Return the resourceVersion of each object."""
    return {str(entry.key): entry.resource_version for entry in informer.store.entries()}


def truth(source: ScriptedServer) -> dict[str, str]:
    return {str(each): value["metadata"]["resourceVersion"] for each, value in source.objects.items()}


class Recorder:
    """An event handler that keeps the events and summarizes them."""

    def __init__(self) -> None:
        self.items: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.items.append(event)

    @property
    def summaries(self) -> list[str]:
        return [summary(event) for event in self.items]

    def clear(self) -> None:
        self.items.clear()


def summary(event: Event) -> str:
    match event:
        case Added(object=entry, initial=initial):
            return f"{'initial' if initial else 'added'} {entry.key.name}"
        case Updated(new=entry) if event.is_resync:
            return f"resync {entry.key.name}"
        case Updated(new=entry):
            return f"updated {entry.key.name}"
        case Deleted(last_known=entry, final_state_known=known):
            return f"{'deleted' if known else 'gone'} {entry.key.name}"
