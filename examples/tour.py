"""A tour of the library without a cluster: API server, client, cache and a custom resource in one process.

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


def show(title: str, value: object = "") -> None:
    print(f"* {title}" + (f"\n    {value}" if value != "" else ""))


def deployment_of(widget: Widget) -> Deployment:
    """Return a typed Deployment: an editor completes every name, and mypy checks them."""
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


async def tour(world: World, verbose: bool = True) -> list[str]:
    """Run the tour and return the cache events, so that two runs can be compared."""
    step = show if verbose else (lambda *_: None)
    events: list[str] = []

    def record(event: Event) -> None:
        events.append(f"{world.clock.now():%H:%M:%S} {type(event).__name__} {event.key}")

    server = Server(world, MemoryLog())
    await server.start()
    step("An API server runs in this process", f"resourceVersion {server.index.version}")
    async with Client(InProcessTransport(server), world=world, namespace="default", field_manager="tour") as client:
        await client.create(crd_of(Widget))
        step("It serves a custom resource that is a Python class", "widgets.example.dev")
        informers = Informers(client)
        informers.of(Widget).add_handler(record)
        informers.of(Deployment).add_handler(record)
        informers.start()
        await informers.synced(timeout=30)
        cached = CachedClient(client, informers)
        widget = await cached.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(replicas=3)))
        step("A Widget is created, and the cache has it", await cached.get(Widget, "w"))
        deployment = await cached.apply(deployment_of(widget))
        step("A Deployment is applied; the server sets the defaults", deployment.spec.strategy)
        try:
            await client.apply(deployment_of(widget), field_manager="other")
            widget.spec.replicas = 5
            await client.apply(deployment_of(widget), field_manager="other")
        except Conflict as conflict:
            step("Another field manager changes a field that it does not own", conflict)
        try:
            await client.patch(Deployment, "w", MergePatch({"spec": {"selector": {"matchLabels": {"app": "x"}}}}))
        except Invalid as invalid:
            step("An invalid change is rejected", str(invalid).splitlines()[0])
        await cached.delete(Widget, "w")
        await world.clock.sleep(3600)  # an hour of virtual time
        await informers.stop()
    await server.close()
    step("The events of the cache", "\n    ".join(events))
    return events


def main() -> None:
    world = Simulation(seed=1)
    first = world.run(tour(world))
    world = Simulation(seed=1)
    again = world.run(tour(world, verbose=False))
    show("The same hour again, from the same seed", "equal, event by event" if first == again else "different!")


if __name__ == "__main__":
    main()
