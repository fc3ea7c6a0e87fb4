"""Events: what happened to objects, told to people by `kubectl describe`.

    recorder = events.recorder("widgets")
    recorder.event(widget, "Scaled", "3 replicas now")
    recorder.event(widget, "Refused", "no such image", kind="Warning", related=deployment)

- Recording never waits and never raises. A thousand events wait at most; of more, the newest are dropped.
- Events that say the same become one, with a count; see `event_series`.
- A server that cannot be reached is asked again, every ten seconds and a bit, twelve times; what it refuses is dropped.
- `stop` tells what is left, once each, and within a time. What is recorded after it is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from datetime import timedelta
from typing import Final

from ostinato.api import access, names
from ostinato.api.access import AnyObject
from ostinato.api.errors import AlreadyExists, APIError, NotFound
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object, kind_of
from ostinato.api.time import MicroTime
from ostinato.client.client import Client
from ostinato.client.patching import StrategicMergePatch
from ostinato.client.transport import TransportError
from ostinato.kinds.core_v1 import ObjectReference
from ostinato.kinds.events_v1 import Event, EventSeries
from ostinato.manager.event_series import FINISHED_AFTER, Known, SeriesBook
from ostinato.world import World

MOST_WAITING: Final = 1000
TRIES: Final = 12
BETWEEN_TRIES: Final = 10.0  # seconds, and up to a quarter more
REFRESH: Final = 1800.0  # seconds after which the counts of living series are told
FLUSH: Final = 5.0  # seconds for what is left at the end

_LONGEST: Final = 128
_LONGEST_NOTE: Final = 1024

_logger = logging.getLogger("ostinato.manager")


class Events:
    """All events of one process, on their way to the server."""

    def __init__(self, client: Client, world: World) -> None:
        self._client = client
        self._world = world
        self._clock = world.clock
        self._rng = world.rng.fork("events")
        self._waiting: deque[Event] = deque()
        self._under_way: Known | None = None  # what the server is being told
        self._came = asyncio.Event()
        self._book = SeriesBook(world.clock)
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._dropped = 0
        self._moment = 0  # that was given to an event last

    def recorder(self, controller: str) -> EventRecorder:
        """A recorder for what is done by `controller`."""
        return EventRecorder(self, controller, self._world)

    def start(self) -> None:
        """Begin to tell. Events may be recorded before."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="events")

    async def stop(self) -> None:
        """Tell what is left, for some seconds at most."""
        self._stopped = True
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        try:
            async with self._clock.timeout(FLUSH):
                await self._flush()
        except TimeoutError:
            _logger.warning("%d events were not told: the server was too slow", len(self._waiting))
        self._waiting.clear()

    def add(self, event: Event) -> None:
        """Take an event, or drop it if there are too many. Never waits."""
        if self._stopped:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._dropped += 1
            if self._dropped & (self._dropped - 1) == 0:  # 1, 2, 4, 8: loud, but not for long
                _logger.warning("%d events dropped: too many wait for the server", self._dropped)
            return
        self._waiting.append(event)
        self._came.set()

    def moment(self) -> int:
        """Now, in nanoseconds; of two events of the same moment the second is a bit later, so that both have a name."""
        self._moment = max(self._moment + 1, int(self._clock.wall() * 1e6) * 1000)
        return self._moment

    async def _run(self) -> None:
        sweeping = asyncio.get_running_loop().create_task(self._sweep(), name="events: series")
        try:
            while True:
                await self._came.wait()
                self._came.clear()
                while self._waiting:
                    self._under_way = self._book.note(self._waiting.popleft())
                    if self._under_way is not None:
                        await self._tell(self._under_way)
                        self._under_way = None
        finally:
            sweeping.cancel()
            await asyncio.wait([sweeping])

    async def _sweep(self) -> None:
        refreshed_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(FINISHED_AFTER)
            for known in self._book.finished():
                await self._tell(known)
            if self._clock.monotonic() - refreshed_at >= REFRESH:
                refreshed_at = self._clock.monotonic()
                for known in self._book.untold():
                    await self._tell(known)

    async def _flush(self) -> None:
        if self._under_way is not None:
            await self._try(self._under_way)
        while self._waiting:
            if (known := self._book.note(self._waiting.popleft())) is not None:
                await self._try(known)
        for known in self._book.untold():
            await self._try(known)

    async def _tell(self, known: Known) -> None:
        for _ in range(TRIES):
            if await self._try(known):
                return
            await self._clock.sleep(self._rng.jitter(BETWEEN_TRIES, 0.25))
        _logger.error("unable to write event %s (retry limit exceeded)", _described(known.event))
        self._book.forget(known)

    async def _try(self, known: Known) -> bool:
        """Whether that is settled: told, or refused."""
        untold = known.untold
        try:
            await self._write(known)
        except AlreadyExists as error:
            _logger.debug("the server rejected event %s: %s", _described(known.event), error)
            return not known.is_series  # of a series: it has been made in the meantime, and can be patched
        except APIError as error:
            _logger.error("the server rejected event %s: %s", _described(known.event), error)
            self._book.forget(known)
        except TransportError as error:
            _logger.warning("unable to write event %s (may be tried again): %s", _described(known.event), error)
            return False
        else:
            known.untold -= untold
        return True

    async def _write(self, known: Known) -> None:
        event = known.event
        if known.is_series:
            # The time of the last one, on the wall clock: as long ago as it is on the other.
            ago = timedelta(seconds=self._clock.monotonic() - known.last)
            event.series = EventSeries(count=known.count, last_observed_time=MicroTime.of(self._clock.now() - ago))
            count, last = event.series.count, str(event.series.last_observed_time)
            patch = StrategicMergePatch({"series": {"count": count, "lastObservedTime": last}})
            try:
                await self._client.patch(Event, access.key(event), patch)
                return
            except NotFound:
                pass  # it was never told, or is forgotten by now
        await self._client.create(event)


class EventRecorder:
    """Writes events in the name of one controller. A `Recorder` of surroundings."""

    def __init__(self, events: Events, controller: str, world: World) -> None:
        if controller and names.is_qualified_name(controller):
            plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in controller)
            controller = plain.strip("-")[:63].strip("-")
        self._controller = controller or "ostinato"
        self._instance = f"{self._controller}-{socket.gethostname()}"[:_LONGEST]
        self._events = events
        self._world = world

    def event(
        self,
        regarding: AnyObject,
        reason: str,
        note: str,
        /,
        *,
        kind: str = "Normal",
        action: str = "",
        related: AnyObject | None = None,
    ) -> None:
        """Say that something happened to an object. Never waits and never raises."""
        try:
            if kind not in ("Normal", "Warning"):
                about = access.describe(regarding)
                _logger.error("event %s about %s is dropped: there is no type %r", reason, about, kind)
                return
            self._events.add(self._made(regarding, reason, note, kind, action, related))
        except Exception:  # whatever was given: an event is worth less than the work that it is about
            _logger.exception("event %r is dropped: it is about something that is no object", reason)

    def _made(
        self, regarding: AnyObject, reason: str, note: str, kind: str, action: str, related: AnyObject | None
    ) -> Event:
        about = _reference(regarding)
        now = self._world.clock.now()
        return Event(
            metadata=ObjectMeta(name=self._name(about.name or ""), namespace=about.namespace or "default"),
            event_time=MicroTime.of(now),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            action=_cut(action or reason, _LONGEST),
            reason=_cut(reason, _LONGEST),
            regarding=about,
            related=None if related is None else _reference(related),
            note=_cut(note, _LONGEST_NOTE),
            type=kind,
        )

    def _name(self, about: str) -> str:
        """`<object>.<nanoseconds>`, or a uid where that is no name."""
        name = f"{about}.{self._events.moment():x}"
        return self._world.ids.uid() if names.name_is_dns_subdomain(name) else name


def _reference(instance: AnyObject) -> ObjectReference:
    kind = kind_of(instance).gvk if isinstance(instance, Object) else access.gvk(instance)
    name = access.name(instance)
    if not kind.kind or not name:
        raise ValueError("an object needs a kind and a name to be referred to")
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=name,
        namespace=access.namespace(instance) or None,
        uid=access.uid(instance) or None,
        resource_version=access.resource_version(instance) or None,
    )


def _cut(text: str, most: int) -> str:
    """As much of a text as fits into so many bytes."""
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= most else encoded[: most - 3].decode(errors="ignore") + "..."


def _described(event: Event) -> str:
    about = event.regarding or ObjectReference()
    return f"{event.reason} about {about.kind} {about.namespace or ''}/{about.name}"
