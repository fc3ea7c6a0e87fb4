"""The scorecard's checks on an API server in this process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest
from tests.stage.packages import operator, package

from ostinato import CustomResource, ObjectMeta, Struct, controller
from ostinato.crd import crd_of
from ostinato.crd.program import access_of_managers
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager import Manager
from ostinato.packaging.scorecard import Result, cluster_results


class BoxSpec(Struct):
    size: int = 1


class BoxStatus(Struct):
    packed: bool = False


class Box(CustomResource, group="score.example.dev", version="v1", plural="boxes"):
    spec: BoxSpec
    status: BoxStatus | None = None


@controller(Box, owns=[ConfigMap])
async def packing(box: Box, ctx: Any) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=box.metadata.name), data={"n": "1"}), owner=box)
    await ctx.status(packed=True)


@controller(Box, name="nosy")
async def nosy(box: Box, ctx: Any) -> None:
    await ctx.client.list(Secret)


SAMPLE = {"apiVersion": "score.example.dev/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": {"size": 2}}


def scored(function: Any = packing, samples: Any = (SAMPLE,), **overrides: Any) -> dict[str, Result]:
    rules = access_of_managers([Manager().add(function)], namespace="{own}")
    made = package(of=operator(definitions=[crd_of(Box)], rules=rules), **overrides)
    with_samples = msgspec.structs.replace(made, samples=samples)
    return {each.name: each for each in asyncio.run(cluster_results(with_samples, [function]))}


def test_a_good_operator_is_installed_and_reconciles_its_samples() -> None:
    assert {name: each.state for name, each in scored(replicas=2).items()} == {
        "cluster-objects-accepted": "pass",
        "cluster-pods-restricted": "pass",
        "cluster-samples-valid": "pass",
        "cluster-samples-reconciled": "pass",
    }


def test_what_the_server_rejects_is_reported() -> None:
    results = scored(
        samples=({**SAMPLE, "spec": {"size": "large", "colour": "red"}},),
        volumes=[{"name": "host", "hostPath": {"path": "/"}}],
        features={"namespace": False},
    )
    assert results["cluster-objects-accepted"].state == "pass"
    assert "violates PodSecurity" in results["cluster-pods-restricted"].errors[0]
    assert 'unknown field "spec.colour"' in results["cluster-samples-valid"].errors[0]
    assert "spec.size" in results["cluster-samples-reconciled"].errors[0]


def test_an_object_that_the_server_rejects_is_reported() -> None:
    (error,) = scored(tolerations=[{"operator": "Sometimes"}])["cluster-objects-accepted"].errors
    assert "spec.template.spec.tolerations[0].operator" in error


@controller(Box, name="picky")
async def picky(box: Box, ctx: Any) -> None:
    if box.metadata.name == "b":
        raise ValueError("not b")


def test_every_sample_is_reconciled() -> None:
    second = {**SAMPLE, "metadata": {"name": "b"}}
    result = scored(picky, samples=(SAMPLE, second), features={"crds": False})["cluster-samples-reconciled"]
    assert result.errors == ("controller picky failed on default/b: ValueError: not b",)


def test_a_missing_permission_is_found_by_running_with_those_of_the_package() -> None:
    (error,) = scored(nosy)["cluster-samples-reconciled"].errors
    assert "nosy" in error
    assert "cannot list resource" in error


def test_without_samples_nothing_is_reconciled() -> None:
    result = scored(samples=())["cluster-samples-reconciled"]
    assert (result.state, result.skipped) == ("skip", "there are no samples")


def test_without_the_server_the_checks_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ostinato.server.core", None)
    assert {each.skipped for each in scored().values()} == {"needs the server; run pip install 'ostinato[server]'"}
