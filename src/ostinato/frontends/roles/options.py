"""Options of a role or playbook that reconciles a kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers.objects.finalizing import check_finalizer

DEFAULT_PERIOD: Final = 36_000.0  # seconds, as in ansible-operator
MAX_VERBOSITY: Final = 7


class Content(msgspec.Struct, frozen=True):
    """A role directory, or a playbook file."""

    path: Path
    is_role: bool

    def check(self) -> None:
        """Raise ValueError if it does not exist."""
        what = "role" if self.is_role else "playbook"
        if not (self.path.is_dir() if self.is_role else self.path.is_file()):
            raise ValueError(
                f"{what} {self.path} was not found; it must be a {'directory' if self.is_role else 'file'}"
            )

    @classmethod
    def role(cls, path: str | Path) -> Content:
        return cls(Path(path).absolute(), is_role=True)

    @classmethod
    def playbook(cls, path: str | Path) -> Content:
        return cls(Path(path).absolute(), is_role=False)


class RoleFinalizer(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: the finalizer, such as "cache.example.com/finalizer".
    - `role`, `playbook`: run when the object is deleted. Default to the content of the watch, with `vars`.
    - `vars`: extra variables of that run.
    """

    name: str
    role: str = ""
    playbook: str = ""
    vars: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        check_finalizer(self.name)
        if self.role and self.playbook:
            raise ValueError(f"finalizer {self.name}: give a role or a playbook, not both")

    @property
    def content(self) -> Content | None:
        if self.playbook:
            return Content.playbook(self.playbook)
        return Content.role(self.role) if self.role else None


class RoleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `vars`: extra variables. They win over those of the object.
    - `finalizer`: what to run when the object is deleted. Defaults to None: nothing.
    - `selector`: a LabelSelector as in JSON; other objects are ignored. Defaults to all objects.
    - `reconcile_period`: seconds until an object is reconciled again. 0 disables it. Defaults to 10 hours.
    - `manage_status`: write the conditions Running, Successful and Failure. Defaults to True.
    - `watch_dependents`: reconcile an object when one that its run has created changes. Defaults to True.
    - `watch_cluster_scoped`: cluster-scoped dependents of namespaced objects too. Defaults to False.
    - `watch_annotations`: reconcile an object when its annotations change. Defaults to False.
    - `blacklist`: kinds whose objects are not watched.
    - `snake_case`: convert the names of the spec to snake_case. Defaults to True.
    - `mark_unsafe`: take strings of the object as text, never as Jinja templates: whoever may create an object could
      otherwise run code as the operator. Defaults to True; to False in watches.yaml, as in operator-sdk.
    - `max_artifacts`: runs whose artifacts are kept for each object. Defaults to 20.
    - `verbosity`: of ansible-playbook, 0 to 7. Defaults to 0.
    - `timeout`: seconds after which a run is killed and has failed. Defaults to 0, no limit.
    - `workers`: concurrent runs. Defaults to 1.
    """

    vars: Mapping[str, Any] = {}
    finalizer: RoleFinalizer | None = None
    selector: Mapping[str, Any] | None = None
    reconcile_period: float = DEFAULT_PERIOD
    manage_status: bool = True
    watch_dependents: bool = True
    watch_cluster_scoped: bool = False
    watch_annotations: bool = False
    blacklist: tuple[GroupVersionKind, ...] = ()
    snake_case: bool = True
    mark_unsafe: bool = True
    max_artifacts: int = 20
    verbosity: int = 0
    timeout: float = 0.0
    workers: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.verbosity <= MAX_VERBOSITY:
            raise ValueError(f"verbosity: {self.verbosity} is not in the range of 0 to {MAX_VERBOSITY}")
        if self.reconcile_period < 0:
            raise ValueError(f"reconcile_period: {self.reconcile_period} is negative; 0 disables it")
