"""Which plan a change triggers, and which changes are refused: the rules of KUDO's admission webhook, as functions.

| change | plan |
|---|---|
| a new instance | `deploy` |
| another operator version | the first that exists of `upgrade`, `update`, `deploy` |
| changed, added or removed parameters | their `trigger`; without one `update`, else `deploy` |
| a requested plan | that plan |
| deletion | `cleanup`, if it exists; it overrides any other |

Refused: several plans at once, a change of an immutable parameter, an invalid or missing value, an unknown parameter.
The controller decides with these functions from what it has recorded in the status, so that no webhook is needed; the
commands and the optional webhook use them to refuse a change before it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ostinato.frontends.plans.api import CLEANUP, DEPLOY, UPDATE, UPGRADE, OperatorVersionSpec, Parameter
from ostinato.frontends.plans.parameters import ParameterError, check_values, difference


class Refused(Exception):  # noqa: N818 - a decision about a change, not a failure
    """A change that is not allowed; the message says why, without naming the instance."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an instance.

    - `running`: the plan that runs; "" if none.
    - `requested`: the plan that is requested by name; "" if none.
    """

    old: OperatorVersionSpec
    new: OperatorVersionSpec
    old_parameters: Mapping[str, str]
    new_parameters: Mapping[str, str]
    is_upgrade: bool = False
    new_name: str = ""
    running: str = ""
    requested: str = ""
    is_deleting: bool = False


def first_plan(version: OperatorVersionSpec, parameters: Mapping[str, str]) -> str:
    """Return the plan of a new instance. Raises Refused."""
    if DEPLOY not in (version.plans or {}):
        raise Refused(f"couldn't find '{DEPLOY}' plan in the operatorVersion")
    try:
        check_values(version.parameters, parameters)
    except ParameterError as error:
        raise Refused(f"parameters are not valid: {error}") from None
    return DEPLOY


def fixed_values(version: OperatorVersionSpec, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters with the defaults of immutable ones, which later versions must not change."""
    defaults = {
        each.name: each.default for each in version.parameters if each.is_immutable and each.default is not None
    }
    return {**defaults, **parameters}


def plan_of(change: Change) -> str:
    """Return the plan that a change triggers, "" for none. Raises Refused."""
    plans = change.new.plans or {}
    if change.requested and change.requested not in plans:
        raise Refused(f"plan {change.requested} does not exist; plans are {', '.join(sorted(plans))}")
    triggered = _triggered(change)
    if change.is_deleting:
        _check_deletion(change, triggered)
        return ""
    _check_conflicts(change, triggered)
    if change.is_upgrade:
        for name in (UPGRADE, UPDATE, DEPLOY):
            if name in plans:
                return name
        raise Refused("couldn't find any suitable plan that would be triggered by an OperatorVersion upgrade")
    return triggered or change.requested


def _triggered(change: Change) -> str:
    """Return the plan that changed parameters trigger, "" for none."""
    differs = difference(change.old_parameters, change.new_parameters)
    known = {each.name: each for each in change.new.parameters}
    unknown = sorted(name for name in differs.changed if name not in known)
    if unknown:
        raise Refused(f'failed to find parameter "{unknown[0]}" in the OperatorVersion')
    before = {each.name for each in change.old.parameters}
    changed = [known[name] for name in differs.changed if name in before]
    _check_immutable(change, changed)
    try:
        check_values(change.new.parameters, change.new_parameters)
    except ParameterError as error:
        raise Refused(str(error)) from None
    removed = [known[name] for name in differs.removed if name in known]
    if len(removed) != len(differs.removed):
        removed = []  # the version has dropped parameters: no plan is about them
    return _plan_of_parameters([*changed, *removed], change.new)


def _plan_of_parameters(parameters: list[Parameter], version: OperatorVersionSpec) -> str:
    if not parameters:
        return ""
    plans = version.plans or {}
    for each in parameters:
        if each.trigger and each.trigger not in plans:
            raise Refused(
                f"param {each.name} defined trigger plan {each.trigger}, but plan not defined in operatorversion"
            )
    triggers = list(dict.fromkeys(each.trigger for each in parameters if each.trigger))
    if len(triggers) > 1:
        raise Refused(f"triggering multiple plans: [{' '.join(triggers)}] at once is not allowed")
    if triggers:
        return triggers[0]
    for name in (UPDATE, DEPLOY):
        if name in plans:
            return name
    raise Refused("couldn't find any plans that would be triggered by the update")


def _check_immutable(change: Change, changed: list[Parameter]) -> None:
    if not change.is_upgrade:
        for each in changed:
            if each.is_immutable:
                old, new = change.old_parameters.get(each.name, ""), change.new_parameters.get(each.name, "")
                raise Refused(f"parameter '{each.name}' is immutable but was changed from '{old}' to '{new}'")
        return
    before = {each.name: each for each in change.old.parameters}
    for each in change.new.parameters:
        if not each.is_immutable or each.name in change.new_parameters:
            continue
        if each.name not in before:
            default = "" if each.default is None else f" (default would be {each.default})"
            raise Refused(
                f"parameter '{each.name}' was added in operator version {change.new_name}, but no value was "
                f"provided{default}"
            )
        if not before[each.name].is_immutable:
            raise Refused(
                f"parameter '{each.name}' was changed to immutable in operator version {change.new_name} but no value "
                "was provided"
            )


def _check_deletion(change: Change, triggered: str) -> None:
    if triggered or change.is_upgrade:
        raise Refused("parameter update and/or upgrade is not allowed when an instance is being deleted")
    if change.requested not in ("", CLEANUP):
        raise Refused(f"only '{CLEANUP}' plan can be scheduled when an instance is being deleted")


def _check_conflicts(change: Change, triggered: str) -> None:
    running, requested, new = change.running, change.requested, change.new_name
    if running and triggered and triggered != running:
        raise Refused(
            f"plan '{running}' is scheduled (or running) and an update would trigger a different plan '{triggered}'"
        )
    if change.is_upgrade and running:
        raise Refused(
            f"upgrade to new OperatorVersion {new} while a plan '{running}' is scheduled (or running) is not allowed"
        )
    if change.is_upgrade and requested:
        raise Refused(f"upgrade to new OperatorVersion {new} and triggering new plan '{requested}' is not allowed")
    if change.is_upgrade and triggered not in ("", DEPLOY):
        raise Refused(
            f"upgrade to new OperatorVersion {new} together with a parameter update triggering '{triggered}' is not "
            "allowed"
        )
    if running and requested not in ("", running):
        raise Refused(
            f"overriding currently scheduled (or running) plan '{running}' with '{requested}' is not supported"
        )
    if triggered and requested:
        raise Refused(
            f"triggering one plan '{requested}' directly and through parameter update '{triggered}' is not allowed"
        )
    if requested == CLEANUP:
        raise Refused(f"only the controller schedules the '{CLEANUP}' plan when the instance is deleted")
