"""A chart, a plan and a Python hook in one process, on one cache: stores, and backups that a chart cannot make.

    ostinato run --embedded examples/store_with_backups/stores.py
    kubectl apply -f examples/store_with_backups/store.yaml

- The chart keeps a Deployment, a Service and the settings of the backups for each Store.
- A Backup is a plan: copy the data, check the copy, and only then note that it may be used.
- Every hour the hook looks at all Stores, whose snapshot comes from the cache that the chart uses too, and creates a
  Backup for each that wants one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato import GroupVersionKind, ObjectMeta, Struct
from ostinato.crd import Access
from ostinato.frontends.charts import Chart
from ostinato.frontends.hooks import HookContext, cron, hook, watch
from ostinato.frontends.plans import PlanGenerator, PlanOperator, apply, phase
from ostinato.kinds.batch_v1 import Job, JobSpec
from ostinato.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec

GROUP = "stores.example.dev"
STORE = GroupVersionKind(GROUP, "v1", "Store")

stores = Chart(Path(__file__).with_name("chart")).for_kind(STORE.kind, group=GROUP)


def job(name: str, command: str) -> Job:
    container = Container(name="main", image="busybox:1", command=["sh", "-c", command])
    template = PodTemplateSpec(spec=PodSpec(restart_policy="Never", containers=[container]))
    return Job(metadata=ObjectMeta(name=name), spec=JobSpec(template=template))


class Backup(PlanOperator, group=GROUP):
    class Params(Struct):
        store: str
        target: str = "/backups"

    def deploy(self, p: Backup.Params) -> PlanGenerator:
        path = f"{p.target}/{self.name}"
        yield phase("copy", apply(job(f"{self.name}-copy", f"echo copy {p.store} to {path}")))
        yield phase("check", apply(job(f"{self.name}-check", f"echo check {path}")))
        yield phase("note", apply(ConfigMap(metadata=ObjectMeta(name=f"{p.store}-last-backup"), data={"path": path})))


backups = Backup().controller()


@hook(
    watch("stores", STORE, events=(), on_synchronization=False),
    cron("5 * * * *", include=["stores"]),
    access=[Access(groups=(GROUP,), resources=("backups",), verbs=("create",))],
)
async def hourly_backups(ctx: HookContext) -> None:
    hour = f"{ctx.client.world.clock.now():%Y%m%d%H}"
    for each in ctx.snapshots["stores"]:
        settings: dict[str, Any] = (each.object or {}).get("spec", {}).get("backups", {})
        if settings.get("enabled", True):
            ctx.create_if_not_exists(
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": "Backup",
                    "metadata": {"name": f"{each.name}-{hour}", "namespace": each.namespace},
                    "spec": {"store": each.name, "target": settings.get("target", "/backups")},
                }
            )
