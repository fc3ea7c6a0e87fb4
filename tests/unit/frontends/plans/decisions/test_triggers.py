"""Which plan a change triggers, and which changes are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.frontends.plans.api import OperatorVersionSpec, Parameter, Plan
from ostinato.frontends.plans.decisions.triggers import Change, Refused, first_plan, fixed_values, plan_of


def version(*plans: str, **parameters: dict[str, Any]) -> OperatorVersionSpec:
    found = [Parameter(name=name, **fields) for name, fields in parameters.items()]
    return OperatorVersionSpec(plans={name: Plan() for name in plans}, parameters=found)


A = version(
    "deploy", "update", "scale", "backup", SIZE={"trigger": "scale"}, TEXT={}, FIX={"immutable": True, "default": "x"}
)


def change(before: dict[str, str], after: dict[str, str], /, **fields: Any) -> str:
    fields.setdefault("old", A)
    return plan_of(Change(**{"new": A, "new_name": "b-1", **fields}, old_parameters=before, new_parameters=after))


@pytest.mark.parametrize(
    ("old", "new", "fields", "plan"),
    [
        ({}, {}, {}, ""),
        ({}, {"TEXT": "1"}, {}, "update"),
        ({"TEXT": "1"}, {}, {}, "update"),
        ({"SIZE": "1"}, {"SIZE": "2"}, {}, "scale"),
        ({"SIZE": "1"}, {"SIZE": "2", "TEXT": "x"}, {}, "scale"),  # a parameter without a trigger joins
        ({}, {}, {"requested": "backup"}, "backup"),
        ({"SIZE": "1"}, {"SIZE": "2"}, {"running": "scale"}, "scale"),
        ({}, {"TEXT": "1"}, {"new": version("deploy", TEXT={})}, "deploy"),
        ({}, {}, {"is_upgrade": True, "new": version("deploy", "update", "upgrade")}, "upgrade"),
        ({}, {}, {"is_upgrade": True, "new": version("deploy", "update")}, "update"),
        ({}, {}, {"is_upgrade": True, "new": version("deploy")}, "deploy"),
        (
            {},
            {"NEW": "1"},
            {"is_upgrade": True, "new": version("deploy", "upgrade", NEW={"trigger": "deploy"})},
            "upgrade",
        ),
        ({"TEXT": "1"}, {}, {"is_upgrade": True, "new": version("deploy", "upgrade")}, "upgrade"),
        ({}, {}, {"is_deleting": True}, ""),
    ],
)
def test_a_change_triggers_a_plan(old: dict[str, str], new: dict[str, str], fields: dict[str, Any], plan: str) -> None:
    assert change(old, new, **fields) == plan


@pytest.mark.parametrize(
    ("old", "new", "fields", "message"),
    [
        ({}, {"FIX": "y"}, {}, "'FIX' is immutable but was changed from '' to 'y'"),
        ({}, {"NO": "1"}, {}, 'failed to find parameter "NO"'),
        (
            {"SIZE": "1"},
            {"SIZE": "2"},
            {"running": "deploy"},
            "plan 'deploy' is scheduled (or running) and an update would",
        ),
        ({}, {}, {"requested": "none"}, "plan none does not exist"),
        ({}, {}, {"requested": "cleanup", "new": version("deploy", "cleanup")}, "only the controller schedules"),
        ({}, {}, {"requested": "backup", "running": "scale"}, "overriding currently scheduled"),
        ({}, {"TEXT": "1"}, {"requested": "backup"}, "directly and through parameter update"),
        ({}, {}, {"is_upgrade": True, "running": "deploy"}, "while a plan 'deploy' is scheduled"),
        ({}, {}, {"is_upgrade": True, "requested": "backup"}, "and triggering new plan 'backup'"),
        ({"SIZE": "1"}, {"SIZE": "2"}, {"is_upgrade": True}, "together with a parameter update triggering 'scale'"),
        (
            {},
            {},
            {"is_upgrade": True, "new": version("deploy", N={"immutable": True, "default": "d"})},
            "(default would be d)",
        ),
        ({}, {}, {"is_upgrade": True, "new": version("deploy", TEXT={"immutable": True})}, "was changed to immutable"),
        ({}, {"TEXT": "1"}, {"is_deleting": True}, "is being deleted"),
        (
            {},
            {"A": "1", "B": "1"},
            {"old": (two := version("a", "b", A={"trigger": "a"}, B={"trigger": "b"})), "new": two},
            "multiple plans: [a b]",
        ),
        (
            {},
            {"A": "1"},
            {"old": (bad := version("b", A={"trigger": "a"})), "new": bad},
            "defined trigger plan a, but plan not defined",
        ),
        (
            {},
            {"A": "x"},
            {"old": (typed := version("deploy", A={"type": "integer"})), "new": typed},
            'type is "integer"',
        ),
        ({}, {}, {"is_upgrade": True, "new": version("other")}, "couldn't find any suitable plan"),
    ],
)
def test_a_change_that_is_not_allowed_is_refused(
    old: dict[str, str], new: dict[str, str], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused) as refused:
        change(old, new, **fields)
    assert message in str(refused.value)


def test_a_new_instance_needs_a_deploy_plan_and_its_required_values() -> None:
    needs = version("deploy", A={"required": True}, B={"required": True, "default": "b"}, C={"enum": ["x", "y"]})
    assert first_plan(needs, {"A": "1"}) == "deploy"
    with pytest.raises(Refused, match="couldn't find 'deploy' plan"):
        first_plan(version("update"), {})
    with pytest.raises(Refused, match='"A" is required'):
        first_plan(needs, {})
    with pytest.raises(Refused, match="only allowed values are"):
        first_plan(needs, {"A": "1", "C": "z"})
    assert fixed_values(A, {"SIZE": "1"}) == {"FIX": "x", "SIZE": "1"}
