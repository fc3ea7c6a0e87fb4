"""Hints: how to fix errors that Python or msgspec report in terms of their own.

| error | hint |
|---|---|
| an attribute of a coroutine | a missing `await` |
| `with` of an asynchronous context manager | `async with` |
| `await` of a value | a needless `await` |
| a misspelt or missing field of a struct | the class, the nearest field and all fields |
| `@dataclass` above a struct | remove it |
| a request that RBAC denies | how to derive the permission |

The class of a constructor call is determined from the source of the failing line; without the source there is no hint.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Iterable
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, Final

import msgspec

from ostinato.api.errors import Forbidden

_AWAIT: Final = "a coroutine has no result before it is awaited; write await before the call"
_BY_MESSAGE: Final = (
    (re.compile(r"^'coroutine' object "), _AWAIT),
    (re.compile(r"^unsupported operand .*'coroutine'"), _AWAIT),
    (re.compile(r"AsyncGeneratorContextManager' object does not support the context manager"), "write async with"),
    (re.compile(r"^object \w+ can't be used in 'await' expression"), "the call returns no coroutine; remove await"),
)
_DENIED: Final = re.compile(r"is forbidden: User .* cannot \w+ resource")
_PERMIT: Final = (
    "declare the kind in owns= or watches=, or access=[Access(...)], and apply the roles of `ostinato manifests`"
)
_UNKNOWN: Final = re.compile(r"^Unexpected keyword argument '(\w+)'$")
_MISSING: Final = re.compile(r"^Missing required argument '(\w+)'$")


def hint_for(error: BaseException) -> str:
    """Return what to do about an error, or "" if its message says it or nothing is known."""
    try:
        return _hint(error)
    except Exception:  # noqa: BLE001 - an error is reported with or without a hint
        return ""


def _hint(error: BaseException) -> str:
    if isinstance(error, AttributeError) and inspect.iscoroutine(error.obj):
        return _AWAIT
    if isinstance(error, AttributeError) and str(error) == "readonly attribute" and _raised_in(error, "dataclasses"):
        return "a Struct or CustomResource is not a dataclass; remove @dataclass"
    if isinstance(error, AttributeError) and isinstance(error.obj, msgspec.Struct):
        return _fields(type(error.obj), str(error.name))
    if isinstance(error, Forbidden) and _DENIED.search(str(error)):
        return _PERMIT
    if not isinstance(error, TypeError):
        return ""
    text = str(error)
    for pattern, hint in _BY_MESSAGE:
        if pattern.search(text):
            return hint
    if (found := _UNKNOWN.match(text)) is not None:
        cls = _called_class(error.__traceback__)
        return "" if cls is None else _fields(cls, found[1])
    if (found := _MISSING.match(text)) is not None:
        cls = _called_class(error.__traceback__)
        return "" if cls is None else f"{cls.__name__} needs {found[1]}=…"
    return ""


def _raised_in(error: BaseException, module: str) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == module


def _fields(cls: type[msgspec.Struct], name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - for the message only

    known = [each for each in cls.__struct_fields__ if each not in ("api_version", "kind")]
    nearest = get_close_matches(name, known, n=1)
    advice = f"did you mean {nearest[0]}? " if nearest else ""
    if not nearest and "metadata" in known and name in ("name", "namespace", "labels", "annotations"):
        advice = f"write metadata=ObjectMeta({name}=…); "
    if name in vars(cls) and name not in known:
        advice = f"{name} has no annotation in class {cls.__name__}, so it is not a field; "
    return f"{cls.__name__} has no field {name!r}; {advice}fields are {', '.join(known)}"


def _called_class(trace: TracebackType | None) -> type[msgspec.Struct] | None:
    """Return the struct class whose constructor the last line of the traceback calls."""
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    call = _expression(trace)
    if not isinstance(call, ast.Call):
        return None
    found = _resolve(call.func, trace.tb_frame)
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None


def _expression(trace: TracebackType) -> ast.expr | None:
    """Return the expression that was being evaluated, from its position in the source."""
    code = trace.tb_frame.f_code
    line, last, start, end = next(islice(code.co_positions(), trace.tb_lasti // 2, None))
    if line is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(code.co_filename, each).encode() for each in range(line, last + 1)]
    lines[-1] = lines[-1][:end]  # before the start: they may be the same line
    lines[0] = lines[0][start:]
    return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body


def _resolve(name: ast.expr, frame: FrameType) -> Any:
    if isinstance(name, ast.Attribute):
        return getattr(_resolve(name.value, frame), name.attr)
    if isinstance(name, ast.Name):
        return _first(name.id, (frame.f_locals, frame.f_globals))
    return None


def _first(name: str, scopes: Iterable[dict[str, Any]]) -> Any:
    return next((scope[name] for scope in scopes if name in scope), None)
