"""Settings of handlers: `@on.startup() def configure(settings, **_): ...`, or `on.settings(name="sites")` in the file.

The groups have the names that kopf uses. A setting that has no meaning here is accepted and logged: what it tunes does
not exist, such as the annotations in which kopf stores progress.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, Final

import msgspec

from ostinato.frontends.handlers.handler import DEFAULT_BACKOFF

WORKERS: Final = 64  # objects that are handled at a time
_logger = logging.getLogger("ostinato.handlers")


class Persistence(msgspec.Struct):
    """
    - `finalizer`: keeps objects until their delete handlers have succeeded. Defaults to
      "handlers.ostinato.dev/NAME".
    - `store`: "auto", "status" or "objects"; see `state.stores`. Defaults to "auto".
    - `namespace`: of the records of cluster-scoped objects. Defaults to the operator's namespace.
    """

    finalizer: str = ""
    store: str = "auto"
    namespace: str = ""
    progress_storage: Any = None
    diffbase_storage: Any = None
    consistency_timeout: float = 5.0


class Execution(msgspec.Struct):
    """
    - `default_backoff`: seconds before the retry of a handler that failed. Defaults to 60.
    - `max_workers`: threads for plain functions; set by the World of the manager.
    """

    default_backoff: float = DEFAULT_BACKOFF
    max_workers: int | None = None
    executor: Any = None


class Batching(msgspec.Struct):
    """`worker_limit`: objects of a kind that are handled at a time. Defaults to 64."""

    worker_limit: int | None = None
    idle_timeout: float = 5.0
    batch_window: float = 0.1
    exit_timeout: float = 2.0
    error_delays: Any = None


class Settings:
    """The settings of an operator."""

    def __init__(self, **persistence: Any) -> None:
        self.persistence = Persistence(**persistence)
        self.execution = Execution()
        self.batching = Batching()
        self.queueing = self.batching
        # Accepted, without effect: the manager has its own.
        self.process = SimpleNamespace(ultimate_exiting_timeout=600)
        self.posting = SimpleNamespace(enabled=True, level=logging.INFO, loggers=True)
        self.peering = SimpleNamespace(
            name="default", stealth=False, priority=0, lifetime=60, mandatory=False, standalone=True, namespaced=True,
            clusterwide=False,
        )  # fmt: skip
        self.watching = SimpleNamespace(
            server_timeout=None, client_timeout=None, connect_timeout=None, reconnect_backoff=0.1
        )
        self.scanning = SimpleNamespace(disabled=False)
        self.background = SimpleNamespace(
            cancellation_polling=60, instant_exit_timeout=None, instant_exit_zero_time_cycles=10
        )
        self.networking = SimpleNamespace(request_timeout=300, connect_timeout=None, error_backoffs=())
        self.admission = SimpleNamespace(server=None, managed=None)

    @property
    def workers(self) -> int:
        return self.batching.worker_limit or WORKERS

    def report_ignored(self) -> None:
        """Log what was set and has no effect."""
        persistence = self.persistence
        if persistence.progress_storage is not None or persistence.diffbase_storage is not None:
            _logger.warning(
                "setting ignored; progress is stored in the status or in ConfigMaps, see settings.persistence.store "
                "setting=settings.persistence.progress_storage"
            )
        if self.admission.server is not None or self.admission.managed:
            _logger.warning("setting ignored; configure on.webhooks(...) setting=settings.admission")
        if self.execution.max_workers is not None or self.execution.executor is not None:
            _logger.warning("setting ignored; threads belong to the manager's World setting=settings.execution")
