"""The hot-loop guard: finds reconciles that keep writing the same object, and holds them back.

A good reconcile comes to rest: when all is as wanted it writes nothing. There are two ways not to:

- *It wakes itself.* The only thing that happened is its own last write, and it writes the same object again: a time, a
  random value, a list in another order. Ten such runs in a row are a loop.
- *It fights.* It writes, into the same object, what it has written before, and somebody else undoes it in between.
  Ten times within ten minutes are a loop.

A key in a loop runs after a wait that doubles each time, from a second to a minute, until it comes to rest. What is
reported names the object and the fields that its last write changed. Other keys are not affected.

Writes that change nothing do not count: the server keeps the version then. Nor does work that is done step by step,
as each step is another state; nor a status that follows something that goes up and down, as nobody undoes it.

The cache may see a write before its answer is here. It then has the version of the answer, as if nothing had changed;
but then the run did not begin because of that version.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from ostinato.api import access
from ostinato.api.access import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import Object, origin
from ostinato.cache.informers import Informers
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.cache.store.entry import Entry
from ostinato.controllers.guards.differences import Json, differences, digest
from ostinato.controllers.reasons import Cause, Why
from ostinato.world import Clock

RUNS: Final = 10  # that make a loop
WINDOW: Final = 600.0  # seconds within which a state that is written again counts
SHORTEST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0

_MOST_OBJECTS: Final = 20_000  # whose last writes are remembered
_MOST_TARGETS: Final = 100  # objects of one key that are remembered beyond the run that wrote them
_MOST_VERSIONS: Final = 4  # of an object that are remembered
_MOST_REPEATS: Final = 4 * RUNS  # writes of a key into an object that are remembered
_SUSPICIOUS: Final = 4  # writes within the window after which states are compared; before, they are only counted

Target = tuple[GroupVersionKind, NamespacedName]


class Write(msgspec.Struct, frozen=True):
    """One write that changed something: the object before, if that is known, and after.

    `others_wrote`: somebody else had changed the object since it was last written here. None if the cache has seen the
    write already, or it changed nothing after all: what was before cannot be said.
    """

    target: Target
    before: Entry | AnyObject | None
    after: AnyObject
    others_wrote: bool | None

    def fields(self) -> list[str]:
        """What it changed, in words."""
        return [] if self.before is None else differences(_as_sent(self.before), _as_sent(self.after))


class Loop(msgspec.Struct, frozen=True):
    """What was found: the write, how often it was made, and how long the key is held back now."""

    write: Write
    times: int
    fights: bool
    wait: float

    def __str__(self) -> str:
        gvk, key = self.write.target
        fields = self.write.fields()
        changed = f"; the last write changed {', '.join(fields)}" if fields else ""
        if self.fights:
            said = f"writes the same into {gvk.kind} {key} again and again ({self.times} times): somebody undoes it"
        else:
            said = (
                f"wakes itself: {self.times} runs in a row had no other reason than its own write of {gvk.kind} {key}"
            )
        return f"{said}{changed}. It is held back for {self.wait:g} s"


class _History:
    """What one key has written into one object."""

    __slots__ = ("last", "repeats", "streak")

    def __init__(self, now: float) -> None:
        """It has written it for the first time."""
        self.streak = 1  # runs in a row that wrote it, and ran for nothing but their own writes
        self.repeats: list[tuple[float, bytes]] = [(now, b"")]  # when, and what; b"" was not looked at
        self.last: AnyObject | None = None  # what it wrote last, where that looks like a loop


class HotLoopGuard:
    def __init__(self, clock: Clock, informers: Informers) -> None:
        self._clock = clock
        self._informers = informers
        self._most = _MOST_OBJECTS
        self._versions: OrderedDict[Target, tuple[str, ...]] = OrderedDict()  # of objects: the last written here
        self._histories: OrderedDict[Hashable, dict[Target, _History]] = OrderedDict()  # of keys that write
        self._held: dict[Hashable, tuple[float, float]] = {}  # of keys in a loop: until when, and the wait

    def wait_of(self, key: Hashable) -> float:
        """Seconds that the key has still to wait; 0 if it may run."""
        held = self._held.get(key)
        return 0.0 if held is None else max(0.0, held[0] - self._clock.monotonic())

    def wrote(self, write: OwnWrite) -> Write | None:
        """A reconcile has written an object. None if that changed nothing."""
        target, version = (write.gvk, write.key), write.resource_version
        before = self._cached(target)
        if before is not None and before.uid != access.uid(write.instance):
            before = None  # another one of this name, in another cluster for instance
        known = self._versions.get(target)
        if known is not None and version in known:
            return None
        if before is not None and before.resource_version == version:
            return Write(target, None, write.instance, others_wrote=None)
        self._note(target, version)
        others_wrote = known is not None and before is not None and before.resource_version not in known
        return Write(target, before, write.instance, others_wrote)

    def finished(self, key: Hashable, why: Why, writes: Sequence[Write]) -> Loop | None:
        """A reconcile is over, in which these writes were made. The loop that it is in, if it is in one."""
        for write in writes:
            if write.others_wrote is None:
                break
        else:  # nearly always
            return self._judged(key, why, writes)
        settled = self._settled(writes, why)
        loop = self._judged(key, why, settled)
        for write in settled:
            self._note(write.target, access.resource_version(write.after))
        return loop

    def _judged(self, key: Hashable, why: Why, writes: Sequence[Write]) -> Loop | None:
        histories = self._histories.get(key)
        if not writes:
            if histories is not None:
                self._rested(key, histories)
            return None
        now = self._clock.monotonic()
        if histories is None:
            self._histories[key] = {write.target: _History(now) for write in writes}
            if len(self._histories) > self._most:
                self._histories.popitem(last=False)
            self._held.pop(key, None)  # it was forgotten, and so is what it was held for
            return None
        last = {write.target: write for write in writes}
        for target in [each for each in histories if each not in last]:
            histories[target].streak = 0
            if len(histories) > _MOST_TARGETS:
                del histories[target]
        woke_itself = self._woke_itself(why)
        found: Loop | None = None
        for target, write in last.items():
            history = histories.get(target)
            if history is None:
                histories[target] = _History(now)
                continue
            history.streak = history.streak + 1 if woke_itself else 1
            repeats = self._count_repeats(history, write, now)
            if history.streak > RUNS or repeats >= RUNS:
                if write.before is None:
                    write = msgspec.structs.replace(write, before=history.last)  # noqa: PLW2901 - the same, with more
                times = max(history.streak, repeats)
                found = Loop(write, times, fights=history.streak <= RUNS, wait=self._hold(key))
            history.last = write.after if max(history.streak, repeats) >= RUNS - 1 else None
        if found is None and not woke_itself:
            self._release_when_calm(key, histories)
        return found

    def _note(self, target: Target, version: str) -> None:
        """The object has this version by a write of ours."""
        known = self._versions.get(target)
        if known is None:
            self._versions[target] = (version,)
            if len(self._versions) > self._most:
                self._versions.popitem(last=False)
        elif version not in known:
            self._versions[target] = (*known[-_MOST_VERSIONS + 1 :], version)
            self._versions.move_to_end(target)

    def _settled(self, writes: Sequence[Write], why: Why) -> list[Write]:
        """The same writes, where it could not be said at once whether they changed something and what was before."""
        settled: list[Write] = []
        for write in writes:
            if write.others_wrote is not None:
                settled.append(write)
                continue
            version = access.resource_version(write.after)
            woken_by = [each for each in why.causes or () if (each.gvk, each.key) == write.target]
            if any(each.resource_version == version for each in woken_by):
                continue  # it had that version when the run began: the write changed nothing
            others_wrote = not all(map(self._is_own, woken_by))
            settled.append(msgspec.structs.replace(write, others_wrote=others_wrote))
        return settled

    def _woke_itself(self, why: Why) -> bool:
        return bool(why.causes) and all(self._is_own(cause) for cause in why.causes or ())

    def _is_own(self, cause: Cause) -> bool:
        return cause.resource_version in self._versions.get((cause.gvk, cause.key), ())

    def _count_repeats(self, history: _History, write: Write, now: float) -> int:
        """How often this very state was written lately, over what somebody else had written."""
        recent = [each for each in history.repeats[-_MOST_REPEATS + 1 :] if each[0] >= now - WINDOW]
        state = digest(_json(write.after)) if write.others_wrote and len(recent) >= _SUSPICIOUS else b""
        recent.append((now, state))
        history.repeats = recent
        return sum(1 for _, each in recent if state and each == state)

    def _hold(self, key: Hashable) -> float:
        _, wait = self._held.get(key, (0.0, 0.0))
        wait = min(max(SHORTEST_WAIT, 2 * wait), LONGEST_WAIT)
        self._held[key] = (self._clock.monotonic() + wait, wait)
        return wait

    def _rested(self, key: Hashable, histories: dict[Target, _History]) -> None:
        """A run that wrote nothing ends the loop of one that wakes itself; a fight goes on in the next."""
        for history in histories.values():
            history.streak = 0
        self._release_when_calm(key, histories)

    def _release_when_calm(self, key: Hashable, histories: dict[Target, _History]) -> None:
        if key not in self._held:
            return
        now = self._clock.monotonic()
        fighting = any(
            sum(1 for when, state in each.repeats if state and when >= now - WINDOW) >= RUNS
            for each in histories.values()
        )
        if not fighting:
            self._held.pop(key, None)

    def _cached(self, target: Target) -> Entry | None:
        gvk, key = target
        for informer in self._informers.all(gvk):
            if not informer.metadata_only and (entry := informer.store.get(key)) is not None:
                return entry
        return None


def _as_sent(instance: Entry | AnyObject) -> Json:
    """As the server sent it: a class leaves out what is at its default, which would look as if it had been removed."""
    sent = origin(instance) if isinstance(instance, Object) else None
    return _json(instance) if sent is None else msgspec.json.decode(sent, type=Json)


def _json(instance: Entry | AnyObject) -> Json:
    if isinstance(instance, Entry):
        return instance.dict()
    return to_dict(instance) if isinstance(instance, Object) else instance
