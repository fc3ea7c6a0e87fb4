"""Scenarios from files: YAML with the steps of users.

    steps:
    - create: {apiVersion: example.dev/v1, kind: Widget, metadata: {name: a}, spec: {replicas: 1}}
    - edit: {apiVersion: example.dev/v1, kind: Widget, metadata: {name: a}, spec: {replicas: 3}}
    - deleteChildren: {apiVersion: example.dev/v1, kind: Widget, metadata: {name: a}}
    - wait: 60
    - delete: {apiVersion: example.dev/v1, kind: Widget, metadata: {name: a}}

`edit` is a merge patch: what it does not name stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.testing.explore.scenario import Step, create, delete, delete_children, patch, wait

Json = dict[str, Any]


def _edit(value: Json) -> Step:
    metadata = {key: each for key, each in value["metadata"].items() if key not in ("name", "namespace")}
    change = {key: each for key, each in value.items() if key not in ("apiVersion", "kind", "metadata")}
    return patch(value, {**change, "metadata": metadata} if metadata else change)


_STEPS: Final[dict[str, Callable[[Any], Step]]] = {
    "create": create,
    "edit": _edit,
    "delete": delete,
    "deleteChildren": delete_children,
    "wait": wait,
}


def read_scenario(path: str | Path) -> list[Step]:
    """Read a scenario; ValueError says what is wrong with the file."""
    steps: list[Step] = []
    for document in decode_yaml_documents(Path(path).read_bytes()):
        for number, each in enumerate((document or {}).get("steps") or (), 1):
            steps.append(_step(each, f"{path}: steps[{number}]"))
    if not steps:
        raise ValueError(f"{path}: steps: missing; want a list such as `- create: {{apiVersion: ...}}`")
    return steps


def _step(value: Any, where: str) -> Step:
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"{where}: want one of {', '.join(_STEPS)}")
    ((name, argument),) = value.items()
    if name not in _STEPS:
        raise ValueError(f"{where}: {name}: unknown step; want one of {', '.join(_STEPS)}")
    if name != "wait" and not (isinstance(argument, dict) and (argument.get("metadata") or {}).get("name")):
        raise ValueError(f"{where}: {name}: want an object with apiVersion, kind and metadata.name")
    try:
        return _STEPS[name](argument)
    except KeyError as error:
        raise ValueError(f"{where}: {name}: {error.args[0]} is missing") from None
