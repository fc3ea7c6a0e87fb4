"""Wrong arguments: what a verb was given, and what it wants, in one sentence.

What was given is named and never shown: it may be a Secret, and errors are logged.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.access import AnyObject, describe
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, Object

_LONGEST: Final = 60  # characters of a text that are shown


def summarize(given: object) -> str:
    """What was given, in a few words."""
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if isinstance(given, Object):
        return f"the object {_describe(given)}"
    if isinstance(given, str):
        return f"the text {given[:_LONGEST]!r}"
    kind = getattr(given, "gvk", None)
    if isinstance(kind, GroupVersionKind):  # a view
        return f"{type(given).__name__} of {kind.kind}"
    return f"{'an' if type(given).__name__[0] in 'aeiou' else 'a'} {type(given).__name__}"


def _describe(instance: AnyObject) -> str:
    """As `describe`, of an object whose metadata may be nonsense."""
    return describe(instance) if _has_metadata(instance) else type(instance).__name__


def check_object(given: object, verb: str) -> None:
    """A TypeError unless it is an object: a class, or part of an object, is none."""
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
    wanted = "one of a class of ostinato.kinds or of a CustomResource, or a dict with apiVersion and kind"
    if isinstance(given, type) and issubclass(given, Object):
        wanted = f'an object of it, e.g. {given.__name__}(metadata=ObjectMeta(name="..."), ...)'
        if verb in ("delete", "patch"):
            wanted += ", or its name after the class" if verb == "delete" else ", or a name and a patch after the class"
    raise TypeError(f"{verb}: {summarize(given)} is no object; give {wanted}")


def not_a_kind(given: object) -> TypeError:
    """For what was given in place of a kind."""
    if isinstance(given, Object):
        wanted = f"give its class, {type(given).__name__}"
    else:
        wanted = (
            "give a class of ostinato.kinds, a CustomResource of your own, Unstructured.of(apiVersion, kind) or "
            "MetadataOf(kind)"
        )
    return TypeError(f"{summarize(given)} is no kind: {wanted}")


def key_from(info: KindInfo | None, given: Any) -> NamespacedName:
    """Namespace and name of what is no text; a TypeError if it has none of them."""
    try:
        return given if isinstance(given, NamespacedName) else NamespacedName(given.namespace, given.name)
    except AttributeError:
        kind = f"{info.gvk.kind}: " if info is not None else ""
        wanted = 'a name, NamespacedName("namespace", "name"), a request or the metadata of an object'
        raise TypeError(f"{kind}{summarize(given)} names no object; give {wanted}") from None


def _has_metadata(instance: AnyObject) -> bool:
    return isinstance(instance, dict) or (
        hasattr(instance.metadata, "namespace") and hasattr(instance.metadata, "name")
    )
