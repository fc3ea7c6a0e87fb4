"""A tour of the library, in one process and without a cluster: API server, client, cache, a kind of our own.

Run it with `python examples/tour.py`; `make demo` shows the control plane instead.
"""

from __future__ import annotations

from ostinato import Conflict, CustomResource, Invalid, ObjectMeta, Struct
from ostinato.api.meta import LabelSelector
from ostinato.cache import CachedClient, Event, Informers
from ostinato.client import Client, MergePatch
from ostinato.crd import crd_of
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, PodSpec, PodTemplateSpec
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation, World


class WidgetSpec(Struct):
    replicas: int = 1
    image: str = "nginx"


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec


def say(title: str, value: object = "") -> None:
    print(f"* {title}" + (f"\n    {value}" if value != "" else ""))


def deployment_of(widget: Widget) -> Deployment:
    """A typed Deployment: an editor completes every name, and mypy checks them."""
    labels = {"app": widget.metadata.name}
    return Deployment(
        metadata=ObjectMeta(name=widget.metadata.name),
        spec=DeploymentSpec(
            replicas=widget.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="main", image=widget.spec.image)]),
            ),
        ),
    )


async def show(world: World, speak: bool = True) -> list[str]:
    """The tour; what it saw, so that two runs can be compared."""
    tell = say if speak else (lambda *_: None)
    seen: list[str] = []

    def heard(event: Event) -> None:
        seen.append(f"{world.clock.now():%H:%M:%S} {type(event).__name__} {event.key}")

    server = Server(world, MemoryLog())
    await server.start()
    tell("An API server is up, in this process", f"at version {server.index.version} of its store")
    async with Client(InProcessTransport(server), world=world, namespace="default", field_manager="tour") as client:
        await client.create(crd_of(Widget))
        tell("It serves a kind that is a Python class", "widgets.example.dev")
        informers = Informers(client)
        informers.of(Widget).add_handler(heard)
        informers.of(Deployment).add_handler(heard)
        informers.start()
        await informers.synced(timeout=30)
        cached = CachedClient(client, informers)
        widget = await cached.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(replicas=3)))
        tell("A Widget is created, and read from the cache at once", await cached.get(Widget, "w"))
        deployment = await cached.apply(deployment_of(widget))
        tell("A Deployment is applied; the server fills in the rest", deployment.spec.strategy)
        try:
            await client.apply(deployment_of(widget), field_manager="somebody-else")
            widget.spec.replicas = 5
            await client.apply(deployment_of(widget), field_manager="somebody-else")
        except Conflict as conflict:
            tell("Somebody else changes a field that is not theirs", conflict)
        try:
            await client.patch(Deployment, "w", MergePatch({"spec": {"selector": {"matchLabels": {"app": "x"}}}}))
        except Invalid as invalid:
            tell("A change that is not allowed is explained", str(invalid).splitlines()[0])
        await cached.delete(Widget, "w")
        await world.clock.sleep(3600)  # an hour; in a simulation it is over at once
        await informers.stop()
    await server.close()
    tell("What the cache told its handlers", "\n    ".join(seen))
    return seen


def main() -> None:
    world = Simulation(seed=1)
    first = world.run(show(world))
    world = Simulation(seed=1)
    again = world.run(show(world, speak=False))
    say("The same hour again, from the same seed", "the same, event by event" if first == again else "it differs!")


if __name__ == "__main__":
    main()
