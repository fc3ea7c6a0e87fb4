"""Errors for arguments of the wrong type: what was passed, and what to pass instead.

Messages name the argument and never show its content: it may be a Secret, and errors are logged.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.accessors import AnyObject, describe
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, Object

_MAX_TEXT: Final = 60  # characters of a str that are shown


def summarize(given: object) -> str:
    """Describe an argument briefly, without the content of an object."""
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if isinstance(given, Object):
        return f"the object {_describe(given)}"
    if isinstance(given, str):
        return f"the text {given[:_MAX_TEXT]!r}"
    kind = getattr(given, "gvk", None)
    if isinstance(kind, GroupVersionKind):  # a view
        return f"{type(given).__name__} of {kind.kind}"
    return f"{'an' if type(given).__name__[0] in 'aeiou' else 'a'} {type(given).__name__}"


def _describe(instance: AnyObject) -> str:
    """`describe` of an object whose metadata may be of the wrong type."""
    return describe(instance) if _has_metadata(instance) else type(instance).__name__


def check_object(given: object, verb: str) -> None:
    """Raise TypeError unless it is an object, rather than a class or a part of an object."""
    if isinstance(given, dict):
        return
    if isinstance(given, Object):
        if not _has_metadata(given):
            metadata = type(given.metadata).__name__
            raise TypeError(
                f"{type(given).__name__}: metadata: expected ObjectMeta, got {metadata}; "
                'write metadata=ObjectMeta(name="...")'
            )
        return
    wanted = "an instance of a class of ostinato.kinds or of a CustomResource, or a dict with apiVersion and kind"
    if isinstance(given, type) and issubclass(given, Object):
        wanted = f'an instance, e.g. {given.__name__}(metadata=ObjectMeta(name="..."), ...)'
        if verb in ("delete", "patch"):
            wanted += ", or the class and a name" if verb == "delete" else ", or the class, a name and a patch"
    raise TypeError(f"{verb}() got {summarize(given)}, which is not an object; pass {wanted}")


def not_a_kind(given: object) -> TypeError:
    """Return the error for an argument that is not a kind."""
    if isinstance(given, Object):
        wanted = f"pass its class, {type(given).__name__}"
    else:
        wanted = (
            "pass a class of ostinato.kinds, a CustomResource class, Unstructured.of(apiVersion, kind) or "
            "MetadataOf(kind)"
        )
    return TypeError(f"{summarize(given)} is not a kind; {wanted}")


def key_from(info: KindInfo | None, given: Any) -> NamespacedName:
    """Return namespace and name of a key that is not a str. Raises TypeError if it has none."""
    try:
        return given if isinstance(given, NamespacedName) else NamespacedName(given.namespace, given.name)
    except AttributeError:
        kind = f"{info.gvk.kind}: " if info is not None else ""
        wanted = 'a name, NamespacedName("namespace", "name"), a request or the metadata of an object'
        raise TypeError(f"{kind}{summarize(given)} is not a key; pass {wanted}") from None


def _has_metadata(instance: AnyObject) -> bool:
    return isinstance(instance, dict) or (
        hasattr(instance.metadata, "namespace") and hasattr(instance.metadata, "name")
    )
