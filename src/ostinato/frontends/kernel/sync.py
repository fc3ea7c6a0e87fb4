"""Sync: what a front end gives to the code of its users, and what it gets back.

    trigger, objects -> SyncRequest -> Decider -> SyncResult -> children, operations, status, Events, metrics

- All forms of operators are the same but for the decider: a function, a process, an HTTP request, a rendered chart, a
  step of a plan.
- Both sides are data: they can be written to a file as JSON (`recording`) and compared in a test.
- Objects are dicts as in JSON, by kind key ("Deployment.apps/v1") and object key ("default/web").
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupVersionKind

Json: TypeAlias = dict[str, Any]
Objects: TypeAlias = dict[str, dict[str, Json]]
"""Objects by kind key and object key."""


def kind_key(gvk: GroupVersionKind) -> str:
    """Return the key of a kind: "Pod.v1", "Deployment.apps/v1"."""
    return f"{gvk.kind}.{gvk.api_version}"


def parse_kind_key(key: str) -> GroupVersionKind:
    """Parse the key of a kind. Raises ValueError."""
    kind, dot, api_version = key.partition(".")
    if not kind or not dot or not api_version:
        raise ValueError(f"{key!r} is not a kind; write it as Deployment.apps/v1 or Pod.v1")
    return GroupVersionKind.of(api_version, kind)


def object_key(instance: AnyObject) -> str:
    """Return the key of an object within its kind: "default/web", or "web" if it is cluster-scoped."""
    return str(access.key(instance))


class Trigger(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Why the decider is called.

    - `type`: "Sync", "Schedule", "Startup", "Timer", or a word of the front end. Defaults to "Sync".
    - `reasons`: in words, such as "Pod updated".
    - `data`: data of the front end, such as the binding contexts of a hook.
    """

    type: str = "Sync"
    reasons: list[str] = msgspec.field(default_factory=list)
    data: Json = msgspec.field(default_factory=dict)


class SyncRequest(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """
    - `controller`: name of the controller that asks.
    - `parent`: the object to sync; None if the trigger is not about one.
    - `children`: the objects of the parent in the cluster. Declared kinds are present, possibly empty.
    - `related`: other objects that the decider asked for.
    - `snapshots`: named selections of objects, filtered.
    - `finalizing`: the parent is being deleted, or no longer selected.
    - `attempt`: 1, and more after failures.
    """

    controller: str
    trigger: Trigger = msgspec.field(default_factory=Trigger)
    parent: Json | None = None
    children: Objects = msgspec.field(default_factory=dict)
    related: Objects = msgspec.field(default_factory=dict)
    snapshots: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    finalizing: bool = False
    attempt: int = 1


class SyncEvent(msgspec.Struct, rename="camel", omit_defaults=True):
    """An Event about the parent.

    - `type`: "Normal" or "Warning". Defaults to "Normal".
    - `action`: Events of one reason with different actions are not counted as one. Defaults to the reason.
    """

    reason: str
    note: str
    type: str = "Normal"
    action: str = ""


class Ready(msgspec.Struct, rename="camel", omit_defaults=True):
    """The condition Ready of the parent."""

    ready: bool
    reason: str
    message: str = ""


class SyncResult(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """
    - `children`: the desired objects of the parent; those that are missing here are deleted. None changes nothing.
    - `operations`: changes of other objects, performed first, in order.
    - `status`: the status of the parent. None leaves it as it is.
    - `labels`, `annotations`: of the parent, to set, or to remove (None).
    - `events`: about the parent.
    - `metrics`: operations on metrics.
    - `resync_after`: seconds until the next sync. None waits for an event.
    - `finalized`: the clean-up is done; only while finalizing.
    - `ready`: the condition Ready of the parent. None leaves it to the status.
    """

    children: list[Json] | None = None
    operations: list[Json] = msgspec.field(default_factory=list)
    status: Json | None = None
    labels: dict[str, str | None] = msgspec.field(default_factory=dict)
    annotations: dict[str, str | None] = msgspec.field(default_factory=dict)
    events: list[SyncEvent] = msgspec.field(default_factory=list)
    metrics: list[Json] = msgspec.field(default_factory=list)
    resync_after: float | None = None
    finalized: bool | None = None
    ready: Ready | None = None


Decider: TypeAlias = Callable[[SyncRequest], Awaitable[SyncResult]]


class DeciderError(Exception):
    """The decider failed in a way that its message explains; reported without a traceback.

    - `retry_after`: seconds until the next attempt. Defaults to None: with backoff.
    - `permanent`: only a change of the objects helps; not retried. Defaults to False.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.permanent = permanent
