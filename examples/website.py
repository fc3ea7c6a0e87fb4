"""A Website serves its pages: a ConfigMap holds them, a Deployment serves them, a Service gives them an address.

    $ ostinato up                                           # Pods are processes; as root, Services have addresses
    $ ostinato run --install-crds examples/website.py       # in a second shell, with the kubeconfig that it prints
    $ kubectl apply -f examples/website.yaml
    $ kubectl wait website/hello --for=condition=Ready
    $ curl "$(kubectl get website hello -o jsonpath='{.status.url}')"

Change a page, delete the Deployment, or edit the Service: the Website restores what it owns, and new pages are rolled
out, for their digest is part of the Pod template.
"""

import hashlib
import json
from typing import Annotated

from ostinato import Column, Context, CustomResource, Ge, Manager, ObjectMeta, Struct, controller
from ostinato.api.meta import Condition, LabelSelector
from ostinato.controllers import readiness_of
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    HTTPGetAction,
    PodSpec,
    PodTemplateSpec,
    Probe,
    Service,
    ServicePort,
    ServiceSpec,
    Volume,
    VolumeMount,
)

PORT = 8080


class WebsiteSpec(Struct):
    pages: dict[str, str]
    replicas: Annotated[int, Ge(0)] = 1
    image: str = "python:3.13-slim"


class WebsiteStatus(Struct):
    url: Annotated[str, Column("URL")] = ""
    ready_replicas: Annotated[int, Column("Ready")] = 0
    observed_generation: int = 0
    conditions: list[Condition] = []


class Website(CustomResource, group="example.dev", version="v1"):
    spec: WebsiteSpec
    status: WebsiteStatus | None = None


@controller(Website, owns=[ConfigMap, Deployment, Service])
async def websites(website: Website, ctx: Context) -> None:
    await ctx.apply(pages_of(website), owner=website)
    deployment = await ctx.apply(deployment_of(website), owner=website)
    service = await ctx.apply(service_of(website), owner=website)
    ready = readiness_of(deployment)
    await ctx.status(
        url=f"http://{service.spec.cluster_ip}/" if service.spec and service.spec.cluster_ip else "",
        ready_replicas=deployment.status.ready_replicas or 0,
        conditions=[
            Condition(type="Ready", status="True" if ready else "False", reason=ready.state, message=ready.message)
        ],
    )


def labels_of(website: Website) -> dict[str, str]:
    return {"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": website.metadata.name}


def pages_of(website: Website) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=website.metadata.name), data=website.spec.pages)


def deployment_of(website: Website) -> Deployment:
    labels = labels_of(website)
    pages = json.dumps(website.spec.pages, sort_keys=True).encode()
    server = Container(
        name="server",
        image=website.spec.image,
        command=["python3", "-m", "http.server", str(PORT), "--directory", "/pages"],
        ports=[ContainerPort(name="http", container_port=PORT)],
        readiness_probe=Probe(http_get=HTTPGetAction(path="/", port="http"), period_seconds=1),
        volume_mounts=[VolumeMount(name="pages", mount_path="/pages", read_only=True)],
    )
    volume = Volume(name="pages", config_map=ConfigMapVolumeSource(name=website.metadata.name))
    return Deployment(
        metadata=ObjectMeta(name=website.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=website.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(
                    labels=labels, annotations={"example.dev/pages": hashlib.sha256(pages).hexdigest()[:16]}
                ),
                spec=PodSpec(containers=[server], volumes=[volume]),
            ),
        ),
    )


def service_of(website: Website) -> Service:
    return Service(
        metadata=ObjectMeta(name=website.metadata.name, labels=labels_of(website)),
        spec=ServiceSpec(selector=labels_of(website), ports=[ServicePort(name="http", port=80, target_port="http")]),
    )


if __name__ == "__main__":
    Manager().add(websites).run()
