"""A controller in twenty lines: each Widget owns a Deployment.

- `ostinato run --embedded examples/widget.py` runs it without a cluster.
- `ostinato run --install-crds examples/widget.py` runs it on the cluster of your kubeconfig.
- `python examples/widget.py` does the same once the CustomResourceDefinition is installed.
"""

from typing import Annotated

from ostinato import Context, CustomResource, Ge, Manager, ObjectMeta, Struct, controller
from ostinato.api.meta import LabelSelector
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, PodSpec, PodTemplateSpec


class WidgetSpec(Struct):
    replicas: Annotated[int, Ge(0)] = 1
    image: str = "nginx"


class WidgetStatus(Struct):
    available_replicas: int = 0


class Widget(CustomResource, group="example.dev", version="v1", short_names=["wd"]):
    spec: WidgetSpec
    status: WidgetStatus | None = None


def deployment_for(widget: Widget) -> Deployment:
    labels = {"widget": widget.metadata.name}
    containers = [Container(name="main", image=widget.spec.image)]
    return Deployment(
        metadata=ObjectMeta(name=widget.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=widget.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=containers)),
        ),
    )


@controller(Widget, owns=[Deployment])
async def widgets(widget: Widget, ctx: Context) -> None:
    deployment = await ctx.apply(deployment_for(widget), owner=widget)
    await ctx.status(available_replicas=deployment.status.available_replicas or 0)


Manager().add(widgets).run()
