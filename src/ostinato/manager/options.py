"""Options of a manager that few programs need, grouped by subject."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from ostinato.client.transport.exchange import WarningHandler


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the manager's clients appear to the server.

    - `field_manager`: owner of the fields that are set through `Manager.client`. Defaults to "ostinato".
    - `identities`: returns the identity with which the runnable of a given name writes; `connect` receives it as
      `Purpose.identity`. Defaults to one identity for all.
    - `warn`: called with each warning of the server. Defaults to a log line for each distinct text.
    """

    field_manager: str = "ostinato"
    identities: Callable[[str], str] | None = None
    warn: WarningHandler | None = None


class ReportingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the manager reports to people: Events and logs.

    - `core_events`: record Events of the core group, one for each message, as kube-controller-manager does. Defaults
      to False: Events of events.k8s.io, aggregated in series.
    - `logger`: parent of the loggers of the runnables. Defaults to the logger "ostinato".
    """

    core_events: bool = False
    logger: logging.Logger = msgspec.field(default_factory=lambda: logging.getLogger("ostinato"))
