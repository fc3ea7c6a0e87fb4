"""Options of a controller, and how those that are not given are inherited.

An option that a controller does not give is the manager's; one that neither gives has the default that is named here.
False and 0 are given: only None is inherited.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.queue import ExponentialBackoff, RateLimiter

Limiter: TypeAlias = Callable[[], RateLimiter[Hashable]]

DEFAULT_SYNC_TIMEOUT: Final = 120.0


class ControllerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `max_concurrent`: how many reconciles run at once, each of another key. Defaults to 1.
    - `concurrency_of`: the same for controllers of certain kinds, by "Kind.group"; for the manager to give.
    - `reconcile_timeout`: seconds that a reconcile may take. It is cancelled then, wherever it awaits, and counts as
      failed; a plain function is stopped at its next use of the client. Defaults to 0, as long as it likes.
    - `sync_timeout`: seconds that the sources have to tell what is there. Defaults to 120.
    - `needs_leader_election`: whether only the leader reconciles. Defaults to True.
    - `warm_up`: fill caches and queue before the election is won, so that a new leader begins at once. Defaults to
      False.
    - `contain_panics`: a reconcile that fails by a programming error counts as failed, and the others go on; if not,
      it ends the controller. Defaults to True.
    - `limiter`: makes what says how long a failed key waits. Defaults to 5 ms, doubled each time, up to 1000 s.
    - `wait_for_own_writes`: a key whose last writes are not in the cache waits until they are. Defaults to True.
    - `runs_for_own_writes`: whether what a run wrote leads to another run of the same key. Defaults to True: a step at
      a time is a good way to work. False is for reconcilers that do all there is to do in one run.
    - `hot_loop_guard`: hold back keys whose reconcile keeps writing the same object. Defaults to True.
    - `slow_step`: seconds for which a reconcile may block everything else before that is reported; 0 is never.
      Defaults to 0.5.
    """

    max_concurrent: int | None = None
    concurrency_of: Mapping[str, int] | None = None
    reconcile_timeout: float | None = None
    sync_timeout: float | None = None
    needs_leader_election: bool | None = None
    warm_up: bool | None = None
    contain_panics: bool | None = None
    limiter: Limiter | None = None
    wait_for_own_writes: bool | None = None
    runs_for_own_writes: bool | None = None
    hot_loop_guard: bool | None = None
    slow_step: float | None = None

    def __post_init__(self) -> None:
        for name in ("reconcile_timeout", "sync_timeout", "slow_step"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise ValueError(f"{name}: {value!r} is not a number of seconds")
        if self.max_concurrent is not None and not isinstance(self.max_concurrent, int):
            raise ValueError(f"max_concurrent: {self.max_concurrent!r} is not a number of reconciles")

    def inheriting(self, defaults: ControllerOptions) -> ControllerOptions:
        """The same, with what is not given here taken from there."""
        missing: dict[str, Any] = {
            name: getattr(defaults, name) for name in self.__struct_fields__ if getattr(self, name) is None
        }
        return msgspec.structs.replace(self, **missing)

    def complete(
        self, defaults: ControllerOptions | None = None, gvk: GroupVersionKind | None = None
    ) -> ControllerOptions:
        """The same, with nothing left out: what is not given here is the manager's.

        How many run at once is said by the controller, or for the kind that it is for, or for all of the manager's.
        """
        manager = defaults or ControllerOptions()
        whole = self.inheriting(manager).inheriting(_BY_DEFAULT)
        by_kind = None if gvk is None else (whole.concurrency_of or {}).get(str(gvk.group_kind))
        said = (self.max_concurrent, by_kind, manager.max_concurrent, 1)
        return msgspec.structs.replace(whole, max_concurrent=next(each for each in said if each and each > 0))


_BY_DEFAULT: Final = ControllerOptions(
    max_concurrent=1,
    concurrency_of={},
    reconcile_timeout=0.0,
    sync_timeout=DEFAULT_SYNC_TIMEOUT,
    needs_leader_election=True,
    warm_up=False,
    contain_panics=True,
    limiter=ExponentialBackoff,
    wait_for_own_writes=True,
    runs_for_own_writes=True,
    hot_loop_guard=True,
    slow_step=0.5,
)
