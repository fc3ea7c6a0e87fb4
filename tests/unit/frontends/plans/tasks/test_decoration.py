"""Decoration of objects, with the hashes that KUDO computes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato.frontends.plans.tasks.decoration import HASH, SKIP_HASH, Names, add_hashes, decorate

NAMES = Names(
    instance="depop",
    namespace="default",
    operator="dep-operator",
    operator_version="0.1.0",
    app_version="1.7.9",
    plan="deploy",
    uid="u-1",
    phase="main",
    step="everything",
)


def config(first: str, second: str = "OtherFancyValue") -> dict[str, Any]:
    data = {"valueA": first, "valueB": second}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "configdata"}, "data": data}


def workload(kind: str = "Deployment", group: str = "apps", **volume: Any) -> dict[str, Any]:
    spec = {"volumes": [volume or {"configMap": {"name": "configdata"}}]}
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": spec}},
    }


def hash_of(*instances: dict[str, Any], stored: dict[str, Any] | None = None) -> str:
    for each in instances:
        decorate(each, NAMES)

    async def get(_: str, __: str) -> dict[str, Any] | None:
        return stored

    asyncio.run(add_hashes(instances, get))
    return str(instances[-1]["spec"]["template"]["metadata"]["annotations"].get(HASH))


@pytest.mark.parametrize(
    ("values", "expected"),
    [  # asserted by KUDO's test e2e/dependencies-hash
        (("FancyValue",), "6fa812afe527bdb6c9a5fbfcba8193bb"),
        (("ChangedValue",), "da9f56a62d3c4af2596bebace008d845"),
        (("ChangedValue", "SecondChangedValue"), "1510654b540619228b477bdd56d44175"),
    ],
)
def test_the_hash_is_that_of_kudo(values: tuple[str, ...], expected: str) -> None:
    assert hash_of(config(*values), workload()) == expected
    stored = config(*values)
    decorate(stored, NAMES)
    stored["metadata"] |= {"uid": "1", "resourceVersion": "2", "managedFields": [{}], "ownerReferences": [{}]}
    assert hash_of(workload(), stored=stored) == expected


def test_a_secret_has_one_hash_as_a_manifest_and_as_the_server_returns_it() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    stored = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}, "type": "Opaque"}
    decorate(stored, NAMES)
    uses = {"secret": {"secretName": "s"}}
    assert hash_of(manifest, workload(**uses)) == hash_of(workload(**uses), stored=stored)


def test_objects_that_opt_out_or_do_not_exist_count_as_nothing() -> None:
    skipped = config("1")
    skipped["metadata"]["annotations"] = {SKIP_HASH: "true"}
    assert hash_of(skipped, workload()) == hash_of(workload())


def test_labels_and_annotations() -> None:
    deployment = workload()
    decorate(deployment, NAMES)
    labels = {"heritage": "kudo", "kudo.dev/instance": "depop", "kudo.dev/operator": "dep-operator"}
    assert deployment["metadata"]["labels"] == labels
    assert deployment["metadata"]["annotations"] == {
        "kudo.dev/plan": "deploy",
        "kudo.dev/phase": "main",
        "kudo.dev/step": "everything",
        "kudo.dev/last-plan-execution-uid": "u-1",
    }
    template = deployment["spec"]["template"]["metadata"]
    assert template == {"labels": labels, "annotations": {"kudo.dev/operator-version": "0.1.0"}}


def test_cron_jobs_and_claims_of_stateful_sets_are_decorated_too() -> None:
    job = {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}
    decorate(job, NAMES)
    assert "labels" in job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
    stateful = workload("StatefulSet") | {
        "spec": {"template": {}, "volumeClaimTemplates": [{"metadata": {"name": "c"}}]}
    }
    decorate(stateful, NAMES)
    assert stateful["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"]["heritage"] == "kudo"
