"""Definitions in files: CompositeControllers and DecoratorControllers among other YAML or JSON documents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.selectors.labels import SelectorError, from_label_selector
from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.frontends.composite.meta.controllers import controller_of
from ostinato.frontends.composite.meta.definitions import (
    GROUP,
    VERSION,
    CompositeController,
    Hook,
    definitions,
)
from ostinato.frontends.composite.meta.endpoints import timeout_of, url_of
from ostinato.frontends.kernel.sync import DeciderError, Json

_KINDS: Final = ("CompositeController", "DecoratorController")
_TYPES: Final = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
_logger = logging.getLogger(__name__)


@cache
def _schemas() -> dict[str, Json]:
    """Return the schemas of the kinds."""
    specs = [each["spec"] for each in definitions()]
    return {each["names"]["kind"]: each["versions"][0]["schema"]["openAPIV3Schema"] for each in specs}


class DefinitionError(Exception):
    """A file has no usable definition. The message names the file, the object and the field."""


def read_definitions(paths: Iterable[str | Path]) -> list[Json]:
    """Read the definitions of files. Other documents, such as the hook's Deployment, are skipped.

    Raises DefinitionError for a file that cannot be read, or has an invalid definition or none.
    """
    found: list[Json] = []
    for path in map(Path, paths):
        own = list(_definitions(path))
        if not own:
            raise DefinitionError(f"{path}: has neither a CompositeController nor a DecoratorController of {GROUP}")
        found += own
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    for name in names:
        if names.count(name) > 1:
            raise DefinitionError(f"{name[0]} {name[1]}: defined twice; remove one, or rename it")
    return found


def _definitions(path: Path) -> Iterator[Json]:
    try:
        documents = decode_yaml_documents(path.read_bytes(), strict=True)
    except OSError as error:
        raise DefinitionError(f"{path}: cannot be read: {error.strerror}") from None
    except (DecodeError, ValueError) as error:
        raise DefinitionError(f"{path}: {error}") from None
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        where = f"{path}: document {number}"
        if not isinstance(document, dict):
            raise DefinitionError(f"{where}: expected an object, got {type(document).__name__}")
        kind, version = document.get("kind"), document.get("apiVersion")
        if kind not in _KINDS or not str(version).startswith(f"{GROUP}/"):
            _logger.info("document skipped, not a definition file=%s number=%d kind=%s", path, number, kind)
            continue
        if version != f"{GROUP}/{VERSION}":
            raise DefinitionError(f"{where}: apiVersion: {version} is not known; use {GROUP}/{VERSION}")
        name = (document.get("metadata") or {}).get("name")
        if not isinstance(name, str) or not name:
            raise DefinitionError(f"{where}: {kind}: metadata.name is missing")
        problems = [*problems_of(document)]
        if problems:
            raise DefinitionError(f"{path}: {kind} {name}: {'; '.join(problems)}")
        yield document


def problems_of(document: Json) -> Iterator[str]:
    """Return what is wrong with a definition: unknown fields, and values that cannot be used."""
    schema = _schemas()[document["kind"]]
    mismatches = [*_mismatches(document.get("spec"), schema["properties"]["spec"], "spec")]
    yield from mismatches
    if mismatches:
        return
    try:
        definition = controller_of(document)
    except DeciderError as error:
        yield str(error)
        return
    spec = definition.spec
    rules = [spec.parent_resource] if isinstance(definition, CompositeController) else spec.resources  # type: ignore[union-attr]
    for rule in rules:
        if rule.label_selector is not None:
            try:
                from_label_selector(msgspec.to_builtins(rule.label_selector))
            except SelectorError as error:
                yield f"labelSelector: {error}"
    if spec.hooks is None or spec.hooks.sync is None:
        yield "spec.hooks.sync: is missing; a controller needs a sync hook"
        return
    for name in ("sync", "finalize", "customize"):
        hook: Hook | None = getattr(spec.hooks, name)
        if hook is None:
            continue
        if hook.webhook is None:
            yield f"spec.hooks.{name}: webhook is missing"
            continue
        try:
            url_of(hook.webhook)
            timeout_of(hook.webhook)
        except DeciderError as error:
            yield f"spec.hooks.{name}.{error}"


def _mismatches(value: Any, schema: Json, path: str) -> Iterator[str]:
    """Return where a value does not match a schema: types, required and unknown fields, enumerated values."""
    expected = schema.get("type", "")
    if not isinstance(value, _TYPES.get(expected, object)) or (expected == "integer" and isinstance(value, bool)):
        yield f"{path}: expected {expected}, got {type(value).__name__}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {', '.join(schema['enum'])}"
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _mismatches(each, schema["items"], f"{path}[{place}]")
    elif isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (f"{path}.{name}: is missing" for name in schema.get("required", ()) if value.get(name) is None)
        for name, each in value.items():
            if each is None:
                continue
            if name in fields or others:
                yield from _mismatches(each, fields.get(name, others), f"{path}.{name}")
            else:
                nearest = get_close_matches(name, fields, n=1)
                yield f"{path}.{name}: unknown field" + (f"; did you mean {nearest[0]}?" if nearest else "")
