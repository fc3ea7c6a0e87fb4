"""Patches and server-side apply of a Deployment. The reference is one JSON round trip of it, a lower bound."""

import copy
import json

from bench.samples import deployment
from bench.timing import compare
from ostinato.api.apply import FieldManager
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.patch import create_two_way_strategic, json_patch, merge_patch, strategic_merge
from ostinato.api.schema import builtin_schemas

NOW = "2026-01-02T03:04:05Z"


def main() -> None:
    gvk = GroupVersionKind("apps", "v1", "Deployment")
    schema = builtin_schemas().of(gvk)
    manager = FieldManager(gvk, {gvk.api_version: schema})
    original = deployment()
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
    changed = strategic_merge(original, patch, schema)
    live = manager.apply(None, original, "alice", NOW)
    updated = copy.deepcopy(live)
    updated["spec"]["replicas"] = 5
    compare(
        "Change a Deployment",
        "json round trip",
        {
            "json round trip": lambda: json.dumps(json.loads(json.dumps(original))),
            "merge patch": lambda: merge_patch(original, {"spec": {"replicas": 5}}),
            "JSON patch": lambda: json_patch(original, [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
            "strategic merge": lambda: strategic_merge(original, patch, schema),
            "strategic diff": lambda: create_two_way_strategic(original, changed, schema),
            "apply, first": lambda: manager.apply(None, original, "alice", NOW),
            "apply, change": lambda: manager.apply(live, changed, "alice", NOW),
            "apply, no change": lambda: manager.apply(live, original, "alice", NOW),
            "update ownership": lambda: manager.update(live, updated, "bob", NOW),
        },
    )
