"""Bindings: when a hook runs, and with which objects.

- `queue`: the queue of the runs. `group`: contexts of bindings of one group are replaced by the snapshots of all.
- `include_snapshots`: names of `kubernetes` bindings of the hook whose objects are added; those of the group included.
- `allow_failure`: a failed run is logged, counted and not repeated.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ostinato.api.text.cron import Schedule
from ostinato.client.options import LabelSelection
from ostinato.frontends.kernel.snapshots.filters import Filter

MAIN: Final = "main"

Key = Literal["queue", "object"]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Additions to the configuration, below `x-ostinato`.

    - `timeout`: seconds after which a run is killed; 0 is never. Defaults to 0.
    - `attempts`: runs of one task until it is given up; 0 is without end. Defaults to 0.
    - `backoff`, `longest_backoff`: seconds before the second run, doubled with each failure up to the longest. Default
      to 5 and 32.
    - `managed_fields`: objects include metadata.managedFields. Defaults to True, as in shell-operator.
    """

    timeout: float = 0.0
    attempts: int = 0
    backoff: float = 5.0
    longest_backoff: float = 32.0
    managed_fields: bool = True


class Settings(msgspec.Struct, frozen=True):
    """Token bucket of a hook: one run every `interval` seconds, after a burst of `burst`."""

    interval: float
    burst: int


class ScheduleBinding(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    crontab: str
    schedule: Schedule
    queue: str = MAIN
    group: str = ""
    include_snapshots: tuple[str, ...] = ()
    allow_failure: bool = False


class KubernetesBinding(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `events`: the changes for which the hook runs.
    - `namespaces`: "" is all. `namespace_labels`: a selector of namespaces instead.
    - `reduce`: the filter; None keeps whole objects only.
    - `keep_objects`: False: contexts and snapshots have the results of the filter only.
    - `key`: "object" runs the hook in a queue of its own for each object.
    """

    name: str
    kind: str
    api_version: str = ""
    events: tuple[str, ...] = ("Added", "Modified", "Deleted")
    on_synchronization: bool = True
    wait_for_synchronization: bool = True
    names: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ("",)
    namespace_labels: LabelSelection = None
    labels: LabelSelection = None
    fields: str = ""
    reduce: Filter | None = None
    keep_objects: bool = True
    resync: float = 0.0
    queue: str = MAIN
    group: str = ""
    include_snapshots: tuple[str, ...] = ()
    allow_failure: bool = False
    key: Key = "queue"
    managed_fields: bool = True


class AdmissionBinding(msgspec.Struct, frozen=True, kw_only=True):
    """`webhook`: its entry in the webhook configuration, without clientConfig."""

    name: str
    mutating: bool
    webhook: dict[str, Any]
    group: str = ""
    include_snapshots: tuple[str, ...] = ()


class ConversionBinding(msgspec.Struct, frozen=True, kw_only=True):
    """`rules`: pairs of versions that the hook converts from and to, with or without the group."""

    name: str
    definition: str
    rules: tuple[tuple[str, str], ...]
    group: str = ""
    include_snapshots: tuple[str, ...] = ()


class HookConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one hook. `on_startup`: its order; None if it does not run at the start."""

    version: Literal["v0", "v1"] = "v1"
    on_startup: float | None = None
    schedules: tuple[ScheduleBinding, ...] = ()
    kubernetes: tuple[KubernetesBinding, ...] = ()
    admission: tuple[AdmissionBinding, ...] = ()
    conversions: tuple[ConversionBinding, ...] = ()
    settings: Settings | None = None
    options: RunOptions = RunOptions()

    @property
    def has_webhooks(self) -> bool:
        return bool(self.admission or self.conversions)

    def binding(self, name: str) -> KubernetesBinding | None:
        return next((each for each in self.kubernetes if each.name == name), None)
