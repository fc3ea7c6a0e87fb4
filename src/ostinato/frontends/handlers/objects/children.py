"""Children and Events: what handlers do beside their object, with objects as dicts.

child = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
on.adopt(child)                  # namespace, name, labels and owner reference of the handled object
ctx.apply(child)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ostinato.api import accessors as access
from ostinato.api.object import Object
from ostinato.frontends.handlers.objects.views import View
from ostinato.frontends.handlers.running.current import current_body, current_context

Json = dict[str, Any]


def adopt(
    objects: Any,
    owner: Mapping[str, Any] | None = None,
    *,
    forced: bool = False,
    strict: bool = False,
    nested: str | Iterable[str] = (),
) -> None:
    """Make objects children of the owner: namespace, name, labels and owner reference.

    - `owner`: defaults to the object that is handled.
    - `forced`: replace a namespace, name and labels that are set. `strict`: use the owner's name as it is, rather than
      as the prefix of a generated one.
    - `nested`: paths of templates whose labels are set too, such as "spec.template".
    """
    body = _owner(owner)
    for child in _each(objects):
        metadata = _metadata(child)
        if forced or not metadata.get("namespace"):
            namespace = access.namespace(body)
            if namespace:
                metadata["namespace"] = namespace
        name = access.name(body)
        if name and (forced or not (metadata.get("name") or metadata.get("generateName"))):
            metadata["name" if strict else "generateName"] = name if strict else f"{name}-"
        label([child], access.labels(body), forced=forced, nested=nested)
        append_owner_reference([child], body)


def label(objects: Any, labels: Any = None, *, forced: bool = False, nested: str | Iterable[str] = ()) -> None:
    """Set labels of objects; those of the handled object by default. Existing ones are kept unless `forced`."""
    wanted = dict(access.labels(_owner(None))) if labels is None else dict(labels)
    paths = [nested] if isinstance(nested, str) else list(nested)
    for child in _each(objects):
        places = [_metadata(child)]
        for path in paths:
            template: Any = child
            for step in path.split("."):
                template = template.get(step) if isinstance(template, dict) else None
            if isinstance(template, dict):
                places.append(_metadata(template))
        for metadata in places:
            found = metadata.get("labels") or {}
            if wanted:
                metadata["labels"] = {**found, **wanted} if forced else {**wanted, **found}


def append_owner_reference(
    objects: Any, owner: Mapping[str, Any] | None = None, *, controller: bool = True, block_owner_deletion: bool = True
) -> None:
    """Add the owner reference of the owner, by default the handled object; no effect if a child has it."""
    body = _owner(owner)
    reference = build_owner_reference(body, controller=controller, block_owner_deletion=block_owner_deletion)
    for child in _each(objects):
        metadata = _metadata(child)
        found = metadata.get("ownerReferences") or []
        if all(each.get("uid") != reference["uid"] for each in found):
            metadata["ownerReferences"] = [*found, reference]


def remove_owner_reference(objects: Any, owner: Mapping[str, Any] | None = None) -> None:
    """Remove the owner reference of the owner, by default the handled object."""
    uid = access.uid(_owner(owner))
    for child in _each(objects):
        metadata = _metadata(child)
        metadata["ownerReferences"] = [each for each in metadata.get("ownerReferences") or [] if each.get("uid") != uid]


def build_owner_reference(
    body: Mapping[str, Any], *, controller: bool = True, block_owner_deletion: bool = True
) -> Json:
    gvk = access.gvk(_plain(body))
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "name": access.name(_plain(body)),
        "uid": access.uid(_plain(body)),
        "controller": controller,
        "blockOwnerDeletion": block_owner_deletion,
    }


# Events


def event(objects: Any, *, type: str, reason: str, message: str = "") -> None:  # noqa: A002 - as in kopf
    """Record an Event about objects. Outside of a handler it has no effect."""
    context = current_context.get()
    for each in _each(objects) if context is not None else ():
        assert context is not None
        kind = "Warning" if type.lower() in ("warning", "error") else "Normal"
        context.event(each, reason or "Handler", message, kind=kind)


def info(objects: Any, *, reason: str, message: str = "") -> None:
    """Record a Normal Event."""
    event(objects, type="Normal", reason=reason, message=message)


def warn(objects: Any, *, reason: str, message: str = "") -> None:
    """Record a Warning Event."""
    event(objects, type="Warning", reason=reason, message=message)


def exception(objects: Any, *, reason: str = "", message: str = "", exc: BaseException | None = None) -> None:
    """Record a Warning Event about an exception, by default the one that is handled."""
    error = sys.exc_info()[1] if exc is None else exc
    text = f"{message} {error}" if message and error is not None else message or str(error)
    event(objects, type="Warning", reason=reason or type(error).__name__, message=text)


def _owner(owner: Mapping[str, Any] | None) -> Json:
    found = current_body.get() if owner is None else owner
    if found is None:
        raise LookupError("there is no handled object here; pass owner=")
    plain: Json = _plain(found)
    return plain


def _plain(body: Any) -> Any:
    return dict(body) if isinstance(body, View) else body


def _each(objects: Any) -> list[Any]:
    if isinstance(objects, Mapping | Object):
        return [_plain(objects) if isinstance(objects, View) else objects]
    return [_plain(each) for each in objects]


def _metadata(child: Any) -> Json:
    if not isinstance(child, dict):
        raise TypeError(f"{type(child).__name__} is not a dict; use ctx.apply(child, owner=obj) for objects of classes")
    found: Json = child.setdefault("metadata", {})
    return found
