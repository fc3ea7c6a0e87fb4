"""Kind operator: all handlers of one kind, as one controller."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ostinato.api.codec import from_dict
from ostinato.client.views import Typed, Unstructured, View
from ostinato.controllers.controller import Controller
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import ForObject
from ostinato.controllers.sources.kind import KindSource
from ostinato.controllers.tasks import Work, run_together
from ostinato.frontends.handlers.handler import CHANGING, Handler
from ostinato.frontends.handlers.running.background import Background
from ostinato.frontends.handlers.running.changes import ChangeReconciler
from ostinato.frontends.handlers.running.memory import Forgetting, Memories, Shared
from ostinato.frontends.handlers.running.watching import EventWatch
from ostinato.frontends.handlers.state.stores import Store
from ostinato.frontends.handlers.state.writing import ObjectWriter

Json = dict[str, Any]


class KindOperator(Controller):
    def __init__(self, name: str, view: View[Any], handlers: Sequence[Handler], shared: Shared) -> None:
        persistence = shared.settings.persistence
        plain = Unstructured(view.gvk, view.info)
        store = Store(shared.name, view.gvk, persistence.store, persistence.namespace or "default")
        writer = ObjectWriter(plain, store)
        self._store = store
        changing = [each for each in handlers if each.form in CHANGING]
        events = [each for each in handlers if each.form == "event"]
        memories = Memories(shared, until_events=bool(events))
        typed: Callable[[Json], Any] | None = None
        if isinstance(view, Typed):
            cls = view.cls
            typed = lambda body: from_dict(cls, body)  # noqa: E731
        super().__init__(
            name,
            ChangeReconciler(changing, writer, shared, memories, typed),
            view=plain,
            sources=[KindSource(plain, ForObject())],
            options=ControllerOptions(max_concurrent=shared.settings.workers, runs_for_own_writes=False),
        )
        self._has_changes = bool(changing)
        self._background = [
            Background(each, writer, shared, memories).controller(f"{name}.{_part(each.id)}"[:128])
            for each in handlers
            if each.form in ("daemon", "timer")
        ]
        self._forgetting = None if changing or events else Forgetting(plain, memories)
        self._events = EventWatch(f"{name}.events", events, writer, shared, memories) if events else None

    @property
    def has_synced(self) -> bool:
        return (
            (not self._has_changes or super().has_synced)
            and all(each.has_synced for each in self._background)
            and (self._events is None or self._events.has_synced)
        )

    async def run(self, dependencies: Dependencies) -> None:
        if dependencies.shards is not None:
            self._store.share()
        work: list[Work] = [each.run for each in self._background]
        if self._has_changes:
            work.append(super().run)
        if self._events is not None:
            work.append(self._events.run)
        if self._forgetting is not None:
            work.append(self._forgetting.run)
        await run_together(work, dependencies)


def _part(name: str) -> str:
    """Return an id as a part of the name of a controller."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "handler"
