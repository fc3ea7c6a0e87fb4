"""The contract of metacontroller's hooks: the JSON documents of sync, finalize and customize, in v1 and v2.

- v1 names objects relative to the parent: NAME, and NAMESPACE/NAME if the parent is cluster-scoped. A namespaced parent
  sees objects of its own namespace only. v2 always uses NAMESPACE/NAME for namespaced objects.
- Every declared kind is present, possibly without objects.
- A strict answer has no unknown and no duplicate fields at its top level; v2 answers are strict by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from ostinato.api import accessors as access
from ostinato.api.selectors.labels import SelectorError, from_label_selector
from ostinato.api.wire import DecodeError, decode_json
from ostinato.api.wire.strict import strict_errors
from ostinato.frontends.composite.meta.definitions import HookVersion
from ostinato.frontends.kernel.sync import DeciderError, Json, Objects, SyncRequest, SyncResult

Form = Literal["composite", "decorator"]

_PARENT: Final = {"composite": "parent", "decorator": "object"}
CHILDREN: Final = {"composite": "children", "decorator": "attachments"}


class RelatedRule(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Objects that a hook wants to see: by labels, by namespace, by names, or by labels of their namespaces."""

    api_version: str
    resource: str
    label_selector: dict[str, Any] | None = None
    namespace_selector: dict[str, Any] | None = None
    namespace: str | None = None
    names: list[str] | None = None


class _CompositeAnswer(msgspec.Struct, rename="camel"):
    status: dict[str, Any] | None = None
    children: list[Any] | None = None
    resync_after_seconds: float | None = None
    finalized: bool | None = None


class _DecoratorAnswer(msgspec.Struct, rename="camel"):
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    status: dict[str, Any] | None = None
    attachments: list[Any] | None = None
    resync_after_seconds: float | None = None
    finalized: bool | None = None


class _CustomizeAnswer(msgspec.Struct, rename="camel"):
    related_resources: list[RelatedRule] | None = None


def sync_document(form: Form, version: HookVersion, controller: Json, request: SyncRequest) -> bytes:
    """Return the body of a sync or finalize request."""
    parent = request.parent or {}
    children, related = request.children, request.related
    if version == "v1":
        children, related = relative(children, parent), relative(related, parent)
    document = {
        "controller": controller,
        _PARENT[form]: parent,
        CHILDREN[form]: children,
        "related": related,
        "finalizing": request.finalizing,
    }
    return msgspec.json.encode(document)


def customize_document(controller: Json, parent: Json) -> bytes:
    """Return the body of a customize request."""
    return msgspec.json.encode({"controller": controller, "parent": parent})


def relative(objects: Objects, parent: Json) -> Objects:
    """Return objects by their names in v1. Of a namespaced parent, those of its namespace."""
    home = access.namespace(parent)
    if not home:
        return objects
    return {
        kind: {access.name(each): each for each in found.values() if access.namespace(each) == home}
        for kind, found in objects.items()
    }


def parse_sync(form: Form, body: bytes, parent: Json, *, strict: bool) -> SyncResult:
    """Parse the answer of a sync or finalize hook. Raises DeciderError."""
    if form == "composite":
        composite = _parsed(body, _CompositeAnswer, strict=strict)
        found = composite.children
        result = SyncResult(status=composite.status or {}, finalized=bool(composite.finalized))
        later = composite.resync_after_seconds
    else:
        decorator = _parsed(body, _DecoratorAnswer, strict=strict)
        found = decorator.attachments
        result = SyncResult(
            status=decorator.status,
            labels=decorator.labels or {},
            annotations=decorator.annotations or {},
            finalized=bool(decorator.finalized),
        )
        later = decorator.resync_after_seconds
    if later is not None and later > 0:
        result.resync_after = later
    result.children = checked_children(found or (), parent, CHILDREN[form])
    return result


def parse_customize(body: bytes, *, strict: bool) -> list[RelatedRule]:
    """Parse the answer of a customize hook. Raises DeciderError."""
    rules = _parsed(body, _CustomizeAnswer, strict=strict).related_resources or []
    for place, rule in enumerate(rules):
        problem = _rule_problem(rule)
        if problem:
            raise DeciderError(f"answer of the customize hook: relatedResources[{place}]: {problem}")
    return rules


def checked_children(found: Sequence[Any], parent: Json, field: str) -> list[Json]:
    """Return the desired objects, each with a kind, a name and the namespace of its parent unless it has one."""
    children: dict[Any, Json] = {}  # of duplicates the last one counts
    home = access.namespace(parent)
    for place, child in enumerate(found):
        where = f"answer of the hook: {field}[{place}]"
        if not isinstance(child, dict):
            raise DeciderError(f"{where}: expected an object, got {type(child).__name__}")
        for name in ("apiVersion", "kind"):
            if not isinstance(child.get(name), str) or not child[name]:
                raise DeciderError(f"{where}: {name} is missing")
        metadata = child.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
            raise DeciderError(f"{where}: metadata.name is missing; a {child['kind']} needs one")
        for name in ("labels", "annotations"):
            values = metadata.get(name)
            if values is not None and not (
                isinstance(values, dict) and all(isinstance(each, str) for each in values.values())
            ):
                raise DeciderError(f"{where}: metadata.{name}: expected an object of strings")
        if home and not metadata.get("namespace"):
            placed = {**child, "metadata": {**metadata, "namespace": home}}
        else:
            placed = child
        children[placed["apiVersion"], placed["kind"], access.key(placed)] = placed
    return list(children.values())


def _rule_problem(rule: RelatedRule) -> str:
    if rule.names and (rule.label_selector is not None or rule.namespace_selector is not None):
        return "names and a selector are mutually exclusive"
    if rule.namespace and rule.namespace_selector is not None:
        return "namespace and namespaceSelector are mutually exclusive"
    for name, selector in (("labelSelector", rule.label_selector), ("namespaceSelector", rule.namespace_selector)):
        try:
            from_label_selector(selector)
        except SelectorError as error:
            return f"{name}: {error}"
    return ""


def _parsed(body: bytes, form: type[Any], *, strict: bool) -> Any:
    try:
        value = decode_json(body)
        answer = msgspec.convert(value, form)
    except DecodeError as error:
        raise DeciderError(f"answer of the hook is not JSON: {error}") from None
    except msgspec.ValidationError as error:
        raise DeciderError(f"answer of the hook: {error}") from None
    if strict and isinstance(value, dict):
        known = form.__struct_encode_fields__
        problems = [f"unknown field {name!r}" for name in value if name not in known]
        problems += [each for each in strict_errors(body, value, None) if "." not in each and "[" not in each]
        if problems:
            raise DeciderError(f"answer of the hook: {'; '.join(problems)}; remove them, or use the loose mode")
    return answer
