"""Own events: events that were caused only by the writes of a key's last run.

With `runs_for_own_writes=False` they do not enqueue the key. An event of another writer is never mistaken for one: it
has another resourceVersion. Nor is a deletion: the object must exist with the written resourceVersion.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from ostinato.cache.informers import Informers
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.controllers.reasons import Cause, Why

_MAX_KEYS: Final = 100_000  # with remembered writes


class OwnEvents:
    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._written: OrderedDict[Hashable, set[Cause]] = OrderedDict()  # of the last run, by key

    def begin(self, key: Hashable) -> None:
        """Forget the writes of the previous run: the key runs now."""
        self._written.pop(key, None)

    def wrote(self, key: Hashable, write: OwnWrite) -> None:
        """Record a write of a key."""
        cause = Cause(write.gvk, write.key, write.resource_version)
        written = self._written.get(key)
        if written is not None:
            written.add(cause)
            return
        self._written[key] = {cause}
        if len(self._written) > _MAX_KEYS:
            self._written.popitem(last=False)

    def is_own(self, key: Hashable, cause: Cause) -> bool:
        """Return whether the event was caused by a write of the key's last run."""
        written = self._written.get(key)
        return written is not None and cause in written and self._is_current(cause)

    def are_all(self, key: Hashable, why: Why) -> bool:
        """Return whether all reasons of a run are own events."""
        if not why.causes or key not in self._written:
            return False
        return all(self.is_own(key, cause) for cause in why.causes)

    def _is_current(self, cause: Cause) -> bool:
        for informer in self._informers.all(cause.gvk):
            entry = informer.store.get(cause.key)
            if entry is not None:
                return entry.resource_version == cause.resource_version
        return False
