"""Decorators that make functions handlers: `from ostinato import on`.

    @on.create(Site, labels={"tier": "web"}, retries=5)
    async def publish(spec, name, patch, **_):
        patch.status["url"] = await upload(name, spec["text"])

| decorator | the function is called |
|---|---|
| `create`, `update`, `delete` | when an object is new, has changed, is being deleted |
| `resume` | when this process sees an object for the first time that was handled before |
| `field` | when a field has changed, also by the creation |
| `event` | with every watch event |
| `daemon`, `timer` | in the background as long as the object exists; at intervals |
| `index` | to keep an index over objects |
| `startup`, `cleanup` | at the start and at the end of the operator |
| `validate`, `mutate` | by the API server before objects are stored |
| `subhandler` | within a handler |

Kinds are classes or names (`resources`). Options: `id`, `param`, `errors`, `timeout`, `retries`, `backoff`; filters are
in `objects.filters`. The decorated function stays a plain function, and can have several decorators.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from ostinato.crd.rbac import Access
from ostinato.frontends.handlers.admission import AdmissionError, hook_of
from ostinato.frontends.handlers.handler import ErrorsMode, Form, Handler, Options, handler_id
from ostinato.frontends.handlers.objects.filters import ABSENT, PRESENT, Filters, all_, any_, none_, not_
from ostinato.frontends.handlers.objects.views import parse_path
from ostinato.frontends.handlers.operator import Handlers
from ostinato.frontends.handlers.resources import EVERYTHING, Resources
from ostinato.frontends.handlers.running.subhandlers import execute, scope
from ostinato.manager.hosting import current_host
from ostinato.webhook import ServiceEndpoint, UrlEndpoint, Webhooks

F = TypeVar("F", bound=Callable[..., Any])


class Decorator(Protocol):
    """Registers a function, and returns it."""

    def __call__(self, function: F, /) -> F: ...


__all__ = [
    "ABSENT",
    "EVERYTHING",
    "PRESENT",
    "AdmissionError",
    "ErrorsMode",
    "all_",
    "any_",
    "cleanup",
    "create",
    "daemon",
    "delete",
    "event",
    "execute",
    "field",
    "handlers",
    "index",
    "login",
    "mutate",
    "none_",
    "not_",
    "probe",
    "resume",
    "settings",
    "startup",
    "subhandler",
    "timer",
    "update",
    "validate",
    "webhooks",
]

_HOME: Final = "__handlers__"  # the name under which a module has its handlers
_KINDS: Final = frozenset({"group", "version", "kind", "plural", "singular", "shortcut", "category"})
_FILTERS: Final = frozenset(Filters.__struct_fields__)
_COMMON: Final = frozenset({"errors", "timeout", "retries", "backoff"})
_BACKGROUND: Final = _COMMON | {"initial_delay"}
_ADMISSION: Final = frozenset({"operations", "subresource", "persistent", "side_effects", "ignore_failures"})
_OPTIONS: Final[dict[str, frozenset[str]]] = {
    "create": _COMMON,
    "update": _COMMON,
    "delete": _COMMON | {"optional"},
    "resume": _COMMON | {"deleted"},
    "field": _COMMON,
    "event": frozenset(),
    "daemon": _BACKGROUND | {"cancellation_backoff", "cancellation_timeout", "cancellation_polling"},
    "timer": _BACKGROUND | {"interval", "sharp", "idle"},
    "index": _COMMON,
    "startup": _COMMON,
    "cleanup": _COMMON,
    "login": _COMMON,
    "probe": _COMMON,
    "validate": _ADMISSION,
    "mutate": _ADMISSION,
    "subhandler": _COMMON,
}


def create(*kind: Any, **options: Any) -> Decorator:
    """Call the function for an object that was never handled before, until it succeeds."""
    return _decorator("create", kind, options)


def update(*kind: Any, **options: Any) -> Decorator:
    """Call the function when an object, or its `field`, has changed since it was last handled."""
    return _decorator("update", kind, options)


def delete(*kind: Any, **options: Any) -> Decorator:
    """Call the function before an object is deleted. It has a finalizer, unless `optional=True`."""
    return _decorator("delete", kind, options)


def resume(*kind: Any, **options: Any) -> Decorator:
    """Call the function for each object that a restarted operator finds. `deleted=True`: also those being deleted."""
    return _decorator("resume", kind, options)


def field(*kind: Any, **options: Any) -> Decorator:
    """Call the function when a field has changed: `@on.field(Site, field="spec.text")`."""
    if "field" not in options and len(kind) == 2 and not isinstance(kind[0], str):
        *kind_, options["field"] = kind
        kind = tuple(kind_)
    if "field" not in options:
        raise TypeError('@on.field() needs a field; write @on.field(Site, field="spec.text")')
    return _decorator("field", kind, options)


def event(*kind: Any, **options: Any) -> Decorator:
    """Call the function with every watch event of an object: `type` and `event`. No retries, no progress."""
    return _decorator("event", kind, options)


def daemon(*kind: Any, **options: Any) -> Decorator:
    """Run the function beside each object, from when it is found until it is deleted."""
    return _decorator("daemon", kind, options)


def timer(*kind: Any, **options: Any) -> Decorator:
    """Call the function for each object every `interval` seconds, or after `idle` seconds without a change."""
    return _decorator("timer", kind, options)


def index(*kind: Any, **options: Any) -> Decorator:
    """Keep an index of what the function returns; see `running.indexes`."""
    return _decorator("index", kind, options)


def startup(**options: Any) -> Decorator:
    """Call the function before everything else."""
    return _decorator("startup", (), options)


def cleanup(**options: Any) -> Decorator:
    """Call the function when the operator stops."""
    return _decorator("cleanup", (), options)


def login(**options: Any) -> Decorator:
    """Accept the function without calling it: the manager connects as kubectl does."""
    return _decorator("login", (), options)


def probe(**options: Any) -> Decorator:
    """Accept the function without calling it: use `manager.add_health_check`."""
    return _decorator("probe", (), options)


def validate(*kind: Any, **options: Any) -> Decorator:
    """Call the function before an object is stored; it raises `AdmissionError` to reject it."""
    return _decorator("validate", kind, options)


def mutate(*kind: Any, **options: Any) -> Decorator:
    """Call the function before an object is stored; its `patch` changes it."""
    return _decorator("mutate", kind, options)


def subhandler(*, id: str | None = None, param: Any = None, **options: Any) -> Decorator:  # noqa: A002
    """Register the function as a sub-handler of the handler that runs."""
    found = scope()

    def decorate(function: F) -> F:
        found.add(_handler("subhandler", function, (), {"id": id, "param": param, **options}, found.parent.id))
        return function

    return decorate


def handlers(*modules: str | ModuleType) -> Handlers:
    """Return the handlers of modules, by name or as modules: `Manager().add(on.handlers(__name__))`."""
    found: list[Handlers] = []
    for each in modules:
        module = sys.modules[each] if isinstance(each, str) else each
        known = vars(module).get(_HOME)
        if known is None:
            raise LookupError(f"module {module.__name__} has no handlers; decorate functions with @on.create(...)")
        found.append(known)
    if not found:
        raise TypeError("on.handlers() needs a module; write on.handlers(__name__)")
    first, *others = found
    return first.merge(others) if others else first


def webhooks(*modules: str | ModuleType, endpoint: ServiceEndpoint | UrlEndpoint, **options: Any) -> Webhooks:
    """Return the server of the admission handlers of modules, for a manager; options are those of `Webhooks`."""
    found = handlers(*modules)
    hooks = [hook_of(each) for each in found.handlers if each.form in ("validate", "mutate")]
    if not hooks:
        raise LookupError("on.webhooks(): no admission handlers; decorate functions with @on.validate(...)")
    for each in modules:
        handlers(each).is_served = True
    options.setdefault("name", found.name)
    return Webhooks(*hooks, endpoint=endpoint, **options)


def settings(name: str = "", *, access: Sequence[Access] = (), **persistence: Any) -> None:
    """Set the name of the operator and options of `settings.persistence`, for the handlers of the calling module.

    - `name`: identifies progress and finalizers. Defaults to the name of the file.
    - `access`: permissions beyond those for the handled kinds; for manifests.
    - `finalizer`, `store`, `namespace`: see `Persistence`.
    """
    of_module(sys._getframe(1).f_globals).configure(name, access, **persistence)


def of_module(variables: dict[str, Any]) -> Handlers:
    """Return the handlers of a module, given its variables; created on first use."""
    found = variables.get(_HOME)
    if found is None:
        found = variables[_HOME] = Handlers()
        found.default_name = _program_name(variables)
        host = current_host()
        if host is not None:
            host.registered.append(found)
    assert isinstance(found, Handlers)
    return found


def of_function(function: Callable[..., Any]) -> Handlers:
    """Return the handlers of the module that defines a function."""
    return of_module(_globals(function))


def found_in(module: ModuleType) -> Handlers | None:
    """Return the handlers of a module; None if it has none."""
    found = vars(module).get(_HOME) if isinstance(module, ModuleType) else None
    return found if isinstance(found, Handlers) else None


def _decorator(form: Form, kind: tuple[Any, ...], options: dict[str, Any]) -> Decorator:
    if len(kind) == 1 and inspect.isroutine(kind[0]):
        name = getattr(kind[0], "__name__", "function")
        raise TypeError(f"@on.{form} needs arguments; write @on.{form}(...) above def {name}")
    known = {"id", "param", *_OPTIONS[form], *_FILTERS, *_KINDS, "registry"}
    if unknown := sorted(set(options) - known):
        raise TypeError(f"@on.{form}: unknown option {unknown[0]!r}; options are {', '.join(sorted(known))}")
    return partial(_register, form, kind, options)


def _register(form: Form, kind: tuple[Any, ...], options: dict[str, Any], function: F) -> F:
    options = dict(options)
    registry = options.pop("registry", None)
    target = of_function(function) if registry is None else registry
    target.add(_handler(form, function, kind, options, ""))
    return function


def _handler(
    form: Form, function: Callable[..., Any], kind: tuple[Any, ...], options: dict[str, Any], prefix: str
) -> Handler:
    if not callable(function):
        raise TypeError(f"@on.{form}: {function!r} is not a function")
    taken = {name: value for name, value in options.items() if value is not None}
    path = parse_path(taken.get("field"))
    resources = None
    if form not in ("startup", "cleanup", "login", "probe", "subhandler"):
        resources = Resources.of(*kind, **{name: taken[name] for name in _KINDS & taken.keys()})
    filters = {name: taken[name] for name in _FILTERS & taken.keys()}
    if "operations" in taken:
        taken["operations"] = tuple(taken["operations"])
    return Handler(
        id=handler_id(function, options.get("id"), () if form == "index" else path, prefix),
        form=form,
        function=function,
        resources=resources,
        filters=Filters(**{**filters, "field": path}),
        options=Options(**{name: taken[name] for name in _OPTIONS[form] & taken.keys()}),
        param=options.get("param"),
    )


def _globals(function: Any) -> dict[str, Any]:
    """Return the variables of the module that defines a function."""
    while isinstance(function, partial):
        function = function.func
    found = getattr(inspect.unwrap(function), "__globals__", None)
    if found is None:  # a callable object
        found = vars(sys.modules[type(function).__module__])
    assert isinstance(found, dict)
    return found


def _program_name(variables: dict[str, Any]) -> str:
    name = str(variables.get("__name__", "handlers"))
    if name == "__main__":
        file = str(variables.get("__file__", "handlers"))
        name = file.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return name.partition(".")[0].removeprefix("file_")
