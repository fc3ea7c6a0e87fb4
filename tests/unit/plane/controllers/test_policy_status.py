"""Type checking of ValidatingAdmissionPolicies, compared with recorded warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.client import MergePatch
from ostinato.client.views import Unstructured

CONTROLLER = "validatingadmissionpolicy-status-controller"
POLICIES = Unstructured.of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "data" / "policies" / "type_checks.json").read_text()
)
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.tc.example.com"},
    "spec": {
        "group": "tc.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["spec"]["validations"][0]["expression"])
def test_type_checking_warnings_are_written_to_the_status(case: dict[str, Any]) -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(WIDGETS)
        await stage.settle()
        await stage.client.create(policy("p", case["spec"]))
        await stage.settle()
        found = await stage.client.get(POLICIES, "p")
        assert found["status"] == case["status"]

    on_stage(play, CONTROLLER)


def test_a_policy_is_checked_again_when_it_changes() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(policy("p", RECORDED[0]["spec"]))
        await stage.settle()
        change = {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}}
        await stage.client.patch(POLICIES, "p", MergePatch(change))
        await stage.settle()
        assert (await stage.client.get(POLICIES, "p"))["status"] == {"observedGeneration": 2}

    on_stage(play, CONTROLLER)
