"""Failing objects: whether the function of an object that has failed may be called again.

The function of a daemon or a timer often writes the status of its object. The events of these writes must not undo the
backoff: after a failure it is called again when the controller retries, or when the object itself has changed; after a
permanent failure only when it has changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.controllers.current import Reconcile
from ostinato.controllers.objects.essence import digest
from ostinato.controllers.result import is_permanent


class _Failed(NamedTuple):
    uid: str
    digest: bytes
    is_permanent: bool


class FailingObjects:
    def __init__(self) -> None:
        self._failed: dict[Hashable, _Failed] = {}

    def add(self, key: Hashable, instance: AnyObject, error: BaseException) -> None:
        """Record a failure."""
        self._failed[key] = _Failed(access.uid(instance), digest(instance), is_permanent(error))

    def discard(self, key: Hashable) -> None:
        self._failed.pop(key, None)

    def may_run(self, reconcile: Reconcile, instance: AnyObject) -> bool:
        """Return whether the function may be called; if so, forget its failure."""
        failed = self._failed.get(reconcile.request)
        if failed is None:
            return True
        is_retried = reconcile.why.is_requeued and not failed.is_permanent
        if not is_retried and failed[:2] == (access.uid(instance), digest(instance)):
            return False
        del self._failed[reconcile.request]
        return True
