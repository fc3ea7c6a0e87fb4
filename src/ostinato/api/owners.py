"""Owner references, and the controller reference among them.

- References are equal by group, kind and name: one in another API version is replaced, not added.
- `is_controlled_by` compares uids, so that an owner recreated with the same name controls nothing.
- An owner is cluster-scoped or in the namespace of the dependent; the garbage collector treats others as absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.api import accessors
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import from_dict, to_dict
from ostinato.api.gvk import GroupVersion, GroupVersionKind
from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object
from ostinato.api.text.go_format import json_text
from ostinato.api.validation.field_errors import FieldError, Path

_ADVICE = "leave out owner=, and delete the object in a finalizer of the owner"
_BANNED_OWNERS = frozenset({GroupVersionKind("", "v1", "Event")})


class OwnerError(ValueError):
    """The object cannot have this owner."""


class AlreadyOwned(OwnerError):  # noqa: N818 - the name of the condition in controller-runtime
    """The object already has another controller."""

    def __init__(self, instance: AnyObject, owner: OwnerReference) -> None:
        super().__init__(
            f"{accessors.describe(instance)} is already owned by another {owner.kind} controller {owner.name} "
            f"(uid {owner.uid}); use another name, or delete it"
        )
        self.owner = owner


def owner_references(instance: AnyObject) -> list[OwnerReference]:
    """Return the references, read-only. Items of a dict that are not references are skipped."""
    if isinstance(instance, Object):
        return instance.metadata.owner_references
    metadata = instance.get("metadata")
    found = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if not isinstance(found, list):
        return []
    return [from_dict(OwnerReference, each) for each in found if isinstance(each, dict)]


def controller_of(instance: AnyObject) -> OwnerReference | None:
    """Return the controller reference."""
    for reference in owner_references(instance):
        if reference.controller:
            return reference
    return None


def is_controlled_by(instance: AnyObject, owner: AnyObject) -> bool:
    """Whether the owner, by uid, is the controller of the object."""
    reference = controller_of(instance)
    return reference is not None and reference.uid == accessors.uid(owner)


def reference_to(owner: AnyObject) -> OwnerReference:
    """Return a reference without `controller` and `blockOwnerDeletion`."""
    kind, name, uid = accessors.gvk(owner), accessors.name(owner), accessors.uid(owner)
    if not uid:
        raise OwnerError(f"{accessors.describe(owner)} has no uid; an owner must be read from the server")
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=name, uid=uid)


def controller_reference_to(owner: AnyObject) -> OwnerReference:
    """Return a controller reference."""
    reference = reference_to(owner)
    reference.controller = True
    reference.block_owner_deletion = True
    return reference


def set_controller_reference(owner: AnyObject, instance: AnyObject, *, block_owner_deletion: bool = True) -> bool:
    """Set the controller reference. Returns whether it changed. Raises AlreadyOwned if there is another controller."""
    _check_fit(owner, instance)
    reference = controller_reference_to(owner)
    reference.block_owner_deletion = block_owner_deletion
    current = controller_of(instance)
    if current is not None and not _same_owner(current, reference):
        raise AlreadyOwned(instance, current)
    return _put(instance, reference)


def set_owner_reference(owner: AnyObject, instance: AnyObject, *, block_owner_deletion: bool | None = None) -> bool:
    """Add an owner reference. Returns whether the object changed."""
    _check_fit(owner, instance)
    reference = reference_to(owner)
    reference.block_owner_deletion = block_owner_deletion
    return _put(instance, reference)


def has_owner_reference(owner: AnyObject, instance: AnyObject) -> bool:
    return any(_same_owner(reference, _loose_reference(owner)) for reference in owner_references(instance))


def remove_owner_reference(owner: AnyObject, instance: AnyObject) -> bool:
    """Remove an owner reference. Returns whether the object changed."""
    references = owner_references(instance)
    kept = [reference for reference in references if not _same_owner(reference, _loose_reference(owner))]
    if len(kept) == len(references):
        return False
    _write(instance, kept)
    return True


def validate_owner_references(references: Sequence[OwnerReference], path: Path) -> list[FieldError]:
    """Validate references as the API server does."""
    errors: list[FieldError] = []
    first = ""
    for reference in references:
        errors += _validate(reference, path)
        if reference.controller:
            controller = f"{reference.kind}/{reference.name}"
            if first:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {controller}'
                )
                errors.append(FieldError.invalid(path, list(map(_Shown, references)), detail))
            else:
                first = controller
    return errors


def _validate(reference: OwnerReference, path: Path) -> list[FieldError]:
    errors = []
    version = _group_version(reference)
    if not version.version:
        errors.append(FieldError.invalid(path.child("apiVersion"), reference.api_version, "version must not be empty"))
    for field, value in (("kind", reference.kind), ("name", reference.name), ("uid", reference.uid)):
        if not value:
            errors.append(FieldError.invalid(path.child(field), value, "must not be empty"))
    if version.kind(reference.kind) in _BANNED_OWNERS:
        detail = f"{version.group}/{version.version}, Kind={reference.kind} is disallowed from being an owner"
        errors.append(FieldError.invalid(path, _Shown(reference), detail))
    return errors


class _Shown:
    """A reference in an error: fields in the order of the API, not sorted."""

    def __init__(self, reference: OwnerReference) -> None:
        self._fields = to_dict(reference)

    def __str__(self) -> str:
        return "{" + ",".join(f'"{name}":{json_text(value)}' for name, value in self._fields.items()) + "}"


def _group_version(reference: OwnerReference) -> GroupVersion:
    try:
        return GroupVersion.parse(reference.api_version)
    except ValueError:
        return GroupVersion("", "")


def _same_owner(one: OwnerReference, other: OwnerReference) -> bool:
    return (
        one.kind == other.kind and one.name == other.name and _group_version(one).group == _group_version(other).group
    )


def _loose_reference(owner: AnyObject) -> OwnerReference:
    """Return a reference for comparison; the owner needs no uid."""
    kind = accessors.gvk(owner)
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=accessors.name(owner), uid="")


def _check_fit(owner: AnyObject, instance: AnyObject) -> None:
    theirs, own = accessors.namespace(owner), accessors.namespace(instance)
    if not theirs or theirs == own:
        if (
            accessors.name(owner) == accessors.name(instance)
            and accessors.gvk(owner).group_kind == accessors.gvk(instance).group_kind
        ):
            raise OwnerError(f"{accessors.describe(instance)} cannot own itself; apply it without owner=")
        return
    what, whose = accessors.describe(instance), accessors.describe(owner)
    if not own:
        raise OwnerError(f"{what}: cluster-scoped resource must not have a namespace-scoped owner, {whose}; {_ADVICE}")
    raise OwnerError(f"{what}: cross-namespace owner references are disallowed, its owner is {whose}; {_ADVICE}")


def _put(instance: AnyObject, reference: OwnerReference) -> bool:
    """Replace the reference to the same owner, or add one."""
    references = [*owner_references(instance)]
    for index, current in enumerate(references):
        if _same_owner(current, reference):
            if current == reference:
                return False
            references[index] = reference
            break
    else:
        references.append(reference)
    _write(instance, references)
    return True


def _write(instance: AnyObject, references: list[OwnerReference]) -> None:
    if isinstance(instance, Object):
        instance.metadata.owner_references = references
        return
    metadata: dict[str, Any] = accessors.writable_metadata(instance)
    if references:
        metadata["ownerReferences"] = [to_dict(reference) for reference in references]
    else:
        metadata.pop("ownerReferences", None)
