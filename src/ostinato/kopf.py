"""kopf's names for handlers: `import ostinato.kopf as kopf` in place of `import kopf`.

- The decorators and functions are those of `ostinato.on`, with kopf's defaults. Objects that kopf has handled are taken
  over: its finalizer is used, and its record of the last handled state is read.
- Names that have no counterpart (logins, storages, webhook servers, lifecycles) can be used; what they would set is
  ignored, and logged at the start.

The page "Come from kopf" has the table of features.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

from ostinato import controllers
from ostinato.frontends.handlers import on as _on
from ostinato.frontends.handlers.admission import AdmissionError
from ostinato.frontends.handlers.handler import ErrorsMode, HandlerRetriesError, HandlerTimeoutError
from ostinato.frontends.handlers.objects.children import (
    adopt,
    append_owner_reference,
    build_owner_reference,
    event,
    exception,
    info,
    label,
    remove_owner_reference,
    warn,
)
from ostinato.frontends.handlers.objects.diffs import Diff, DiffItem
from ostinato.frontends.handlers.objects.filters import ABSENT, PRESENT, all_, any_, none_, not_
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.objects.views import Annotations, Body, Labels, Meta, Spec, Status
from ostinato.frontends.handlers.operator import Handlers
from ostinato.frontends.handlers.resources import EVERYTHING
from ostinato.frontends.handlers.running.background import Stopped
from ostinato.frontends.handlers.running.indexes import Index, Values
from ostinato.frontends.handlers.running.memory import Memo
from ostinato.frontends.handlers.running.subhandlers import execute, scope
from ostinato.frontends.handlers.settings import Settings

__all__ = [
    "ABSENT",
    "EVERYTHING",
    "PRESENT",
    "AdmissionError",
    "Annotations",
    "Body",
    "DaemonStopped",
    "Diff",
    "DiffItem",
    "DiffOperation",
    "ErrorsMode",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "Index",
    "Labels",
    "Logger",
    "Memo",
    "Meta",
    "OperatorSettings",
    "Patch",
    "PermanentError",
    "Reason",
    "Spec",
    "Status",
    "Store",
    "TemporaryError",
    "adopt",
    "all_",
    "any_",
    "append_owner_reference",
    "build_owner_reference",
    "configure",
    "daemon",
    "event",
    "exception",
    "execute",
    "index",
    "info",
    "label",
    "none_",
    "not_",
    "on",
    "operator",
    "register",
    "remove_owner_reference",
    "run",
    "subhandler",
    "timer",
    "warn",
]

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"

PermanentError = controllers.PermanentError
OperatorSettings = Settings
DaemonStopped = Stopped
Store = Values
Logger = logging.Logger | logging.LoggerAdapter[Any]


class TemporaryError(controllers.TemporaryError):
    """Retries after `delay` seconds, 60 by default."""

    def __init__(self, *args: object, delay: float | None = 60.0) -> None:
        super().__init__(*args, delay=delay)


class Reason(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    NOOP = "noop"
    FREE = "free"
    GONE = "gone"


class DiffOperation(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


def _with_finalizer(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator of `on` that also makes the operator use kopf's finalizer."""

    def decorator(*kind: Any, **options: Any) -> Callable[[Any], Any]:
        options = {name: value for name, value in options.items() if value is not None or name in ("id", "param")}
        if "operation" in options:
            options["operations"] = [options.pop("operation")]
        decorate = make(*kind, **options)

        def register(function: Any) -> Any:
            _on.of_function(function).use_finalizer(FINALIZER)
            return decorate(function)

        return register

    decorator.__doc__ = make.__doc__
    return decorator


on = SimpleNamespace(
    **{
        name: _with_finalizer(getattr(_on, name))
        for name in (
            *("create", "update", "delete", "resume", "field", "event", "startup", "cleanup", "login", "probe"),
            *("validate", "mutate"),
        )
    },
    subhandler=_on.subhandler,
)
daemon = on.daemon = _with_finalizer(_on.daemon)
timer = on.timer = _with_finalizer(_on.timer)
index = on.index = _with_finalizer(_on.index)
subhandler = _on.subhandler


def register(function: Callable[..., Any], *, id: str | None = None, **options: Any) -> Callable[..., Any]:  # noqa: A002
    """Register a function as a sub-handler."""
    scope()
    return _on.subhandler(id=id, **options)(function)


def configure(*, debug: bool | None = None, verbose: bool | None = None, quiet: bool | None = None, **_: Any) -> None:
    """Set the level of the root logger."""
    level = logging.DEBUG if debug or verbose else logging.WARNING if quiet else logging.INFO
    logging.getLogger().setLevel(level)


def run(**_: Any) -> None:
    """Run the handlers of all loaded modules until a signal arrives. `ostinato run FILE` has the options."""
    from ostinato.manager import Manager  # noqa: PLC0415 - a file with handlers need not load it

    Manager().add(_all_handlers()).run()


async def operator(**_: Any) -> None:
    """Run the handlers of all loaded modules until cancelled."""
    from ostinato.manager import Manager  # noqa: PLC0415

    await Manager().add(_all_handlers()).serve()


def _all_handlers() -> Handlers:
    found = [each for module in list(sys.modules.values()) if (each := _on.found_in(module)) is not None]
    if not found:
        raise LookupError("no handlers are defined; decorate functions with @kopf.on.create(...)")
    first, *others = found
    return first.merge(others)


class _Ignored:
    """A name of kopf without a counterpart. Can be called and assigned; it has no effect."""

    def __init__(self, *_: Any, **__: Any) -> None: ...


def __getattr__(name: str) -> Any:
    if name in _IGNORED:
        return _Ignored
    if name == "lifecycles":
        return SimpleNamespace(**dict.fromkeys(("all_at_once", "one_by_one", "asap", "randomized", "shuffled")))
    if name in _TYPES:
        return Any
    raise AttributeError(f"ostinato.kopf has no {name!r}; see the page 'Come from kopf' for what differs", name=name)


_IGNORED = frozenset(
    {
        *("WebhookServer", "WebhookK3dServer", "WebhookMinikubeServer", "WebhookDockerDesktopServer"),
        *("WebhookNgrokTunnel", "WebhookAutoServer", "WebhookAutoTunnel"),
        *("AnnotationsDiffBaseStorage", "StatusDiffBaseStorage", "MultiDiffBaseStorage", "DiffBaseStorage"),
        *("AnnotationsProgressStorage", "StatusProgressStorage", "MultiProgressStorage", "SmartProgressStorage"),
        *("ConnectionInfo", "login_via_pykube", "login_via_client", "login_with_kubeconfig"),
        *("login_with_service_account", "login_via_async_client", "set_default_lifecycle", "set_default_registry"),
        *("ProgressStorage", "OperatorRegistry"),
    }
)
_TYPES = frozenset(  # used in annotations only
    {
        *("BodyEssence", "FieldPath", "FieldSpec", "Headers", "HandlerId", "ObjectLogger", "LocalObjectLogger"),
        *(
            "ObjectReference",
            "Operation",
            "OwnerReference",
            "PatchFn",
            "RawBody",
            "RawEvent",
            "RawEventType",
            "Resource",
        ),
        *("SSLPeer", "UserInfo", "WebhookFn", "WebhookServerProtocol", "WebhookClientConfig", "DaemonStoppingReason"),
        *("SyncDaemonStopperChecker", "AsyncDaemonStopperChecker", "LogFormat", "ProgressRecord"),
    }
)


class LoginError(Exception):
    """Raised by login handlers of kopf; never raised here."""
