"""Manifests: the objects of a rendered chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.frontends.kernel.applier import ObjectRef

Json = dict[str, Any]

_POLICY: Final = "helm.sh/resource-policy"


class ManifestError(ValueError):
    """A rendered chart is not a list of objects."""


def objects_of(manifest: str) -> list[Json]:
    """Return the objects as they are written, each item of a List on its own. Raises `ManifestError`."""
    try:
        documents = decode_yaml_documents(manifest)
    except DecodeError as error:
        raise ManifestError(f"the rendered chart is not YAML: {error}") from None
    return list(_flat(documents))


def _flat(documents: Iterable[Any]) -> Iterator[Json]:
    for each in documents:
        if each is None or each == {}:
            continue
        if not isinstance(each, dict) or not isinstance(each.get("kind"), str) or not each.get("apiVersion"):
            raise ManifestError("the rendered chart has a document without apiVersion and kind")
        if each["kind"] == "List" and isinstance(each.get("items"), list):
            yield from _flat(each["items"])
            continue
        metadata = each.get("metadata")
        if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
            raise ManifestError(f"the rendered chart has a {each['kind']} without metadata.name")
        yield each


def is_kept(instance: Json) -> bool:
    """Whether the object survives an upgrade that drops it, and an uninstall."""
    return access.annotations(instance).get(_POLICY, "").strip().lower() == "keep"


def dropped(before: Iterable[Json], after: Iterable[Json]) -> list[Json]:
    """Return the objects that are in `before` only, by kind and key."""
    kept = {_identity(each) for each in after}
    return [each for each in before if _identity(each) not in kept]


def _identity(instance: Json) -> tuple[str, str, str, str]:
    ref = ObjectRef.of(instance)
    return ref.gvk.group, ref.kind, ref.namespace, ref.name
