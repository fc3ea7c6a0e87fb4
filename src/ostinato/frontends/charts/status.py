"""Status of a custom resource whose chart is deployed, as helm-operator has it."""

from __future__ import annotations

from typing import Any

from ostinato.api.time import Time
from ostinato.frontends.charts.releases.record import ReleaseRecord
from ostinato.frontends.watches.conditions import Conditions

Json = dict[str, Any]

INITIALIZED, DEPLOYED = "Initialized", "Deployed"
RELEASE_FAILED, IRRECONCILABLE = "ReleaseFailed", "Irreconcilable"


class ReleaseStatus:
    """The status while it is reconciled; other fields of it are kept."""

    def __init__(self, status: Any, now: Time) -> None:
        self._before = dict(status) if isinstance(status, dict) else {}
        self._conditions = Conditions(status, now)
        self._release: Json | None = self._before.get("deployedRelease")

    def initialized(self) -> None:
        self._conditions.set(INITIALIZED, "True")

    def deployed(self, record: ReleaseRecord) -> None:
        """The release is as the record says."""
        self._conditions.remove(RELEASE_FAILED)
        self._conditions.remove(IRRECONCILABLE)
        reason = "InstallSuccessful" if record.version == 1 else "UpgradeSuccessful"
        self._conditions.set(DEPLOYED, "True", reason=reason, message=record.info.notes or None)
        self._release = {"name": record.name, "manifest": record.manifest}

    def failed(self, reason: str, message: str) -> None:
        """An action on the release has failed: InstallError, UpgradeError or UninstallError."""
        self._conditions.set(RELEASE_FAILED, "True", reason=reason, message=message)

    def irreconcilable(self, message: str) -> None:
        self._conditions.set(IRRECONCILABLE, "True", reason="ReconcileError", message=message)

    def uninstalled(self, *, waiting: bool) -> None:
        """The release is uninstalled. `waiting`: its objects still exist."""
        self._conditions.remove(RELEASE_FAILED)
        message = "Waiting until all resources are deleted." if waiting else None
        self._conditions.set(DEPLOYED, "False", reason="UninstallSuccessful", message=message)
        if not waiting:
            self._release = None

    @property
    def manifest(self) -> str:
        """The manifest of the deployed release; "" without one."""
        found = (self._release or {}).get("manifest")
        return found if isinstance(found, str) else ""

    def change(self) -> Json | None:
        """Return the fields of a merge patch; None if nothing has changed."""
        after: Json = {"conditions": self._conditions.as_list(), "deployedRelease": self._release}
        same = all(self._before.get(name) == value for name, value in after.items())
        return None if same else after
