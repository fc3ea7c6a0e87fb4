"""Kubernetes' sample-controller: a Foo owns a Deployment; a Deployment of another owner is not changed."""

from __future__ import annotations

from typing import Annotated

from ostinato import Context, CustomResource, Ge, Le, Manager, ObjectMeta, PermanentError, Struct, controller
from ostinato.api.meta import LabelSelector
from ostinato.api.owners import OwnerError, is_controlled_by
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, PodSpec, PodTemplateSpec


class FooSpec(Struct):
    deployment_name: str
    replicas: Annotated[int, Ge(1), Le(10)] | None = None


class FooStatus(Struct):
    available_replicas: int = 0


class Foo(CustomResource, group="samplecontroller.example.dev", version="v1alpha1"):
    spec: FooSpec
    status: FooStatus | None = None


@controller(Foo, owns=[Deployment])
async def foos(foo: Foo, ctx: Context) -> None:
    if not foo.spec.deployment_name:
        raise PermanentError("spec.deploymentName must be specified")
    try:
        deployment = await ctx.apply(deployment_for(foo), owner=foo)
    except OwnerError:
        message = f'Resource "{foo.spec.deployment_name}" already exists and is not managed by Foo'
        ctx.event(foo, "ErrResourceExists", message, kind="Warning")
        raise
    for other in await ctx.client.list(Deployment, namespace=foo.metadata.namespace):
        if is_controlled_by(other, foo) and other.metadata.name != foo.spec.deployment_name:  # it was renamed
            await ctx.client.delete(Deployment, other.metadata.name, missing_ok=True)
    await ctx.status(available_replicas=(deployment.status and deployment.status.available_replicas) or 0)
    ctx.event(foo, "Synced", "Foo synced successfully")


def deployment_for(foo: Foo) -> Deployment:
    labels = {"app": "nginx", "controller": foo.metadata.name}
    pod = PodSpec(containers=[Container(name="nginx", image="nginx:latest")])
    return Deployment(
        metadata=ObjectMeta(name=foo.spec.deployment_name),
        spec=DeploymentSpec(
            replicas=foo.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


if __name__ == "__main__":
    Manager().add(foos).run()
