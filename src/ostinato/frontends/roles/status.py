"""Conditions of an object that a role reconciles: Running, Successful and Failure, as ansible-operator has them."""

from __future__ import annotations

from typing import Any

from ostinato.api.time import Time
from ostinato.frontends.roles.events import Outcome
from ostinato.frontends.watches.conditions import Conditions

Json = dict[str, Any]

RUNNING, SUCCESSFUL, FAILURE = "Running", "Successful", "Failure"


def running(status: Any, now: Time) -> list[Json]:
    """Return the conditions when a run begins."""
    found = Conditions(status, now)
    found.set_status(SUCCESSFUL, "False")
    found.set(RUNNING, "True", reason="Running", message="Running reconciliation")
    return found.as_list()


def succeeded(status: Any, now: Time, outcome: Outcome) -> list[Json]:
    found = Conditions(status, now)
    found.set(
        RUNNING, "True", reason="Successful", message="Awaiting next reconciliation", ansibleResult=outcome.counts
    )
    found.set(SUCCESSFUL, "True", reason="Successful", message="Last reconciliation succeeded")
    found.set(FAILURE, "False", reason="", message="")
    return found.as_list()


def failed(status: Any, now: Time, message: str, counts: Json | None = None) -> list[Json]:
    """Return the conditions after a failure. `counts`: of the run. Defaults to None: it did not run to its end."""
    found = Conditions(status, now)
    found.set_status(RUNNING, "False")
    found.set(FAILURE, "True", reason="Failed", message=message, ansibleResult=counts)
    found.set(SUCCESSFUL, "False", reason="", message="")
    return found.as_list()
