"""Event recorders: create the Events of one controller."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final, Protocol, Unpack

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object, kind_of
from ostinato.api.time import MicroTime, Time
from ostinato.api.validation import names
from ostinato.client.arguments import summarize
from ostinato.controllers.runnable import EventOptions, Subject
from ostinato.kinds import core_v1, events_v1
from ostinato.kinds.core_v1 import EventSource, ObjectReference
from ostinato.manager.events.correlation import RecordedEvent
from ostinato.manager.events.counts import CountCorrelator
from ostinato.manager.events.series import SeriesCorrelator
from ostinato.world import World

_MAX_LENGTH: Final = 128
_MAX_NOTE: Final = 1024

_logger = logging.getLogger("ostinato.manager")


class Queue(Protocol):
    """The queue of Events to write."""

    def add(self, note: Callable[[], RecordedEvent | None], /) -> None:
        """Queue an Event. `note`: correlates it and returns what to write."""

    def moment(self) -> int:
        """Return the time in nanoseconds, never the same twice."""


class _Recorder:
    def __init__(self, queue: Queue, controller: str, world: World) -> None:
        if controller and names.is_qualified_name(controller):
            plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in controller)
            controller = plain.strip("-")[:63].strip("-")
        self._controller = controller or "ostinato"
        self._queue = queue
        self._world = world

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Record an Event about an object. Never blocks and never raises."""
        try:
            if unknown := sorted(options.keys() - EventOptions.__annotations__.keys()):
                known = ", ".join(EventOptions.__annotations__)
                _logger.error("unknown event option ignored event=%s option=%s options=%s", reason, unknown[0], known)
            about: object = regarding
            if not isinstance(about, Object | dict | ObjectReference):
                _logger.error(
                    "event dropped: the subject is not an object event=%s subject=%r", reason, summarize(about)
                )
                return
            kind = options.get("kind", "Normal")
            if kind not in ("Normal", "Warning"):
                _logger.error(
                    "event dropped: the type must be Normal or Warning event=%s object=%r type=%s",
                    reason,
                    _description(regarding),
                    kind,
                )
                return
            self._record(_reference(regarding), _encodable(reason), _encodable(note), kind, options)
        except Exception:  # an Event must not fail the reconcile
            _logger.exception("event dropped: the subject has no kind or name event=%r", reason)

    def _record(self, about: ObjectReference, reason: str, note: str, kind: str, options: EventOptions) -> None:
        raise NotImplementedError

    def _metadata(self, about: ObjectReference) -> ObjectMeta:
        """Return the metadata. The name is `<object>.<nanoseconds>`, or a uid if that is not a valid name."""
        name = f"{about.name}.{self._queue.moment():x}"
        if names.name_is_dns_subdomain(name):
            name = self._world.ids.uid()
        return ObjectMeta(name=name, namespace=about.namespace or "default")


class EventRecorder(_Recorder):
    """Records Events of events.k8s.io."""

    def __init__(self, queue: Queue, controller: str, world: World, correlator: SeriesCorrelator) -> None:
        super().__init__(queue, controller, world)
        self._instance = f"{self._controller}-{socket.gethostname()}"[:_MAX_LENGTH]
        self._correlator = correlator

    def _record(self, about: ObjectReference, reason: str, note: str, kind: str, options: EventOptions) -> None:
        event = events_v1.Event(
            metadata=self._metadata(about),
            event_time=MicroTime.of(self._world.clock.now()),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            action=_truncated(_encodable(options.get("action") or reason), _MAX_LENGTH),
            reason=_truncated(reason, _MAX_LENGTH),
            regarding=about,
            related=_related(options),
            note=_truncated(note, _MAX_NOTE),
            type=kind,
        )
        self._queue.add(lambda: self._correlator.note(event))


class CoreEventRecorder(_Recorder):
    """Records Events of the core group."""

    def __init__(
        self, queue: Queue, controller: str, world: World, correlator: CountCorrelator, host: str = ""
    ) -> None:
        super().__init__(queue, controller, world)
        self._host = host
        self._correlator = correlator

    def _record(self, about: ObjectReference, reason: str, note: str, kind: str, options: EventOptions) -> None:
        now = Time.of(self._world.clock.now())
        event = core_v1.Event(
            metadata=self._metadata(about),
            involved_object=about,
            reason=reason,
            message=note,
            first_timestamp=now,
            last_timestamp=now,
            count=1,
            type=kind,
            action=_encodable(options.get("action") or "") or None,
            related=_related(options),
            source=EventSource(component=self._controller, host=self._host or None),
            reporting_component=self._controller,
            reporting_instance=self._host,
        )
        self._queue.add(lambda: self._correlator.note(event))


def _related(options: EventOptions) -> ObjectReference | None:
    related = options.get("related")
    return None if related is None else _reference(related)


def _reference(instance: Subject) -> ObjectReference:
    if isinstance(instance, ObjectReference):
        return instance
    kind = kind_of(instance).gvk if isinstance(instance, Object) else access.gvk(instance)
    name = access.name(instance)
    if not kind.kind or not name:
        raise ValueError("the subject of an event needs a kind and a name")
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=name,
        namespace=access.namespace(instance) or None,
        uid=access.uid(instance) or None,
        resource_version=access.resource_version(instance) or None,
    )


def _description(subject: Subject) -> str:
    if isinstance(subject, ObjectReference):
        return f"{subject.kind} {subject.namespace or ''}/{subject.name}"
    about: AnyObject = subject
    return access.describe(about)


def _encodable(text: str) -> str:
    """Return a text with lone surrogates replaced, as file names and program output may contain them."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _truncated(text: str, most: int) -> str:
    """Truncate a text to a number of bytes."""
    encoded = text.encode()
    return text if len(encoded) <= most else encoded[: most - 3].decode(errors="ignore") + "..."
