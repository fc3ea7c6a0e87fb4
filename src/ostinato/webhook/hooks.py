"""Hooks: functions that mutate, validate or convert objects, declared by decorators.

    @defaulter(Widget)
    def fill_in(widget: Widget) -> None:
        if not widget.spec.image:
            widget.spec.image = "nginx"

    @validator(Widget, operations=["CREATE", "UPDATE", "DELETE"])
    async def check(widget: Widget, old: Widget | None, request: AdmissionRequest) -> list[str] | None:
        if request.operation == "DELETE" and widget.spec.protected:
            raise Denied("it is protected")
        return ["spec.image: latest is a moving target"] if widget.spec.image.endswith(":latest") else None

    @converter
    def upgrade(old: WidgetV1) -> WidgetV2: ...

- The kind may be omitted if the first parameter is annotated: `@validator` alone.
- A validator returns None, warnings (one string or several) or `FieldError`s, which reject the object; or it yields
  them. It may raise `Denied` or any `ostinato.api.errors.APIError`. On DELETE the object is the one to be deleted.
- A defaulter changes the object in place, or returns another one. Only its changes are sent, so fields that the class
  does not know survive. A field at the default of its class is not written (see `ostinato.api.struct`).
- A converter returns an object of another version of the kind. With one hub version that all others convert to and
  from, every pair is covered. Metadata that it leaves empty is copied from its argument.
- Any other exception is logged, and the request is rejected with its message.
- A hook remains callable as the original function.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, overload

from ostinato.api.codec import ObjectError, from_json
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, Object, kind_of, plural_of
from ostinato.api.validation import names
from ostinato.api.wire.json import decode_json
from ostinato.webhook.callback import Callback
from ostinato.webhook.request import OPERATIONS

F = Callable[..., Any]
A = TypeVar("A", bound=Object)
B = TypeVar("B", bound=Object)
AnyKind = type[Object] | GroupVersionKind

_PATH: Final = re.compile(r"((/[a-zA-Z0-9-_]+)+|/)")


class HookOptions(TypedDict, total=False):
    """
    - `operations`: the operations to handle. Defaults to CREATE and UPDATE.
    - `path`: the HTTP path. Defaults to controller-runtime's, such as `/validate-example-dev-v1-widget`.
    - `name`: shown in rejections; at least three parts. Defaults to `validate.v1.widgets.example.dev`.
    - `subresources`: subresources to handle too, such as status. Some have other kinds, such as Scale: the function
      then takes a dict. Defaults to none.
    - `rules`: the rules of the webhook configuration. Default to the kind in its version.
    - `failure_policy`: what servers do if the hook is unreachable: Fail or Ignore. Defaults to Fail.
    - `match_policy`: whether other versions of the kind are converted and sent too. Defaults to Equivalent.
    - `side_effects`: None or NoneOnDryRun. Defaults to None.
    - `timeout_seconds`: the timeout of servers, 1 to 30. Defaults to 10.
    - `reinvocation_policy`: whether a defaulter is called again after others changed the object. Defaults to Never.
    - `namespace_selector`, `object_selector`, `match_conditions`: as in a webhook configuration. Default to everything.
    """

    operations: Sequence[str]
    path: str
    name: str
    subresources: Sequence[str]
    rules: Sequence[Mapping[str, Any]]
    failure_policy: Literal["Fail", "Ignore"]
    match_policy: Literal["Equivalent", "Exact"]
    side_effects: Literal["None", "NoneOnDryRun"]
    timeout_seconds: int
    reinvocation_policy: Literal["Never", "IfNeeded"]
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    match_conditions: Sequence[Mapping[str, str]]


_OTHER_KINDS: Final = frozenset(  # subresources with objects of other kinds
    ("*", "attach", "binding", "eviction", "exec", "portforward", "proxy", "scale", "token")
)
_LISTS: Final = ("match_conditions", "operations", "rules", "subresources")
_CHOICES: Final = {
    option: typing.get_args(hint)
    for option, hint in typing.get_type_hints(HookOptions).items()
    if typing.get_origin(hint) is Literal
}


class AdmissionHook:
    """A validator or defaulter: function, kind and options."""

    def __init__(self, function: F, kind: AnyKind | None, *, mutating: bool, options: HookOptions) -> None:
        self.function = function
        self.callback = Callback(function)
        self.mutating = mutating
        self.options = options
        self.kind = _kind_info(kind, self.callback)
        # None if the function takes dicts
        self.object_class = _object_class(kind, self.callback)
        gvk = self.kind.gvk
        verb = "mutate" if mutating else "validate"
        named = f"{gvk.group.replace('.', '-')}-{gvk.version}-{gvk.kind.lower()}"
        self.path = options.get("path") or f"/{verb}-{named}"
        self.name = options.get("name") or f"{verb}.{gvk.version}.{self.kind.plural}.{gvk.group or 'core'}"
        self.operations = tuple(options.get("operations") or ("CREATE", "UPDATE"))
        self._check()

    def accepts(self, kind: GroupVersionKind, subresource: str) -> bool:
        """Whether it handles a kind: its own, or any through one of its subresources."""
        if kind == self.kind.gvk:
            return True
        return bool(subresource) and self.object_class is None and ("rules" in self.options or self._lists(subresource))

    def _lists(self, subresource: str) -> bool:
        return not {"*", subresource}.isdisjoint(self.options.get("subresources", ()))

    def decode(self, data: bytes) -> Any:
        """Decode the object as the function takes it. Raises ObjectError or DecodeError."""
        if self.object_class is not None:
            return from_json(self.object_class, data)
        document = decode_json(data)
        if not isinstance(document, dict):
            raise ObjectError(f"{self.kind.gvk.kind}: expected an object, got {type(document).__name__}")
        return document

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<{'defaulter' if self.mutating else 'validator'} {self.callback.name} of {self.kind.gvk}>"

    def _check(self) -> None:
        name = self.callback.name
        if unknown := sorted(self.options.keys() - HookOptions.__annotations__.keys()):
            raise TypeError(f"{name}: unknown option {unknown[0]!r}; options: {', '.join(HookOptions.__annotations__)}")
        for option, value in self.options.items():
            if option in _LISTS and isinstance(value, str | Mapping):
                raise TypeError(f"{name}: {option} must be a list, not {value!r}")
            if option in _CHOICES and value not in _CHOICES[option]:
                raise ValueError(f"{name}: {option} must be {' or '.join(_CHOICES[option])}, not {value!r}")
        if "rules" in self.options and "subresources" in self.options:
            raise ValueError(f"{name}: rules and subresources are both set; list the subresources in rules")
        foreign = sorted(_OTHER_KINDS.intersection(self.options.get("subresources", ())))
        if foreign and self.object_class is not None:
            raise TypeError(
                f"{name}: objects of the subresource {foreign[0]} are not a {self.kind.gvk.kind}; "
                "annotate the first parameter as a dict and use request.subresource"
            )
        if wrong := [each for each in self.operations if each not in OPERATIONS]:
            raise ValueError(f"{name}: unknown operation {wrong[0]!r}; operations: {', '.join(OPERATIONS)}")
        if self.mutating and "DELETE" in self.operations:
            raise ValueError(f"{name}: a defaulter cannot handle DELETE; use a validator")
        if not _PATH.fullmatch(self.path):
            raise ValueError(f"{name}: path {self.path!r} does not match {_PATH.pattern}")
        if self.name.count(".") < 2:
            raise ValueError(f"{name}: name {self.name!r} needs three parts or more, such as check.widgets.example.dev")
        if problems := names.is_dns1123_subdomain(self.name):
            raise ValueError(f"{name}: name {self.name!r}: {problems[0]}")
        seconds = self.options.get("timeout_seconds", 10)
        if not isinstance(seconds, int) or not 1 <= seconds <= 30:
            raise ValueError(f"{name}: timeout_seconds must be between 1 and 30")
        if not self.mutating and "reinvocation_policy" in self.options:
            raise ValueError(f"{name}: reinvocation_policy is for defaulters only")


class ConversionHook:
    """A function that converts objects from one version to another."""

    def __init__(self, function: F, source: type[Object] | None, target: type[Object] | None) -> None:
        self.function = function
        self.name: str = getattr(function, "__qualname__", type(function).__name__)
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{self.name}: a converter must not be async; use a plain def")
        if source is None or target is None:
            source, target = _converted_classes(function, self.name)
        self.source, self.target = source, target
        before, after = kind_of(source).gvk, kind_of(target).gvk
        if before.group_kind != after.group_kind or before == after:
            raise TypeError(f"{self.name}: {before} and {after} are not two versions of one kind")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<converter {self.name} from {kind_of(self.source).gvk} to {kind_of(self.target).gvk}>"


@overload
def validator(kind: F, /) -> AdmissionHook: ...
@overload
def validator(kind: AnyKind | None = None, /, **options: Unpack[HookOptions]) -> Callable[[F], AdmissionHook]: ...
def validator(kind: Any = None, /, **options: Unpack[HookOptions]) -> Any:
    """Declare a function as a validating webhook of a kind."""
    return _declared(kind, options, mutating=False)


@overload
def defaulter(kind: F, /) -> AdmissionHook: ...
@overload
def defaulter(kind: AnyKind | None = None, /, **options: Unpack[HookOptions]) -> Callable[[F], AdmissionHook]: ...
def defaulter(kind: Any = None, /, **options: Unpack[HookOptions]) -> Any:
    """Declare a function as a mutating webhook of a kind."""
    return _declared(kind, options, mutating=True)


@overload
def converter(source: Callable[[A], B], /) -> ConversionHook: ...
@overload
def converter(source: type[A], target: type[B], /) -> Callable[[Callable[[A], B]], ConversionHook]: ...
def converter(source: Any, target: Any = None, /) -> Any:
    """Declare a function as a converter: between the given classes, or those of its annotations."""
    if target is None:
        return ConversionHook(source, None, None)
    return lambda function: ConversionHook(function, source, target)


def _declared(kind: Any, options: HookOptions, *, mutating: bool) -> Any:
    if kind is None or isinstance(kind, GroupVersionKind) or (isinstance(kind, type) and issubclass(kind, Object)):
        return lambda function: AdmissionHook(function, kind, mutating=mutating, options=options)
    if isinstance(kind, type) or not callable(kind):
        raise TypeError(f"{kind!r} is not a kind; pass an Object class or a GroupVersionKind")
    return AdmissionHook(kind, None, mutating=mutating, options=options)


def _kind_info(kind: AnyKind | None, callback: Callback) -> KindInfo:
    if isinstance(kind, GroupVersionKind):
        if callback.object_class is not None:
            raise TypeError(f"{callback.name}: pass the class {callback.object_class.__name__}, not a GroupVersionKind")
        return KindInfo(kind, plural_of(kind.kind), kind.kind.lower(), namespaced=True)
    hinted = callback.object_class
    if kind is None:
        if hinted is None:
            raise TypeError(f"{callback.name}: no kind; annotate the first parameter, or pass it: @validator(Widget)")
        return kind_of(hinted)
    if hinted is not None and not issubclass(kind, hinted):
        raise TypeError(f"{callback.name}: declared for {kind.__name__}, but annotated with {hinted.__name__}")
    return kind_of(kind)


def _object_class(kind: AnyKind | None, callback: Callback) -> type[Object] | None:
    if callback.untyped or isinstance(kind, GroupVersionKind):
        return None
    return callback.object_class if kind is None else kind


def _converted_classes(function: F, name: str) -> tuple[type[Object], type[Object]]:
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise TypeError(f"{name}: {error}; pass the classes: @converter(WidgetV1, WidgetV2)") from None
    parameters = list(inspect.signature(function).parameters)
    found = [hints.get(parameters[0]) if parameters else None, hints.get("return")]
    for each in found:
        if not (isinstance(each, type) and issubclass(each, Object)):
            raise TypeError(f"{name}: no classes; annotate the parameter and the result, or pass both to @converter")
    return found[0], found[1]  # type: ignore[return-value]  # checked above
