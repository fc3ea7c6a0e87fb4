"""Manifests: templates rendered with the values of a run, and parsed into objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ostinato.api.wire.json import DecodeError
from ostinato.frontends.plans.parameters import load_yaml
from ostinato.frontends.plans.tasks.decoration import Names
from ostinato.frontends.plans.tasks.errors import RENDERING, FatalError
from ostinato.frontends.plans.tasks.rendering import RenderError, render
from ostinato.world import World

Json = dict[str, Any]


def variables(names: Names, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of templates that belong to the instance."""
    return {
        "OperatorName": names.operator,
        "Name": names.instance,
        "Namespace": names.namespace,
        "AppVersion": names.app_version,
        "OperatorVersion": names.operator_version,
        "Params": dict(params),
    }


def rendered(templates: Mapping[str, str], name: str, values: Mapping[str, Any], world: World) -> str:
    """Render a template of a package. Raises FatalError."""
    if name not in templates:
        raise FatalError(f"error finding resource named {name}", RENDERING)
    try:
        return render(name, templates[name], values, world)
    except RenderError as error:
        raise FatalError(f"error expanding template {name}: {error}", RENDERING) from None


def objects_of(
    templates: Mapping[str, str], resources: Iterable[str], values: Mapping[str, Any], world: World
) -> list[Json]:
    """Render templates and parse their documents. Raises FatalError."""
    return [each for name in resources for each in parsed(rendered(templates, name, values, world), name)]


def parsed(text: str, name: str, *, named: bool = True) -> list[Json]:
    """Parse the documents of a manifest; those without content are skipped. Raises FatalError.

    `named`: objects need a name. Defaults to True.
    """
    found: list[Json] = []
    for document in text.split("\n---"):
        try:
            instance = load_yaml(document.removeprefix("---"))
        except DecodeError as error:
            raise FatalError(f"parsing YAML from {name}: {' '.join(str(error).split())}", RENDERING) from None
        if not instance:
            continue
        if not isinstance(instance, dict) or not instance.get("kind") or not instance.get("apiVersion"):
            raise FatalError(
                f"parsing YAML from {name}: a document is not an object with apiVersion and kind", RENDERING
            )
        metadata = instance.get("metadata")
        if named and (not isinstance(metadata, dict) or not metadata.get("name")):
            raise FatalError(f"parsing YAML from {name}: {instance['kind']} without metadata.name", RENDERING)
        found.append(_without_nulls(instance))
    return found


def _without_nulls(value: Any) -> Any:
    """Drop null fields, which decoding into Go types drops too."""
    if isinstance(value, dict):
        return {str(name): _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
