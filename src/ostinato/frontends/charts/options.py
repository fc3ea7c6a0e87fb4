"""Options of a chart that reconciles a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

DEFAULT_PERIOD: Final = 60.0  # seconds, as in helm-operator


class ChartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `overrides`: values that win over those of the custom resource, by path: {"image.tag": "v2"}.
    - `selector`: a LabelSelector as in JSON; other objects are ignored. Defaults to all objects.
    - `reconcile_period`: seconds until an object is reconciled again. 0 disables it. Defaults to 60.
    - `watch_dependents`: reconcile an object when one of its release changes. Defaults to True.
    - `dry_run`: "server" renders the chart at every reconcile, with `lookup`, and upgrades if the result differs.
      Defaults to "client": an upgrade is due when the chart or the values have changed.
    - `wait`: seconds until the objects of an install or upgrade must be ready, or it has failed. Defaults to 0, as in
      helm-operator: do not wait.
    - `hook_timeout`: seconds for each hook. Defaults to 300.
    - `max_history`: revisions that are kept. Defaults to 10.
    - `workers`: concurrent reconciles. Defaults to 1.
    """

    overrides: Mapping[str, str] = {}
    selector: Mapping[str, Any] | None = None
    reconcile_period: float = DEFAULT_PERIOD
    watch_dependents: bool = True
    dry_run: Literal["client", "server"] = "client"
    wait: float = 0.0
    hook_timeout: float = 300.0
    max_history: int = 10
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("reconcile_period", "wait", "hook_timeout"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name)} is negative")
        if self.max_history < 1:
            raise ValueError(f"max_history: {self.max_history} is less than 1")
