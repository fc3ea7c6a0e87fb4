"""The scorecard's checks of the package alone, and its reports."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from tests.stage.packages import RULES, operator, package

from ostinato.crd import Access
from ostinato.packaging import Operator
from ostinato.packaging.scorecard import Result, json_report, static_results, text_report

SAMPLE = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 2}}
GOOD = [each for each in RULES if each.namespace != "vault"]


def scored(*, samples: Any = (SAMPLE,), of: Any = None, **overrides: Any) -> dict[str, Result]:
    made = package(of=of or operator(rules=GOOD), **overrides)
    return {each.name: each for each in static_results(msgspec.structs.replace(made, samples=samples))}


def without(path: str) -> Operator:
    """An operator whose definition lacks a part."""
    definition = copy.deepcopy(operator().definitions[0])
    version = definition["spec"]["versions"][0]
    if path == "status":
        del version["subresources"]["status"]
    else:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"x-kubernetes-preserve-unknown-fields": True}
    return operator(rules=GOOD, definitions=[definition])


def test_a_good_package_passes_every_check() -> None:
    results = scored()
    assert {each.state for each in results.values()} == {"pass"}
    assert results["basic-check-status"].suggestions == (
        "widgets.example.dev v1: status has no conditions; tools wait for them",
    )


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("basic-check-samples", {"samples": ()}, "example.dev/v1 Widget: no sample"),
        (
            "basic-check-spec",
            {"samples": ({key: value for key, value in SAMPLE.items() if key != "spec"},)},
            "Widget a: no spec",
        ),
        ("basic-check-status", {"of": without("status")}, "widgets.example.dev v1: no status"),
        ("olm-bundle-validation", {"version": "1.0.0+x"}, "OLM accepts no build metadata"),
        ("olm-crds-have-validation", {"of": without("spec")}, "spec has no schema"),
        ("olm-crds-have-validation", {"samples": ({**SAMPLE, "spec": {"sise": 1}},)}, "Widget a: spec.sise: not in"),
        ("olm-spec-descriptors", {"samples": ({**SAMPLE, "spec": {"sise": 1}},)}, "spec.sise: no descriptor"),
        ("olm-status-descriptors", {"samples": ({**SAMPLE, "status": {"x": 1}},)}, "status.x: no descriptor"),
        ("deployment-resources", {"resources": {"limits": {}}}, "resources.limits.memory: not set"),
        ("deployment-resources", {"resources": {"requests": {}}}, "resources.requests.cpu: not set"),
        ("deployment-image", {"image": "registry.example.com/a"}, "not a fixed version"),
        ("deployment-image", {"image": "registry.example.com/a:latest"}, "not a fixed version"),
        (
            "rbac-no-wildcards",
            {"of": operator(rules=[Access(groups=("apps",), resources=("*",), verbs=("*",))])},
            "access to *: verbs *; name those that the program uses",
        ),
    ],
)
def test_a_failed_check_says_what_is_wrong(name: str, options: dict[str, Any], error: str) -> None:
    result = scored(**options)[name]
    assert result.state == "fail"
    assert error in "\n".join(result.errors)


def test_suggestions_do_not_fail_a_check() -> None:
    everywhere = operator(rules=[Access(groups=("",), resources=("secrets",), verbs=("list",))], owned={})
    results = scored(of=everywhere, image="a:1")
    for name in ("rbac-secrets", "olm-crds-have-resources", "deployment-image"):
        assert results[name].state == "pass"
        assert results[name].suggestions


RESULTS = [
    Result(suite="basic", name="a", suggestions=("better",)),
    Result(suite="olm", name="long-name", errors=("wrong",)),
    Result(suite="cluster", name="b", skipped="no server"),
]


def test_the_report_for_people() -> None:
    assert text_report(RESULTS) == (
        "pass  a\n      suggestion: better\nfail  long-name\n      wrong\nskip  b          no server\n\n"
        "1 passed, 1 failed, 1 skipped, 1 suggestions\n"
    )


def test_the_report_for_programs_is_that_of_operator_sdk() -> None:
    report = json.loads(json_report(RESULTS))
    assert (report["apiVersion"], report["kind"]) == ("scorecard.operatorframework.io/v1alpha3", "TestList")
    states = [each["status"]["results"][0]["state"] for each in report["items"]]
    assert states == ["pass", "fail", "error"]
    assert report["items"][1]["spec"]["labels"] == {"suite": "olm", "test": "long-name-test"}
