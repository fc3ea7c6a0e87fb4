"""Handler: a function with what it is called for: kinds, reasons, filters, retries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Literal

import msgspec

from ostinato.controllers.result import PermanentError
from ostinato.controllers.signatures import is_async
from ostinato.frontends.handlers.objects.filters import Filters
from ostinato.frontends.handlers.resources import Resources

CREATE, UPDATE, DELETE, RESUME, FIELD = "create", "update", "delete", "resume", "field"
NOOP = "noop"

Form = Literal[
    "create", "update", "delete", "resume", "field",
    "event", "daemon", "timer", "index",
    "startup", "cleanup", "login", "probe", "validate", "mutate", "subhandler",
]  # fmt: skip
CHANGING: Final = frozenset({CREATE, UPDATE, DELETE, RESUME, FIELD, "subhandler"})
DEFAULT_BACKOFF: Final = 60.0  # seconds before the retry of a handler that failed


class ErrorsMode(Enum):
    """What an exception other than TemporaryError and PermanentError means."""

    IGNORED = "ignored"  # the handler counts as succeeded
    TEMPORARY = "temporary"  # it is retried
    PERMANENT = "permanent"  # it has failed


class HandlerTimeoutError(PermanentError):
    """The handler has not succeeded within its `timeout`."""


class HandlerRetriesError(PermanentError):
    """The handler has not succeeded with its `retries`."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a handler; see `on`. Seconds, unless said otherwise."""

    errors: ErrorsMode | None = None
    timeout: float | None = None
    retries: int | None = None
    backoff: float | None = None
    # delete
    optional: bool = False
    # resume
    deleted: bool = False
    # daemon and timer
    interval: float | None = None
    sharp: bool = False
    idle: float | None = None
    initial_delay: float | Callable[..., float] | None = None
    cancellation_backoff: float | None = None
    cancellation_timeout: float | None = None
    cancellation_polling: float | None = None
    # validate and mutate
    operations: tuple[str, ...] = ()
    subresource: str | None = None
    persistent: bool = False
    side_effects: bool = False
    ignore_failures: bool = False

    def __post_init__(self) -> None:
        for name in ("timeout", "backoff", "interval", "idle"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise ValueError(f"{name}: {value!r} is not a number of seconds")
        if self.retries is not None and not (isinstance(self.retries, int) and self.retries >= 0):
            raise ValueError(f"retries: {self.retries!r} is not a number of attempts")
        if self.errors is not None and not isinstance(self.errors, ErrorsMode):
            raise TypeError(f"errors: {self.errors!r} is not an ErrorsMode; write errors=on.ErrorsMode.PERMANENT")


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `id`: the name in progress, logs and results; unique among the handlers of a form.
    - `form`: the decorator.
    - `resources`: the kinds; None of a sub-handler or of a form without objects.
    """

    id: str
    form: Form
    function: Callable[..., Any]
    resources: Resources | None = None
    filters: Filters = Filters()
    options: Options = Options()
    param: Any = None

    @property
    def needs_finalizer(self) -> bool:
        return self.form == DELETE and not self.options.optional

    @property
    def needs_change(self) -> bool:
        """Whether the field of the handler must have changed."""
        return self.form in (UPDATE, FIELD)

    @property
    def is_async(self) -> bool:
        return is_async(self.function)

    @property
    def place(self) -> str:
        """The file and line of the function, for messages."""
        code = getattr(inspect.unwrap(_inner(self.function)), "__code__", None)
        return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def __str__(self) -> str:
        return f"handler {self.id}"

    def handles(self, reason: str, *, initial: bool, deleting: bool) -> bool:
        """Return whether it is called for a reason. `initial`: the object is handled the first time by this process."""
        if self.form == RESUME:
            return initial and (not deleting or self.options.deleted)
        return self.form in (FIELD, "subhandler", reason)


def handler_id(function: Callable[..., Any], given: str | None, path: tuple[str, ...], prefix: str = "") -> str:
    """Return the id of a handler: the given one or the function's name, with the field and the parent's id."""
    found = _name(function) if given is None else given
    if not isinstance(found, str) or not found:
        raise TypeError(f"id: {found!r} is not a name")
    parts = [prefix, found, ".".join(path)]
    return "/".join(part for part in parts if part)


def distinct(handlers: Iterable[Handler]) -> list[Handler]:
    """Return handlers without repetitions: a function with several decorators is called once for a change."""
    found: dict[tuple[int, str], Handler] = {}
    for each in handlers:
        found.setdefault((id(each.function), each.id), each)
    return list(found.values())


def check_ids(handlers: Iterable[Handler]) -> None:
    """Raise ValueError if two functions have the same id and form: their progress could not be told apart."""
    seen: dict[tuple[str, str], Handler] = {}
    for each in handlers:
        known = seen.setdefault((each.form, each.id), each)
        if known.function is not each.function and known.resources == each.resources:
            raise ValueError(
                f"{each.place or each.id}: two {each.form} handlers have the id {each.id!r}; "
                f"rename the function or give one of them id="
            )


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _inner(function: Any) -> Any:
    return _inner(function.func) if isinstance(function, functools.partial) else function


def _name(function: Callable[..., Any]) -> str:
    inner = inspect.unwrap(_inner(function))
    name = getattr(inner, "__qualname__", "") or type(inner).__qualname__
    if "<lambda>" in name:
        code = inner.__code__
        return f"lambda-{code.co_firstlineno}"
    return str(name).rpartition("<locals>.")[2]
