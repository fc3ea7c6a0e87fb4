"""What a kind looks like before anything is set: the structs that an object always has.

The built-in kinds are Go structs on a real API server. A struct within them that is not a pointer is there from the
start, so nobody adds it and nobody owns it as such: `f:spec` of a created Deployment holds no ".". Custom resources
start empty.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind


def zero_object(gvk: GroupVersionKind) -> dict[str, Any]:
    """The empty object of a kind. Not to be changed."""
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
