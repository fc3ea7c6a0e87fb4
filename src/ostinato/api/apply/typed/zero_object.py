"""Zero objects: a kind before any field is set.

In Go, structs that are not pointers always exist, so that no manager adds or owns them: `f:spec` of a created
Deployment has no ".". Custom resources are empty.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind


def zero_object(gvk: GroupVersionKind) -> dict[str, Any]:
    """Return the zero object of a kind. Must not be modified."""
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {},
        **_zeros().get(f"{gvk.api_version}/{gvk.kind}", {}),
    }


@cache
def _zeros() -> dict[str, dict[str, Any]]:
    zeros: dict[str, dict[str, Any]] = msgspec.json.decode(
        resources.files("ostinato.api").joinpath("data/zero_objects.json").read_bytes()
    )
    return zeros
