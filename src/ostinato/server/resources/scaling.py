"""Scale fields of a kind: where it keeps its replicas and its Pod selector."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ostinato.api.selectors.labels import from_label_selector, from_set
from ostinato.server.resources.strategy import Json


class ScaleFields(msgspec.Struct, frozen=True):
    """The fields of a kind that its Scale shows."""

    selector: Callable[[Json], str]  # label selector of the Pods, as text
    replicas: tuple[str, ...] = ("spec", "replicas")
    current: tuple[str, ...] = ("status", "replicas")
    # By apiVersion, the path of replicas for field ownership; None: the version has no scale subresource.
    owned: Mapping[str, tuple[str, ...] | None] = {}


def struct_selector(parent: Json) -> str:
    """The selector of kinds with a LabelSelector."""
    return str(from_label_selector((parent.get("spec") or {}).get("selector")))


def map_selector(parent: Json) -> str:
    """The selector of kinds with a map of labels."""
    return str(from_set((parent.get("spec") or {}).get("selector") or {}))
