"""Tracking: to which set an object belongs, written on the object itself.

- An owner reference with `controller: true`, where one is allowed: the garbage collector then deletes the object with
  its owner.
- Else, for objects in another namespace and cluster-scoped objects of a namespaced owner, a label with the uid of the
  owner, to find them, and an annotation with its kind and key, to find the owner. The owner needs a finalizer.
- If several controllers apply sets for one owner, an annotation has the name of the controller.

An object gets these marks with the request that creates it, so there is no moment at which it belongs to nobody.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupKind, NamespacedName
from ostinato.api.owners import controller_of

OWNER_UID: Final = "ostinato.dev/owner-uid"
"""Label: uid of the owner."""

OWNER: Final = "ostinato.dev/owner"
"""Annotation: kind and key of the owner, "Widget.example.dev/default/a"."""

CONTROLLER: Final = "ostinato.dev/controller"
"""Annotation: name of the controller that applied the object, if the owner has several."""


def is_reachable(owner: AnyObject, instance: AnyObject) -> bool:
    """Return whether the object can have an owner reference to the owner. Both have their namespaces."""
    home = access.namespace(owner)
    return not home or home == access.namespace(instance)


def mark(owner: AnyObject, instance: dict[str, Any], controller: str = "") -> None:
    """Set label and annotations on an object; the label only where an owner reference is not allowed."""
    if not is_reachable(owner, instance):
        access.set_label(instance, OWNER_UID, access.uid(owner))
        access.set_annotation(instance, OWNER, owner_mark(access.gvk(owner).group_kind, access.key(owner)))
    if controller:
        access.set_annotation(instance, CONTROLLER, controller)


def is_member(owner: AnyObject, instance: AnyObject, controller: str = "") -> bool:
    """Return whether the object belongs to the set of the owner, and of the controller if one is given."""
    uid, reference = access.uid(owner), controller_of(instance)
    belongs = access.labels(instance).get(OWNER_UID) == uid or (reference is not None and reference.uid == uid)
    return belongs and (not controller or access.annotations(instance).get(CONTROLLER) == controller)


def owner_mark(kind: GroupKind, key: NamespacedName) -> str:
    return f"{kind}/{key}"


def marked_owner(annotations: Any) -> tuple[GroupKind, NamespacedName] | None:
    """Return kind and key of the owner that the annotations name; None if they name none, or cannot be read."""
    text = annotations.get(OWNER, "") if isinstance(annotations, dict) else ""
    kind, slash, key = text.partition("/") if isinstance(text, str) else ("", "", "")
    if not kind or not slash or not key or key.count("/") > 1:
        return None
    return GroupKind.parse(kind), NamespacedName.parse(key)
