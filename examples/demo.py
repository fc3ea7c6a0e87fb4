"""What Ostinato can do so far, without a cluster: typed kinds, patches, server-side apply, simulated time.

Run it with `make demo`.
"""

import msgspec

from ostinato import Conflict, CustomResource, ObjectMeta, Struct
from ostinato.api import labels
from ostinato.api.apply import FieldManager
from ostinato.api.codec import from_dict, to_dict
from ostinato.api.object import kind_of
from ostinato.api.patch import strategic_merge
from ostinato.api.schema import builtin_schemas
from ostinato.kinds import apps_v1, core_v1
from ostinato.world import Simulation, World


class WidgetSpec(Struct):
    replicas: int = 1
    image: str = "nginx"


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec


def say(title: str, value: object) -> None:
    print(f"\n{title}\n  {value}")


def deployment_of(widget: Widget) -> apps_v1.Deployment:
    """A typed Deployment: an editor completes every name, and mypy checks them."""
    selector = {"app": widget.metadata.name}
    return apps_v1.Deployment(
        metadata=ObjectMeta(name=widget.metadata.name, namespace="default"),
        spec=apps_v1.DeploymentSpec(
            replicas=widget.spec.replicas,
            selector=core_v1.LabelSelector(match_labels=selector),
            template=core_v1.PodTemplateSpec(
                metadata=ObjectMeta(labels=selector),
                spec=core_v1.PodSpec(containers=[core_v1.Container(name="main", image=widget.spec.image)]),
            ),
        ),
    )


def objects() -> None:
    widget = from_dict(Widget, {"metadata": {"name": "w"}, "spec": {"replicas": 3}})
    say("A custom kind is a class", widget)
    deployment = to_dict(deployment_of(widget))
    say("A typed Deployment on the wire", msgspec.json.encode(deployment).decode())
    schema = builtin_schemas().of(kind_of(apps_v1.Deployment).gvk)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}}}
    patched = strategic_merge(deployment, patch, schema)
    say("A strategic merge patch finds the container by its name", patched["spec"]["template"]["spec"]["containers"])
    say("A selector", labels.parse("app in (w, x), tier!=db").matches({"app": "w"}))


def ownership() -> None:
    gvk = kind_of(apps_v1.Deployment).gvk
    manager = FieldManager(gvk, {gvk.api_version: builtin_schemas().of(gvk)})
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {"replicas": 3}}
    live = manager.apply(None, config, "alice", "2026-01-01T00:00:00Z")
    say("Server-side apply knows who owns what", live["metadata"]["managedFields"][0]["fieldsV1"])
    try:
        manager.apply(live, {**config, "spec": {"replicas": 5}}, "bob", "2026-01-01T00:00:01Z")
    except Conflict as conflict:
        say("... and says so when somebody else changes it", conflict)


async def a_day(world: World) -> str:
    began = world.clock.now()
    await world.clock.sleep(86_000)
    return f"from {began:%H:%M:%S} to {world.clock.now():%H:%M:%S}, and a pod called web-{world.ids.suffix()}"


def simulated() -> None:
    for seed in (1, 1, 2):
        world = Simulation(seed)
        say(f"A simulated day, seed {seed}", world.run(a_day(world)))


if __name__ == "__main__":
    objects()
    ownership()
    simulated()
