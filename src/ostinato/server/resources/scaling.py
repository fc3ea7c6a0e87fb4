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
    # The replicas in each version of the kind, by apiVersion, for ownership; None: a version without a scale.
    owned: Mapping[str, tuple[str, ...] | None] = {}


def struct_selector(parent: Json) -> str:
    """The selector of kinds that have one as a struct."""
    return str(from_label_selector((parent.get("spec") or {}).get("selector")))


def map_selector(parent: Json) -> str:
    """The selector of kinds that have it as a map."""
    return str(from_set((parent.get("spec") or {}).get("selector") or {}))
