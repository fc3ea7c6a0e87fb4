"""Echoes: events that tell a key of nothing but what its last run wrote.

A run that only echoes would cause is left out, where a controller asks for it. What somebody else did is never taken
for an echo: it has a version of its own. Nor is the end of an object: it must be there, just as it was written.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from ostinato.cache.informers import Informers
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.controllers.reasons import Cause, Why

_MOST: Final = 100_000  # keys whose writes are remembered


class Echoes:
    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._written: OrderedDict[Hashable, set[Cause]] = OrderedDict()  # by the last run of each key

    def begin(self, key: Hashable) -> None:
        """The key runs now: what it wrote before has been seen."""
        self._written.pop(key, None)

    def wrote(self, key: Hashable, write: OwnWrite) -> None:
        """The key has written an object."""
        cause = Cause(write.gvk, write.key, write.resource_version)
        written = self._written.get(key)
        if written is not None:
            written.add(cause)
            return
        self._written[key] = {cause}
        if len(self._written) > _MOST:
            self._written.popitem(last=False)

    def is_one(self, key: Hashable, cause: Cause) -> bool:
        """Whether this is nothing but what the key itself wrote in its last run."""
        written = self._written.get(key)
        return written is not None and cause in written and self._is_there(cause)

    def are_all(self, key: Hashable, why: Why) -> bool:
        """Whether there is no other reason for a run than what the key itself wrote."""
        if not why.causes or key not in self._written:
            return False
        return all(self.is_one(key, cause) for cause in why.causes)

    def _is_there(self, cause: Cause) -> bool:
        for informer in self._informers.all(cause.gvk):
            entry = informer.store.get(cause.key)
            if entry is not None:
                return entry.resource_version == cause.resource_version
        return False
