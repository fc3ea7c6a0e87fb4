"""Plans: operators made of parameters, templates and plans, as KUDO's packages are, and plans in Python.

    Manager().add(PlanController()).run()                                         # Instances of kudo.dev/v1beta1
    Manager().add(PlanController(package_kind(Path("kafka"), kind="Kafka", group="example.dev"))).run()
    Manager().add(Kafka().controller()).run()                                     # class Kafka(PlanOperator, ...)

`ostinato kudo` installs packages and shows their plans. Names are imported when first used: most commands need no
controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ostinato.lazy import lazy_names

if TYPE_CHECKING:
    from ostinato.frontends.plans.controller import PlanController
    from ostinato.frontends.plans.decisions.requests import run_request
    from ostinato.frontends.plans.kinds import PackageKind, package_kind
    from ostinato.frontends.plans.package.files import PackageError
    from ostinato.frontends.plans.python.operator import PlanGenerator, PlanOperator, Triggers
    from ostinato.frontends.plans.python.steps import apply, call, delete, parallel, phase, serial, step, wait_for
    from ostinato.frontends.plans.subjects import Instances, Subject

__all__ = [
    "Instances",
    "PackageError",
    "PackageKind",
    "PlanController",
    "PlanGenerator",
    "PlanOperator",
    "Subject",
    "Triggers",
    "apply",
    "call",
    "delete",
    "package_kind",
    "parallel",
    "phase",
    "run_request",
    "serial",
    "step",
    "wait_for",
]

_HOME = {
    "Instances": "subjects",
    "PackageError": "package.files",
    "PackageKind": "kinds",
    "PlanController": "controller",
    "PlanGenerator": "python.operator",
    "PlanOperator": "python.operator",
    "Subject": "subjects",
    "Triggers": "python.operator",
    "apply": "python.steps",
    "call": "python.steps",
    "delete": "python.steps",
    "package_kind": "kinds",
    "parallel": "python.steps",
    "phase": "python.steps",
    "run_request": "decisions.requests",
    "serial": "python.steps",
    "step": "python.steps",
    "wait_for": "python.steps",
}

__getattr__, __dir__ = lazy_names(__name__, _HOME)
