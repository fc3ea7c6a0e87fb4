"""Recorders: make Events of what happened to objects, in the name of one controller."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final, Protocol, Unpack

from ostinato.api import access, names
from ostinato.api.access import AnyObject
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import Object, kind_of
from ostinato.api.time import MicroTime, Time
from ostinato.client.arguments import summarize
from ostinato.controllers.runnable import EventOptions, Subject
from ostinato.kinds import core_v1, events_v1
from ostinato.kinds.core_v1 import EventSource, ObjectReference
from ostinato.manager.events.books import Known
from ostinato.manager.events.counts import CountBook
from ostinato.manager.events.series import SeriesBook
from ostinato.world import World

_LONGEST: Final = 128
_LONGEST_NOTE: Final = 1024

_logger = logging.getLogger("ostinato.manager")


class Queue(Protocol):
    """Where events wait to be told."""

    def add(self, note: Callable[[], Known | None], /) -> None:
        """Take an event: `note` puts it into a book and gives what is to be told."""

    def moment(self) -> int:
        """Now, in nanoseconds, and never the same twice."""


class _Recorder:
    def __init__(self, queue: Queue, controller: str, world: World) -> None:
        if controller and names.is_qualified_name(controller):
            plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in controller)
            controller = plain.strip("-")[:63].strip("-")
        self._controller = controller or "ostinato"
        self._queue = queue
        self._world = world

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Say that something happened to an object. Never waits and never raises."""
        try:
            if unknown := sorted(options.keys() - EventOptions.__annotations__.keys()):
                known = ", ".join(EventOptions.__annotations__)
                _logger.error("event %s: there is no option %r, only %s", reason, unknown[0], known)
            about: object = regarding
            if not isinstance(about, Object | dict | ObjectReference):
                _logger.error("event %s is dropped: it is about %s, which is no object", reason, summarize(about))
                return
            kind = options.get("kind", "Normal")
            if kind not in ("Normal", "Warning"):
                _logger.error(
                    "event %s about %s is dropped: there is no type %r, only Normal and Warning",
                    reason,
                    _told(regarding),
                    kind,
                )
                return
            self._record(_reference(regarding), _written(reason), _written(note), kind, options)
        except Exception:  # whatever was given: an event is worth less than the work that it is about
            _logger.exception("event %r is dropped: it is about something that is no object", reason)

    def _record(self, about: ObjectReference, reason: str, note: str, kind: str, options: EventOptions) -> None:
        raise NotImplementedError

    def _metadata(self, about: ObjectReference) -> ObjectMeta:
        """The name is `<object>.<nanoseconds>`, or a uid where that is no name."""
        name = f"{about.name}.{self._queue.moment():x}"
        if names.name_is_dns_subdomain(name):
            name = self._world.ids.uid()
        return ObjectMeta(name=name, namespace=about.namespace or "default")


class EventRecorder(_Recorder):
    """Writes Events of events.k8s.io. A `Recorder` of surroundings."""

    def __init__(self, queue: Queue, controller: str, world: World, book: SeriesBook) -> None:
        super().__init__(queue, controller, world)
        self._instance = f"{self._controller}-{socket.gethostname()}"[:_LONGEST]
        self._book = book

    def _record(self, about: ObjectReference, reason: str, note: str, kind: str, options: EventOptions) -> None:
        event = events_v1.Event(
            metadata=self._metadata(about),
            event_time=MicroTime.of(self._world.clock.now()),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            action=_cut(_written(options.get("action") or reason), _LONGEST),
            reason=_cut(reason, _LONGEST),
            regarding=about,
            related=_related(options),
            note=_cut(note, _LONGEST_NOTE),
            type=kind,
        )
        self._queue.add(lambda: self._book.note(event))


class CoreEventRecorder(_Recorder):
    """Writes Events of the core group. A `Recorder` of surroundings."""

    def __init__(self, queue: Queue, controller: str, world: World, book: CountBook, host: str = "") -> None:
        super().__init__(queue, controller, world)
        self._host = host
        self._book = book

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
            action=_written(options.get("action") or "") or None,
            related=_related(options),
            source=EventSource(component=self._controller, host=self._host or None),
            reporting_component=self._controller,
            reporting_instance=self._host,
        )
        self._queue.add(lambda: self._book.note(event))


def _related(options: EventOptions) -> ObjectReference | None:
    related = options.get("related")
    return None if related is None else _reference(related)


def _reference(instance: Subject) -> ObjectReference:
    if isinstance(instance, ObjectReference):
        return instance
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


def _told(subject: Subject) -> str:
    if isinstance(subject, ObjectReference):
        return f"{subject.kind} {subject.namespace or ''}/{subject.name}"
    about: AnyObject = subject
    return access.describe(about)


def _written(text: str) -> str:
    """A text as it can be sent: without the half characters that file names and outputs of programs may hold."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _cut(text: str, most: int) -> str:
    """As much of a text as fits into so many bytes."""
    encoded = text.encode()
    return text if len(encoded) <= most else encoded[: most - 3].decode(errors="ignore") + "..."
