"""Instances run the plans of their operator versions, in virtual time, on a control plane with simulated nodes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.frontends.plans.conftest import INSTANCE, Reach, make_package

from ostinato.api.errors import NotFound
from ostinato.frontends.plans.api import Instance
from ostinato.frontends.plans.controller import PlanController
from ostinato.frontends.plans.installing import PlanError, Plans, outcome
from ostinato.frontends.plans.pictures import status_tree
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap

OPERATOR = """
name: web
operatorVersion: 1.0.0
tasks:
- {name: config, kind: Apply, spec: {resources: [config.yaml]}}
- {name: server, kind: Apply, spec: {resources: [server.yaml]}}
- {name: extra, kind: Toggle, spec: {parameter: EXTRA, resources: [extra.yaml]}}
- {name: backup, kind: Apply, spec: {resources: [backup.yaml]}}
- {name: stuck, kind: Dummy, spec: {done: false}}
- {name: broken, kind: Dummy, spec: {wantErr: true, fatal: true}}
- {name: remove, kind: Delete, spec: {resources: [config.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
    - {name: config, strategy: serial, steps: [{name: config, tasks: [config]}]}
    - {name: server, strategy: serial, steps: [{name: server, tasks: [server, extra]}]}
  update:
    strategy: serial
    phases: [{name: server, strategy: serial, steps: [{name: server, tasks: [config, server, extra]}]}]
  backup:
    phases: [{name: backup, steps: [{name: backup, tasks: [backup]}]}]
  hang:
    strategy: serial
    phases: [{name: hang, strategy: serial, steps: [{name: first, tasks: [stuck]}, {name: second, tasks: [config]}]}]
  fail:
    strategy: serial
    phases: [{name: fail, strategy: serial, steps: [{name: first, tasks: [broken]}, {name: second, tasks: [config]}]}]
  cleanup:
    phases: [{name: cleanup, steps: [{name: cleanup, tasks: [remove]}]}]
"""
PARAMS = """
parameters:
- {name: REPLICAS, default: 2}
- {name: TEXT, default: hello}
- {name: EXTRA, default: "false"}
- {name: FIXED, default: one, immutable: true}
"""
TEMPLATES = {
    "config": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-config"}
data: {text: "{{ .Params.TEXT | upper }}"}
""",
    "extra": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-extra"}
""",
    "backup": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}-backup"}
data: {target: "{{ .Args.target }}", plan: "{{ .PlanName }}"}
""",
    "server": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Name }}"}
data: {replicas: "{{ .Params.REPLICAS }}"}
""",
}
WORKLOAD = TEMPLATES | {
    "server": """
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
""",
}


@pytest.fixture
async def plans(cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach) -> Plans:
    """A namespace in which the package is installed and deployed as `web`; on an API server alone."""
    await manager.start(PlanController())
    found = Plans(client, "default", lambda _: None)
    await found.install(make_package(OPERATOR, PARAMS, **TEMPLATES), name="web")
    await reach("web", "deploy", "COMPLETE")
    return found


async def test_an_instance_is_deployed_and_updated(plans: Plans, client: Any, reach: Reach) -> None:
    found = await reach("web", "deploy", "COMPLETE")
    assert found["status"]["execution"]["parameters"] == {"FIXED": "one"}
    picture = status_tree(await plans.instance("web"), (await plans.version(await plans.instance("web"))).spec)
    assert picture is not None
    assert "Plan deploy (serial strategy) [COMPLETE]" in picture
    assert "└── Step cleanup [NOT ACTIVE]" in picture
    before = await plans.update("web", {"REPLICAS": "3", "EXTRA": "true"})
    await plans.wait("web", 60, before)
    assert (await client.get(ConfigMap, "web")).data == {"replicas": "3"}
    await client.get(ConfigMap, "web-extra")


async def test_a_workload_is_awaited_repaired_reported_and_cleaned_up(
    plane: Any, manager: Any, client: Any, clock: Any, reach: Reach, eventually: Any
) -> None:
    await manager.start(PlanController(repair_drift=True))
    plans = Plans(client, "default", lambda _: None)
    await plans.install(make_package(OPERATOR, PARAMS, **WORKLOAD), name="web")
    found = await reach("web", "deploy", "IN_PROGRESS")
    found = await reach("web", "deploy", "COMPLETE")
    assert found["status"]["conditions"][0]["status"] == "True"
    deployment = await client.get(Deployment, "web")
    assert deployment.status.ready_replicas == deployment.spec.replicas == 2
    assert deployment.metadata.labels["kudo.dev/instance"] == "web"
    assert deployment.metadata.owner_references[0].kind == "Instance"
    assert "kudo.dev/dependencies-hash" in deployment.spec.template.metadata.annotations
    for value in ("true", "false"):
        before = await plans.update("web", {"EXTRA": value})
        await plans.wait("web", 60, before)
        assert (await client.get(ConfigMap, "web-extra", missing=None) is not None) == (value == "true")
    await client.patch(Deployment, "web", _merge({"spec": {"replicas": 7}}))

    async def restored() -> bool:
        return (await client.get(Deployment, "web")).spec.replicas == 2

    assert await eventually(restored)
    never = {"script.ostinato.dev/behaviour": "never-ready"}
    await client.patch(Deployment, "web", _merge({"spec": {"template": {"metadata": {"annotations": never}}}}))

    async def not_ready() -> Any:
        condition = (await client.get(INSTANCE, "web"))["status"]["conditions"][0]
        return condition["status"] == "False" and condition

    assert (await eventually(not_ready))["reason"] == "ResourceNotReady"
    await plans.uninstall("web", 60)  # after the cleanup plan
    assert await client.get(ConfigMap, "web-config", missing=None) is None


async def test_an_immutable_parameter_is_refused_by_command_and_controller(
    plans: Plans, client: Any, eventually: Any
) -> None:
    with pytest.raises(PlanError, match="'FIXED' is immutable but was changed from 'one' to 'two'"):
        await plans.update("web", {"FIXED": "two"})
    await client.patch(INSTANCE, "web", _merge({"spec": {"parameters": {"FIXED": "two"}}}))

    async def refused() -> Any:
        return (await client.get(INSTANCE, "web"))["status"]["execution"].get("refused")

    assert "immutable" in await eventually(refused)
    assert (await client.get(INSTANCE, "web"))["status"]["planStatus"]["update"]["status"] == "NEVER_RUN"


async def test_a_stuck_plan_is_skipped_or_cancelled_and_holds_back_changes(
    plans: Plans, client: Any, reach: Reach
) -> None:
    assert await plans.request("web", "run", plan="hang")
    await reach("web", "hang", "IN_PROGRESS")
    with pytest.raises(PlanError, match="plan hang runs"):
        await plans.request("web", "run", plan="backup")
    with pytest.raises(PlanError, match="would trigger a different plan"):
        await plans.update("web", {"REPLICAS": "4"})
    await client.patch(INSTANCE, "web", _merge({"spec": {"parameters": {"REPLICAS": "4"}}}))
    found = await reach("web", "hang", "IN_PROGRESS")
    assert await plans.request("web", "skip", phase="hang", step="first")
    await reach("web", "update", "COMPLETE")  # it waited for the end of the run
    assert (await client.get(ConfigMap, "web")).data == {"replicas": "4"}
    found = await client.get(INSTANCE, "web")
    assert found["status"]["planStatus"]["hang"]["status"] == "COMPLETE"
    assert found["status"]["planStatus"]["hang"]["phases"][0]["steps"][0]["message"] == "skipped on request"
    assert await plans.request("web", "run", plan="hang")
    assert await plans.request("web", "cancel")
    found = await reach("web", "hang", "CANCELLED")
    assert found["status"]["execution"]["plan"] == ""
    with pytest.raises(PlanError, match="does not run"):
        await plans.request("web", "cancel")


def _merge(change: Any) -> Any:
    from ostinato.client import MergePatch

    return MergePatch(change)


async def test_a_failed_plan_stops_and_goes_on_after_skip(plans: Plans, client: Any, reach: Reach, events: Any) -> None:
    assert await plans.request("web", "run", plan="fail")
    found = await reach("web", "fail", "FATAL_ERROR")
    step = found["status"]["planStatus"]["fail"]["phases"][0]["steps"][0]
    assert step["status"] == "FATAL_ERROR"
    assert "failed in fail.fail.first.broken: dummy error" in step["message"]
    assert "plan fail is FATAL_ERROR" in str(outcome(await client.get(Instance, "web")))
    assert await plans.request("web", "retry")
    await reach("web", "fail", "FATAL_ERROR")
    assert await plans.request("web", "skip")
    await reach("web", "fail", "COMPLETE")


async def test_a_run_has_arguments_and_a_missing_one_is_an_error(plans: Plans, client: Any, reach: Reach) -> None:
    assert await plans.request("web", "run", plan="backup", arguments={"target": "s3"})
    await reach("web", "backup", "COMPLETE")
    assert (await client.get(ConfigMap, "web-backup")).data == {"target": "s3", "plan": "backup"}
    assert await plans.request("web", "run", plan="backup")
    found = await reach("web", "backup", "FATAL_ERROR")
    assert (
        'map has no entry for key "target"'
        in found["status"]["planStatus"]["backup"]["phases"][0]["steps"][0]["message"]
    )


async def test_the_plan_of_spec_plan_execution_runs_and_the_field_is_emptied(
    plans: Plans, client: Any, reach: Reach, eventually: Any
) -> None:
    execution = {"planName": "backup", "uid": "11111111-0000", "arguments": {"target": "disk"}}
    await client.patch(INSTANCE, "web", _merge({"spec": {"planExecution": execution}}))
    found = await reach("web", "backup", "COMPLETE")
    assert found["status"]["planStatus"]["backup"]["uid"] == "11111111-0000"

    async def emptied() -> bool:
        return not (await client.get(INSTANCE, "web"))["spec"].get("planExecution")

    assert await eventually(emptied)


async def test_drift_is_repaired_where_it_is_wanted(plans: Plans, client: Any, eventually: Any) -> None:
    await client.delete(ConfigMap, "web-config")
    wanted = {"annotations": {"plans.ostinato.dev/repair-drift": "true"}}
    await client.patch(INSTANCE, "web", _merge({"metadata": wanted}))
    assert await eventually(lambda: client.get(ConfigMap, "web-config", missing=None))


async def test_another_manager_goes_on_where_one_ended(cluster: Any, client: Any, clock: Any, reach: Reach) -> None:
    first, second = cluster.manager(), cluster.manager()
    await first.start(PlanController())
    plans = Plans(client, "default", lambda _: None)
    await plans.install(make_package(OPERATOR, PARAMS, **TEMPLATES), name="web")
    await reach("web", "deploy", "COMPLETE")
    assert await plans.request("web", "run", plan="hang")
    before = await reach("web", "hang", "IN_PROGRESS")
    await first.end()
    await second.start(PlanController(name="plans-2"))
    assert await plans.request("web", "skip", seconds=30)
    found = await reach("web", "hang", "COMPLETE")
    assert found["status"]["planStatus"]["hang"]["uid"] == before["status"]["planStatus"]["hang"]["uid"]


PARENT = """
name: parent
operatorVersion: 1.0.0
tasks:
- name: child
  kind: KudoOperator
  spec: {package: child, operatorVersion: 0.1.0, parameterFile: child.yaml}
plans:
  deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: child, tasks: [child]}]}]}
"""
CHILD = """
name: child
operatorVersion: 0.1.0
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
"""


async def test_a_parent_installs_its_child_first_and_cycles_are_refused(
    cluster: Any, manager: Any, client: Any, clock: Any, reach: Reach
) -> None:
    await manager.start(PlanController())
    plans = Plans(client, "default", lambda _: None)
    app = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Name }}"}\ndata: {size: "{{ .Params.SIZE }}"}\n'
    child = make_package(CHILD, "parameters: [{name: SIZE, default: 1}]", app=app)
    parent = make_package(PARENT, "parameters: [{name: SIZE, default: 5}]", child="SIZE: {{ .Params.SIZE }}")
    await plans.install(parent, [child], name="top")
    await reach("top", "deploy", "COMPLETE")
    found = await reach("top-child", "deploy", "COMPLETE")
    assert found["metadata"]["ownerReferences"][0]["name"] == "top"
    assert (await client.get(ConfigMap, "top-child")).data == {"size": "5"}
    before = await plans.update("top", {"SIZE": "6"})
    await plans.wait("top", 60, before)
    assert (await client.get(ConfigMap, "top-child")).data == {"size": "6"}
    cyclic = make_package(PARENT.replace("name: parent", "name: child").replace("1.0.0", "0.1.0"), child="")
    version = await client.get(type(cyclic.version), "child-0.1.0")
    version.spec.tasks = cyclic.version.spec.tasks
    await client.update(version)
    await plans.request("top", "run", plan="deploy")
    found = await reach("top", "deploy", "FATAL_ERROR")
    assert "cyclic package dependency" in found["status"]["planStatus"]["deploy"]["message"]


async def test_an_upgrade_runs_the_first_of_upgrade_update_deploy(plans: Plans, client: Any, reach: Reach) -> None:
    newer = make_package(OPERATOR.replace("operatorVersion: 1.0.0", "operatorVersion: 2.0.0"), PARAMS, **TEMPLATES)
    with pytest.raises(PlanError, match="same or smaller"):
        await plans.upgrade("web", make_package(OPERATOR, PARAMS, **TEMPLATES), [], {})
    before = await plans.upgrade("web", newer, [], {})
    await plans.wait("web", 60, before)
    found = await reach("web", "update", "COMPLETE")
    assert found["status"]["execution"]["operatorVersion"] == "web-2.0.0"
    without_cleanup = make_package(
        OPERATOR.replace("operatorVersion: 1.0.0", "operatorVersion: 3.0.0").split("  cleanup:")[0], PARAMS, **TEMPLATES
    )
    before = await plans.upgrade("web", without_cleanup, [], {})
    await plans.wait("web", 60, before)
    await plans.uninstall("web", 60)
    with pytest.raises((PlanError, NotFound), match="does not exist"):
        await plans.instance("none")
