"""Options of a controller, and how they inherit from the manager's.

An option that is None in the controller is taken from the manager; if it is None there too, from the defaults below.
False and 0 are values and are not inherited.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypedDict

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.controllers.sources.namespace_patterns import NamespacePatterns, NamespaceSelection
from ostinato.queue import ExponentialBackoff, RateLimiter

Limiter: TypeAlias = Callable[[], RateLimiter[Hashable]]

DEFAULT_SYNC_TIMEOUT: Final = 120.0


class ControllerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `max_concurrent`: maximum number of concurrent reconciles, each for another key. Defaults to 1.
    - `concurrency_of`: `max_concurrent` by the kind of the controller, as "Kind.group"; for the manager's options.
    - `reconcile_timeout`: seconds after which a reconcile is cancelled and counts as failed. A plain function is
      stopped at its next call of the client. Defaults to 0, no timeout.
    - `sync_timeout`: seconds that the sources may take to sync. Defaults to 120.
    - `needs_leader_election`: run only while this process is the leader. Defaults to True.
    - `warm_up`: sync caches and fill the queue before leadership is acquired, so that a new leader starts immediately.
      Defaults to False.
    - `contain_panics`: treat a programming error in a reconcile as a failed reconcile; if False, it stops the
      controller. Defaults to True.
    - `limiter`: creates the rate limiter for failed keys. Defaults to exponential backoff from 5 ms to 1000 s.
    - `max_retries`: retries of a key that fails again and again, after which it is not requeued until its object
      changes. Defaults to -1, no limit.
    - `namespaces`: patterns of the namespaces whose objects are reconciled, "team-*,!team-test". Defaults to "*", all.
      The caches still hold all namespaces that they watch.
    - `wait_for_own_writes`: delay a key until the cache has seen its own last writes. Defaults to True.
    - `runs_for_own_writes`: enqueue a key for events that its own writes cause. Defaults to True. False is for
      reconcilers that complete their work in one run.
    - `hot_loop_guard`: delay keys whose reconcile writes the same object again and again. Defaults to True.
    - `error_events`: record a Warning Event about an object whose reconcile fails. Defaults to True.
    - `error_conditions`: set Ready=False on a custom resource whose reconcile fails, if its status has conditions.
      Defaults to True.
    - `changes_annotation`: store what `ctx.changed` compares with in an annotation of the object, so that it survives a
      restart. Defaults to False.
    - `slow_step`: seconds for which a reconcile may block the event loop before a warning is logged. 0 disables it.
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
    max_retries: int | None = None
    namespaces: NamespaceSelection | None = None
    wait_for_own_writes: bool | None = None
    runs_for_own_writes: bool | None = None
    hot_loop_guard: bool | None = None
    error_events: bool | None = None
    error_conditions: bool | None = None
    changes_annotation: bool | None = None
    slow_step: float | None = None

    def __post_init__(self) -> None:
        for name in ("reconcile_timeout", "sync_timeout", "slow_step"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise ValueError(f"{name}: {value!r} is not a number of seconds")
        for name in ("max_concurrent", "max_retries"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ValueError(f"{name}: {value!r} is not an integer")
        if self.namespaces is not None:
            NamespacePatterns(self.namespaces)

    def inheriting(self, defaults: ControllerOptions) -> ControllerOptions:
        """Return these options with None replaced by `defaults`."""
        missing: dict[str, Any] = {
            name: getattr(defaults, name) for name in self.__struct_fields__ if getattr(self, name) is None
        }
        return msgspec.structs.replace(self, **missing)

    def complete(
        self, defaults: ControllerOptions | None = None, gvk: GroupVersionKind | None = None
    ) -> ControllerOptions:
        """Return these options with every None replaced, by the manager's options or by the defaults.

        `max_concurrent` is the controller's, else the manager's for the kind, else the manager's for all.
        """
        manager = defaults or ControllerOptions()
        whole = self.inheriting(manager).inheriting(_DEFAULTS)
        by_kind = None if gvk is None else (whole.concurrency_of or {}).get(str(gvk.group_kind))
        candidates = (self.max_concurrent, by_kind, manager.max_concurrent, 1)
        return msgspec.structs.replace(whole, max_concurrent=next(each for each in candidates if each and each > 0))


class OptionKeywords(TypedDict, total=False):
    """The fields of `ControllerOptions` as keyword arguments, so that type checkers know them."""

    max_concurrent: int | None
    concurrency_of: Mapping[str, int] | None
    reconcile_timeout: float | None
    sync_timeout: float | None
    needs_leader_election: bool | None
    warm_up: bool | None
    contain_panics: bool | None
    limiter: Limiter | None
    max_retries: int | None
    namespaces: NamespaceSelection | None
    wait_for_own_writes: bool | None
    runs_for_own_writes: bool | None
    hot_loop_guard: bool | None
    error_events: bool | None
    error_conditions: bool | None
    changes_annotation: bool | None
    slow_step: float | None


def check_option_names(given: Iterable[str], known: Sequence[str], where: str) -> None:
    """Raise TypeError for an option that is not known; the message suggests the nearest and lists all."""
    unknown = sorted(set(given) - set(known))
    if not unknown:
        return
    from difflib import get_close_matches  # noqa: PLC0415 - for the message only

    nearest = get_close_matches(unknown[0], known, n=1)
    advice = f"did you mean {nearest[0]}? " if nearest else ""
    raise TypeError(f"{where}: unknown option {unknown[0]!r}; {advice}options are {', '.join(known)}")


_DEFAULTS: Final = ControllerOptions(
    max_concurrent=1,
    concurrency_of={},
    reconcile_timeout=0.0,
    sync_timeout=DEFAULT_SYNC_TIMEOUT,
    needs_leader_election=True,
    warm_up=False,
    contain_panics=True,
    limiter=ExponentialBackoff,
    max_retries=-1,
    namespaces="*",
    wait_for_own_writes=True,
    runs_for_own_writes=True,
    hot_loop_guard=True,
    error_events=True,
    error_conditions=True,
    changes_annotation=False,
    slow_step=0.5,
)
