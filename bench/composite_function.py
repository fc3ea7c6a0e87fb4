"""The contender `@composite` of `bench.composites`."""

from __future__ import annotations

import os
from typing import Any

from bench.composites import PARENT, children
from ostinato.api.gvk import GroupVersionKind
from ostinato.frontends.composite import Sync, composite, labels

_CONTENDER = os.environ["OSTINATO_BENCH_CONTENDER"]


@composite(
    PARENT,
    children=[GroupVersionKind("", "v1", "ConfigMap")],
    name=_CONTENDER,
    when=labels(f"contender={_CONTENDER}"),
    max_concurrent=5,
)
async def parents(parent: dict[str, Any]) -> Sync:
    return Sync(children=children(parent), status={"done": True})
