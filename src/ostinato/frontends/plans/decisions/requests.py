"""Requests to the controller about the plans of an object: run, cancel, retry, skip.

A request is the annotation `plans.ostinato.dev/request` with JSON: `{"id": "…", "verb": "run", "plan": "backup",
"arguments": {"target": "s3"}}`. The controller handles the request of an id once, and answers in
`status.execution.request`.

| verb | effect |
|---|---|
| `run` | run a plan, with `arguments` for this run |
| `cancel` | stop the plan that runs |
| `retry` | go on with the plan that failed or was cancelled, at the step that did not complete |
| `skip` | count a step of the plan that runs, or failed, as complete; then go on |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ostinato.api.struct import Struct
from ostinato.frontends.plans.api import REQUEST

VERBS: Final = ("run", "cancel", "retry", "skip")


class Request(Struct):
    id: str = ""
    verb: str = ""
    plan: str = ""
    phase: str = ""
    step: str = ""
    arguments: dict[str, str] = {}


class RequestError(ValueError):
    """The annotation is not a request."""


def request_of(annotations: Mapping[str, str]) -> Request | None:
    """Return the request in the annotations of an object; None without one. Raises RequestError."""
    text = annotations.get(REQUEST)
    if not text:
        return None
    try:
        found = msgspec.json.decode(text, type=Request)
    except msgspec.DecodeError as error:
        raise RequestError(f"annotation {REQUEST}: {error}") from None
    if found.verb not in VERBS or not found.id:
        raise RequestError(f"annotation {REQUEST}: needs an id, and a verb of {', '.join(VERBS)}")
    return found


def run_request(plan: str, *, request_id: str = "", **arguments: str) -> dict[str, Any]:
    """Return the merge patch of an object that runs a plan: `MergePatch(run_request("backup", target="s3"))`.

    `request_id`: a request of an id is handled once. Defaults to a text of the plan and its arguments.
    """
    made = request_id or " ".join([plan, *(f"{name}={value}" for name, value in sorted(arguments.items()))])
    request = Request(id=made, verb="run", plan=plan, arguments=arguments)
    return {"metadata": {"annotations": annotation_of(request)}}


def annotation_of(request: Request) -> dict[str, str]:
    return {REQUEST: msgspec.json.encode(request).decode()}
