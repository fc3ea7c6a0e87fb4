"""Calls: which arguments a function receives, and how it is called.

- A function receives the arguments that it names, or all if it has `**kwargs`.
- An `async def` runs on the event loop; a plain `def` in a thread, with the context variables.
- With a limit, an `async def` is cancelled when it has passed. A thread cannot be stopped: it is awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from logging import Logger
from typing import Any, Final
from weakref import WeakKeyDictionary

from ostinato.controllers.blocking.context import BlockingContext
from ostinato.controllers.context import Context
from ostinato.frontends.handlers.handler import CHANGING, Handler, HandlerTimeoutError
from ostinato.frontends.handlers.objects.views import Annotations, Body, Labels, Meta, Spec, Status

Json = dict[str, Any]
Kwargs = dict[str, Any]

_OBJECT: Final = (
    "body", "spec", "meta", "status", "name", "namespace", "uid", "labels", "annotations",
    "patch", "memo", "resource", "ctx", "obj",
)  # fmt: skip
_CALL: Final = ("logger", "param", "retry", "started", "runtime")
_ADMISSION: Final = ("dryrun", "warnings", "subresource", "userinfo", "headers", "sslpeer", "operation", "old", "new")
_OF_FORM: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(CHANGING, (*_OBJECT, *_CALL, "reason", "diff", "old", "new")),
    "event": (*_OBJECT, *_CALL, "event", "type"),
    "daemon": (*_OBJECT, *_CALL, "stopped"),
    "timer": (*_OBJECT, *_CALL),
    "index": (*_OBJECT, *_CALL),
    "validate": (*_OBJECT, *_CALL, *_ADMISSION, "reason", "diff"),
    "mutate": (*_OBJECT, *_CALL, *_ADMISSION, "reason", "diff"),
    **dict.fromkeys(("startup", "cleanup", "login", "probe"), (*_CALL, "settings", "memo")),
}


def check_parameters(handler: Handler, indexes: Iterable[str]) -> None:
    """Raise TypeError if a function requires an argument that handlers of its form do not have."""
    known = {*_OF_FORM[handler.form], *indexes}
    for each in inspect.signature(handler.function).parameters.values():
        if each.kind is each.POSITIONAL_ONLY:
            raise TypeError(f"{handler.place}: {handler.id}: arguments are passed by name; remove / from the signature")
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            continue
        if each.default is each.empty and each.name not in known:
            near = get_close_matches(each.name, known, n=1)
            advice = f"did you mean {near[0]}? " if near else ""
            raise TypeError(
                f"{handler.place}: {handler.id}: {each.name!r} is not an argument of {handler.form} handlers; "
                f"{advice}arguments are {', '.join(sorted(known))}"
            )


def object_arguments(body: Json) -> Kwargs:
    """Return the arguments that describe an object."""
    metadata = body.get("metadata") or {}
    meta = Meta(metadata)
    return {
        "body": Body(body),
        "spec": Spec(body.get("spec")),
        "meta": meta,
        "status": Status(body.get("status")),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
        "uid": metadata.get("uid"),
        "labels": Labels(metadata.get("labels")),
        "annotations": Annotations(metadata.get("annotations")),
    }


def selected(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Kwargs:
    """Return the arguments that a function takes."""
    names = _names(function)
    return dict(arguments) if names is None else {name: arguments[name] for name in names if name in arguments}


_known_names: WeakKeyDictionary[Callable[..., Any], tuple[str, ...] | None] = WeakKeyDictionary()


def _names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names of the parameters; None if it takes all."""
    try:
        return _known_names[function]
    except (KeyError, TypeError):  # unknown, or a callable without weak references
        found = _parameter_names(function)
    with suppress(TypeError):
        _known_names[function] = found
    return found


def _parameter_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return tuple(each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY))


InThread = Callable[[Callable[[BlockingContext], Any], Context], Any]
"""Runs a function of the blocking context in a thread, as `Reconciler.in_thread` does."""


async def call(
    handler: Handler, arguments: Kwargs, context: Context, in_thread: InThread, limit: float | None = None
) -> Any:
    """Call the function of a handler. `limit`: seconds after which an `async def` is cancelled; None is no limit."""
    if not handler.is_async:

        def work(blocking: BlockingContext) -> Any:
            return handler.function(**selected(handler.function, {**arguments, "ctx": blocking}))

        return await in_thread(work, context)
    kwargs = selected(handler.function, {**arguments, "ctx": context})
    if limit is None:
        return await handler.function(**kwargs)
    timeout = context.world.clock.timeout(limit)
    try:
        async with timeout:
            return await handler.function(**kwargs)
    except TimeoutError as error:
        if not timeout.expired():
            raise
        raise HandlerTimeoutError(f"{handler} was cancelled after its timeout") from error


def log_failure(logger: Logger, handler: Handler, error: BaseException, what: str) -> None:
    """Log a failed call, with the traceback of the function."""
    logger.error("%s handler=%s error=%s: %s", what, handler.id, type(error).__name__, error, exc_info=error)
