"""Own writes: the writes of a block of code, and whether the caches have observed them.

    with own_writes() as writes:
        await reconcile(request)
    ...
    await writes.wait_seen(timeout=10)      # before the next reconcile of the same key

- A reconcile that runs before its last writes are in the cache decides on the state before them. So the controller
  records the writes of each reconcile, and delays the next one of the same key until they are observed.
- Writes of tasks that are started in the block count too.
- A write without a response may have been performed, with an unknown resourceVersion. `wait_seen` then takes at least
  `UNANSWERED_DELAY` after it, in which its event arrives: otherwise a reconcile that creates what it does not find
  would create it twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.expectations import Expectation, wait_for
from ostinato.world import Clock

_recording: ContextVar[OwnWrites | None] = ContextVar("ostinato.cache.own_writes.recorder", default=None)


UNANSWERED_DELAY: Final = 1.0  # seconds; an event takes milliseconds, but a broken connection is reopened first


class OwnWrite(msgspec.Struct, frozen=True):
    """One write: the object in the server's response, and its identity."""

    gvk: GroupVersionKind
    key: NamespacedName
    resource_version: str
    instance: AnyObject

    @classmethod
    def of(cls, instance: AnyObject) -> OwnWrite:
        return cls(access.gvk(instance), access.key(instance), access.resource_version(instance), instance)


class OwnDeletion(msgspec.Struct, frozen=True, gc=False):
    """One accepted deletion.

    - `uid`: "" if neither the request nor the response names it.
    - `resource_version`: of the object in the response: marked for deletion, or removed. "" if the response is only a
      Status: the object is gone.
    """

    gvk: GroupVersionKind
    key: NamespacedName
    uid: str
    resource_version: str = ""

    @classmethod
    def of(cls, gvk: GroupVersionKind, key: NamespacedName, uid: str, response: bytes) -> OwnDeletion:
        usual = _usual_object(response)
        if usual is not None:
            return cls(gvk, key, uid or usual[1].decode(), usual[2].decode())
        try:
            found = _decode_deletion(response)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return cls(gvk, key, uid)
        if found.kind == "Status":
            return cls(gvk, key, uid or found.details.uid)
        return cls(gvk, key, uid or found.metadata.uid, found.metadata.resource_version)


class _Identity(msgspec.Struct, frozen=True, rename="camel", gc=False):
    uid: str = ""
    resource_version: str = ""


class _Deletion(msgspec.Struct, gc=False):
    """The response to a deletion: an object, or a Status."""

    kind: str = ""
    metadata: _Identity = _Identity()
    details: _Identity = _Identity()


_decode_deletion = msgspec.json.Decoder(_Deletion).decode

# An object as API servers write it: kind and apiVersion, then metadata, which begins with these fields. Found without
# decoding the rest. A Status, other orders, and texts with escapes or beyond ASCII are left to the decoder.
_TYPE: Final = rb'"(?:kind":"(?!Status")|apiVersion":")[^"\\]*",'
_NAMES: Final = rb'(?:"(?:name|generateName|namespace|selfLink)":"[^"\\]*",)*'
_TEXT: Final = rb'"([!#-\[\]-~]*)"'
_usual_object = re.compile(
    rb"\{(?:" + _TYPE + rb'){2}"metadata":\{' + _NAMES + rb'"uid":' + _TEXT + rb',"resourceVersion":' + _TEXT + rb"[,}]"
).match


OnWrite = Callable[[OwnWrite], object]
OnDelete = Callable[[OwnDeletion], object]


class OwnWrites:
    def __init__(
        self, on_write: OnWrite | None = None, on_delete: OnDelete | None = None, on_scale: OnWrite | None = None
    ) -> None:
        """`on_write`, `on_delete`, `on_scale`: called with each write, deletion and new scale. Default to nothing."""
        self.on_write = on_write
        self.on_delete = on_delete
        self.on_scale = on_scale
        self._expectations: list[Expectation] = []
        self._clock: Clock | None = None  # set with the first unobserved write
        self._until = 0.0  # when writes without a response count as observed

    def add(self, expectation: Expectation, clock: Clock) -> None:
        if not expectation.satisfied:
            self._expectations.append(expectation)
            self._clock = clock

    def unanswered(self, clock: Clock) -> None:
        """Record a write without a response, which may have been performed."""
        self._clock = clock
        self._until = clock.monotonic() + UNANSWERED_DELAY

    @property
    def all_seen(self) -> bool:
        """Whether the caches have observed all of them."""
        for expectation in self._expectations:
            if not expectation.satisfied:
                return False
        return self._clock is None or self._clock.monotonic() >= self._until

    async def wait_seen(self, timeout: float) -> None:  # noqa: ASYNC109 - the error says what was waited for
        """Wait until the caches have observed all of them; raise `StaleCache` after `timeout` seconds."""
        if self._clock is not None and not self.all_seen:
            await wait_for(self._expectations, timeout, self._clock)
            await self._clock.sleep(self._until - self._clock.monotonic())


class own_writes:  # noqa: N801 - a context manager: `with own_writes() as writes:`
    """Record the writes through cached clients in the block; the functions are called as `OwnWrites` says."""

    __slots__ = ("_token", "_writes")

    def __init__(
        self, on_write: OnWrite | None = None, on_delete: OnDelete | None = None, on_scale: OnWrite | None = None
    ) -> None:
        self._writes = OwnWrites(on_write, on_delete, on_scale)

    def __enter__(self) -> OwnWrites:
        self._token = _recording.set(self._writes)
        return self._writes

    def __exit__(self, *_: object) -> None:
        _recording.reset(self._token)
        writes = self._writes
        writes.on_write = writes.on_delete = writes.on_scale = None  # keep no objects alive while writes are pending


def record_scale(gvk: GroupVersionKind, scale: AnyObject) -> None:
    """Record that the scale of an object was written. `gvk`: of that object, which the response `scale` names."""
    writes = current_own_writes()
    if writes is not None and writes.on_scale is not None:
        writes.on_scale(OwnWrite(gvk, access.key(scale), access.resource_version(scale), scale))


def current_own_writes() -> OwnWrites | None:
    """Return the record of the innermost `own_writes` block of this task, if there is one."""
    return _recording.get()
