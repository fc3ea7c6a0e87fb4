"""Hot-loop guard: detects and delays reconciles that write the same object again and again.

A correct reconcile converges: in the desired state it writes nothing. The guard detects two defects:

- *Self-triggered*: the only event since the last run is the reconcile's own write, and it writes the same object again,
  for example a timestamp, a random value or a reordered list. Ten such runs in a row are a hot loop.
- *Conflicting writers*: the reconcile writes a state into an object that it has written before, and another writer
  reverts it in between. Ten times within ten minutes are a hot loop.

A key in a hot loop is delayed, from one second to one minute with exponential backoff, until it stops writing. The
warning names the object and the fields that the last write changed. Other keys are not affected.

Not hot loops: writes that change nothing (the resourceVersion stays), work in steps (each step is another state), and a
status that follows a varying value (no other writer reverts it).

The cache may see a write before the answer to the request arrives. The cached object then has the answer's
resourceVersion as if the write had changed nothing; but the run was not triggered by that resourceVersion.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import Object, origin
from ostinato.cache.informers import Informers
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.cache.store.entry import Entry
from ostinato.controllers.guards.differences import Json, differences, digest
from ostinato.controllers.reasons import Cause, Why
from ostinato.world import Clock

RUNS: Final = 10  # that make a hot loop
WINDOW: Final = 600.0  # seconds within which repeated states are counted
SHORTEST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0

_MAX_OBJECTS: Final = 20_000  # with remembered writes
_MAX_TARGETS: Final = 100  # remembered objects per key
_MAX_VERSIONS: Final = 4  # remembered resourceVersions per object
_MAX_REPEATS: Final = 4 * RUNS  # remembered writes per key and object
_SUSPICIOUS: Final = 4  # writes within the window before states are compared, which costs more than counting

Target = tuple[GroupVersionKind, NamespacedName]


class Write(msgspec.Struct, frozen=True):
    """A write that changed an object.

    - `before`: the state before the write, if known.
    - `others_wrote`: another writer had changed the object since it was last written here. None if unknown: the cache
      has seen the write already, or the write changed nothing.
    """

    target: Target
    before: Entry | AnyObject | None
    after: AnyObject
    others_wrote: bool | None

    def fields(self) -> list[str]:
        """Return the changed fields as text."""
        return [] if self.before is None else differences(_as_sent(self.before), _as_sent(self.after))


class Loop(msgspec.Struct, frozen=True):
    """A detected hot loop: the write, how often it was made, and the delay of the key in seconds."""

    write: Write
    times: int
    conflicting: bool  # with another writer; otherwise self-triggered
    wait: float

    def __str__(self) -> str:
        gvk, key = self.write.target
        fields = self.write.fields()
        changed = f"; the last write changed {', '.join(fields)}" if fields else ""
        if self.conflicting:
            text = f"wrote the same state to {gvk.kind} {key} {self.times} times, and another writer reverted it"
        else:
            text = f"is self-triggered: {self.times} consecutive runs were caused by its own write to {gvk.kind} {key}"
        return f"{text}{changed}; delayed by {self.wait:g} s"


class _History:
    """The writes of one key to one object."""

    __slots__ = ("last", "repeats", "streak")

    def __init__(self, now: float) -> None:
        self.streak = 1  # consecutive runs that wrote it and were triggered only by own writes
        self.repeats: list[tuple[float, bytes]] = [(now, b"")]  # time and digest; b"" if not computed
        self.last: AnyObject | None = None  # last written state, if a loop is suspected


class HotLoopGuard:
    def __init__(self, clock: Clock, informers: Informers) -> None:
        self._clock = clock
        self._informers = informers
        self._most = _MAX_OBJECTS
        self._versions: OrderedDict[Target, tuple[str, ...]] = (
            OrderedDict()
        )  # last resourceVersions written here, by object
        self._histories: OrderedDict[Hashable, dict[Target, _History]] = OrderedDict()  # by key
        self._held: dict[Hashable, tuple[float, float]] = {}  # keys in a hot loop: end of the delay, and its length

    def wait_of(self, key: Hashable) -> float:
        """Return the remaining delay of a key in seconds; 0 if it may run."""
        held = self._held.get(key)
        return 0.0 if held is None else max(0.0, held[0] - self._clock.monotonic())

    def wrote(self, write: OwnWrite) -> Write | None:
        """Record a write of a reconcile. Returns None if it changed nothing."""
        target, version = (write.gvk, write.key), write.resource_version
        before = self._cached(target)
        if before is not None and before.uid != access.uid(write.instance):
            before = None  # another object of this name, for instance in another cluster
        known = self._versions.get(target)
        if known is not None and version in known:
            return None
        if before is not None and before.resource_version == version:
            return Write(target, None, write.instance, others_wrote=None)
        self._note(target, version)
        others_wrote = known is not None and before is not None and before.resource_version not in known
        return Write(target, before, write.instance, others_wrote)

    def finished(self, key: Hashable, why: Why, writes: Sequence[Write]) -> Loop | None:
        """Record the end of a reconcile with its writes. Returns the hot loop that it is in, if any."""
        for write in writes:
            if write.others_wrote is None:
                break
        else:  # the common case
            return self._evaluate(key, why, writes)
        settled = self._settled(writes, why)
        loop = self._evaluate(key, why, settled)
        for write in settled:
            self._note(write.target, access.resource_version(write.after))
        return loop

    def _evaluate(self, key: Hashable, why: Why, writes: Sequence[Write]) -> Loop | None:
        histories = self._histories.get(key)
        if not writes:
            if histories is not None:
                self._wrote_nothing(key, histories)
            return None
        now = self._clock.monotonic()
        if histories is None:
            self._histories[key] = {write.target: _History(now) for write in writes}
            if len(self._histories) > self._most:
                self._histories.popitem(last=False)
            self._held.pop(key, None)  # its history was evicted
            return None
        last = {write.target: write for write in writes}
        for target in [each for each in histories if each not in last]:
            histories[target].streak = 0
            if len(histories) > _MAX_TARGETS:
                del histories[target]
        self_triggered = self._is_self_triggered(why)
        found: Loop | None = None
        for target, write in last.items():
            history = histories.get(target)
            if history is None:
                histories[target] = _History(now)
                continue
            history.streak = history.streak + 1 if self_triggered else 1
            repeats = self._count_repeats(history, write, now)
            if history.streak > RUNS or repeats >= RUNS:
                if write.before is None:
                    write = msgspec.structs.replace(write, before=history.last)  # noqa: PLW2901 - the same, with more
                times = max(history.streak, repeats)
                found = Loop(write, times, conflicting=history.streak <= RUNS, wait=self._hold(key))
            history.last = write.after if max(history.streak, repeats) >= RUNS - 1 else None
        if found is None and not self_triggered:
            self._release_when_calm(key, histories)
        return found

    def _note(self, target: Target, version: str) -> None:
        """Remember a resourceVersion that was written here."""
        known = self._versions.get(target)
        if known is None:
            self._versions[target] = (version,)
            if len(self._versions) > self._most:
                self._versions.popitem(last=False)
        elif version not in known:
            self._versions[target] = (*known[-_MAX_VERSIONS + 1 :], version)
            self._versions.move_to_end(target)

    def _settled(self, writes: Sequence[Write], why: Why) -> list[Write]:
        """Return the writes with `others_wrote` determined, without those that changed nothing."""
        settled: list[Write] = []
        for write in writes:
            if write.others_wrote is not None:
                settled.append(write)
                continue
            version = access.resource_version(write.after)
            woken_by = [each for each in why.causes or () if (each.gvk, each.key) == write.target]
            if any(each.resource_version == version for each in woken_by):
                continue  # the object had that resourceVersion when the run began: the write changed nothing
            others_wrote = not all(map(self._is_own, woken_by))
            settled.append(msgspec.structs.replace(write, others_wrote=others_wrote))
        return settled

    def _is_self_triggered(self, why: Why) -> bool:
        return bool(why.causes) and all(self._is_own(cause) for cause in why.causes or ())

    def _is_own(self, cause: Cause) -> bool:
        return cause.resource_version in self._versions.get((cause.gvk, cause.key), ())

    def _count_repeats(self, history: _History, write: Write, now: float) -> int:
        """Return how often the same state was written within the window over another writer's change."""
        recent = [each for each in history.repeats[-_MAX_REPEATS + 1 :] if each[0] >= now - WINDOW]
        state = digest(_json(write.after)) if write.others_wrote and len(recent) >= _SUSPICIOUS else b""
        recent.append((now, state))
        history.repeats = recent
        return sum(1 for _, each in recent if state and each == state)

    def _hold(self, key: Hashable) -> float:
        _, wait = self._held.get(key, (0.0, 0.0))
        wait = min(max(SHORTEST_WAIT, 2 * wait), LONGEST_WAIT)
        self._held[key] = (self._clock.monotonic() + wait, wait)
        return wait

    def _wrote_nothing(self, key: Hashable, histories: dict[Target, _History]) -> None:
        """A run without writes ends a self-triggered loop, but not one of conflicting writers."""
        for history in histories.values():
            history.streak = 0
        self._release_when_calm(key, histories)

    def _release_when_calm(self, key: Hashable, histories: dict[Target, _History]) -> None:
        if key not in self._held:
            return
        now = self._clock.monotonic()
        conflicting = any(
            sum(1 for when, state in each.repeats if state and when >= now - WINDOW) >= RUNS
            for each in histories.values()
        )
        if not conflicting:
            self._held.pop(key, None)

    def _cached(self, target: Target) -> Entry | None:
        gvk, key = target
        for informer in self._informers.all(gvk):
            if not informer.metadata_only and (entry := informer.store.get(key)) is not None:
                return entry
        return None


def _as_sent(instance: Entry | AnyObject) -> Json:
    """Return the object as the server sent it: the encoding of a typed object leaves out defaults."""
    sent = origin(instance) if isinstance(instance, Object) else None
    return _json(instance) if sent is None else msgspec.json.decode(sent, type=Json)


def _json(instance: Entry | AnyObject) -> Json:
    if isinstance(instance, Entry):
        return instance.dict()
    return to_dict(instance) if isinstance(instance, Object) else instance
