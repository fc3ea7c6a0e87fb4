"""The operator of the suite: a Website owns a ConfigMap with its content and a Deployment that serves it."""

from __future__ import annotations

from typing import Annotated, Any

from ostinato import Context, CustomResource, Ge, Le, ObjectMeta, Pattern, Struct, controller
from ostinato.api.meta import LabelSelector
from ostinato.api.owners import OwnerError
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec

FINALIZER = "websites.example.dev/cdn"
cleaned: list[str] = []  # the content delivery network of the tests: names of removed sites


class WebsiteSpec(Struct):
    host: Annotated[str, Pattern(r"^[a-z.]+$")]
    content: str = ""
    replicas: Annotated[int, Ge(0), Le(10)] = 1
    paused: bool = False


class WebsiteStatus(Struct):
    url: str = ""
    available: int = 0
    observed_generation: int | None = None


class Website(CustomResource, group="websites.example.dev", version="v1"):
    spec: WebsiteSpec
    status: WebsiteStatus | None = None


@controller(Website, owns=[ConfigMap, Deployment])
async def websites(site: Website, ctx: Context) -> None:
    async with ctx.finalizer(site, FINALIZER) as deleting:
        if deleting:
            cleaned.append(site.metadata.name)
            return
        if site.spec.paused:
            return
        try:
            await ctx.apply(config_map(site), owner=site)
        except OwnerError as error:
            ctx.event(site, "NotOwned", str(error), kind="Warning")
            raise
        deployment = await ctx.apply(deployment_of(site), owner=site)
        available = (deployment.status and deployment.status.available_replicas) or 0
        await ctx.status(url=f"https://{site.spec.host}", available=available)
        ctx.event(site, "Published", f"{site.spec.replicas} replicas")


def config_map(site: Website) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=site.metadata.name), data={"index.html": site.spec.content})


def deployment_of(site: Website) -> Deployment:
    labels = {"website": site.metadata.name}
    pod = PodSpec(containers=[Container(name="web", image="nginx")])
    return Deployment(
        metadata=ObjectMeta(name=site.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=site.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


def website(name: str = "blog", **spec: Any) -> Website:
    return Website(metadata=ObjectMeta(name=name), spec=WebsiteSpec(**{"host": "example.org", **spec}))
