"""Instances run the plans of their operator versions, in virtual time, on a control plane with simulated nodes."""

from __future__ import annotations

from typing import Any

from ostinato.client.views import Unstructured
from ostinato.frontends.plans.controller import PlanController
from ostinato.frontends.plans.package.files import parse_files
from ostinato.frontends.plans.package.resources import package_of
from ostinato.kinds.apps_v1 import Deployment

INSTANCE = Unstructured.of("kudo.dev/v1beta1", "Instance")

OPERATOR = """
name: web
operatorVersion: 1.0.0
tasks:
- {name: config, kind: Apply, spec: {resources: [config.yaml]}}
- {name: server, kind: Apply, spec: {resources: [server.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
    - {name: config, strategy: serial, steps: [{name: config, tasks: [config]}]}
    - {name: server, strategy: serial, steps: [{name: server, tasks: [server]}]}
  update:
    strategy: serial
    phases:
    - {name: server, strategy: serial, steps: [{name: server, tasks: [config, server]}]}
"""
PARAMS = """
parameters:
- {name: REPLICAS, default: 2}
- {name: TEXT, default: hello}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-config"}
data: {text: "{{ .Params.TEXT }}"}
"""
SERVER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Name }}"}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers: [{name: main, image: web}]
      volumes: [{name: config, configMap: {name: "{{ .Name }}-config"}}]
"""


def package(operator: str = OPERATOR, params: str = PARAMS, **templates: str) -> Any:
    found = {"config.yaml": CONFIG, "server.yaml": SERVER} | {f"{name}.yaml": text for name, text in templates.items()}
    files = {"operator.yaml": operator, "params.yaml": params} | {f"templates/{each}": found[each] for each in found}
    return package_of(parse_files({name: text.encode() for name, text in files.items()}, "web"))


async def install(client: Any, installed: Any, **parameters: str) -> None:
    await client.create(installed.operator)
    await client.create(installed.version)
    await client.create(installed.instance("web", parameters))


async def state(client: Any, plan: str) -> str:
    found = await client.get(INSTANCE, "web")
    return found.get("status", {}).get("planStatus", {}).get(plan, {}).get("status", "")


async def test_an_instance_runs_deploy_and_then_update(
    plane: Any, manager: Any, client: Any, eventually: Any, clock: Any
) -> None:
    await manager.start(PlanController())
    await install(client, package())

    async def complete(plan: str = "deploy") -> bool:
        return await state(client, plan) == "COMPLETE"

    await eventually(complete)
    deployment = await client.get(Deployment, "web")
    assert deployment.spec.replicas == 2
    assert deployment.metadata.labels["kudo.dev/instance"] == "web"
    found = await client.get(INSTANCE, "web")
    assert found["status"]["conditions"][0]["status"] == "True"
    found["spec"]["parameters"] = {"REPLICAS": "3"}
    await client.update(found)
    await eventually(lambda: complete("update"))
    assert (await client.get(Deployment, "web")).spec.replicas == 3
