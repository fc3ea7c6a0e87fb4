"""A chart and a Python hook in one process, on one cache: stores, and the backups that a chart cannot start.

    ostinato run --embedded examples/store_with_backups/stores.py
    kubectl apply -f examples/store_with_backups/store.yaml

The chart keeps a Deployment, a Service and the settings of the backups for each Store. Every hour the hook looks at all
Stores, whose snapshot comes from the cache that the chart uses too, and starts a Job for each that wants backups.
"""

from pathlib import Path
from typing import Any

from ostinato import GroupVersionKind
from ostinato.crd import Access
from ostinato.frontends.charts import Chart
from ostinato.frontends.hooks import HookContext, cron, hook, watch

STORE = GroupVersionKind("stores.example.dev", "v1", "Store")

stores = Chart(Path(__file__).with_name("chart")).for_kind(STORE.kind, group=STORE.group)


def backup(store: dict[str, Any], hour: str) -> dict[str, Any]:
    """Return the Job that backs up a store; it is deleted with the store."""
    metadata = store["metadata"]
    owner = {"apiVersion": STORE.api_version, "kind": STORE.kind, "name": metadata["name"], "uid": metadata["uid"]}
    container = {
        "name": "backup",
        "image": store.get("spec", {}).get("image", "busybox:1"),
        "command": ["sh", "-c", 'echo "backup of $STORE to $TARGET"'],
        "env": [
            {"name": "STORE", "value": metadata["name"]},
            {
                "name": "TARGET",
                "valueFrom": {"configMapKeyRef": {"name": f"{metadata['name']}-backups", "key": "target"}},
            },
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{metadata['name']}-{hour}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


@hook(
    watch("stores", STORE, events=(), on_synchronization=False),
    cron("5 * * * *", include=["stores"]),
    access=[Access(groups=("batch",), resources=("jobs",), verbs=("create",))],
)
async def hourly_backups(ctx: HookContext) -> None:
    hour = f"{ctx.client.world.clock.now():%Y%m%d%H}"
    for each in ctx.snapshots["stores"]:
        store = each.object or {}
        if store.get("spec", {}).get("backups", {}).get("enabled", True):
            ctx.create_if_not_exists(backup(store, hour))
