"""Records the calls of kopf handlers, one JSON document a line, in the file that KOPF_CALLS names.

Loaded before an operator: `kopf run kopf_recorder.py operator.py`. With KOPF_AS=ostinato, the operator's `import kopf`
is `ostinato.kopf`: `ostinato run kopf_recorder.py operator.py`.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

if os.environ.get("KOPF_AS") == "ostinato":
    import ostinato.kopf

    sys.modules["kopf"] = ostinato.kopf

import kopf

FORMS = ("create", "update", "delete", "resume", "field", "event", "startup", "cleanup", "daemon", "timer", "index")
CALLS = Path(os.environ["KOPF_CALLS"])
_recording: dict[Any, Any] = {}


def record(name: str, kwargs: Mapping[str, Any], outcome: str) -> None:
    call: dict[str, Any] = {"handler": name, "outcome": outcome}
    for key in ("reason", "type", "retry", "param"):
        if kwargs.get(key) is not None:
            call[key] = str(kwargs[key]) if key != "retry" else kwargs[key]
    for key in ("old", "new"):
        if key in kwargs:
            call[key] = plain(kwargs[key])
    if "diff" in kwargs:
        call["diff"] = sorted([[str(op), list(path), plain(old), plain(new)] for op, path, old, new in kwargs["diff"]])
    with CALLS.open("a") as file:
        file.write(json.dumps(call, sort_keys=True) + "\n")


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=dict))


def recorded(function: Any) -> Any:
    """Return the function with a record of each call; the same for several decorators of one function."""
    if function in _recording:
        return _recording[function]
    name = function.__name__

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call(**kwargs: Any) -> Any:
            try:
                result = await function(**kwargs)
            except BaseException as error:
                record(name, kwargs, type(error).__name__)
                raise
            record(name, kwargs, "returned")
            return result

    else:

        @functools.wraps(function)
        def call(**kwargs: Any) -> Any:
            try:
                result = function(**kwargs)
            except BaseException as error:
                record(name, kwargs, type(error).__name__)
                raise
            record(name, kwargs, "returned")
            return result

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # takes everything, to record it
        [inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
    )
    _recording[function] = call
    return call


def recording(make: Callable[..., Any]) -> Callable[..., Any]:
    def decorator(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        decorate = make(*args, **kwargs)

        def register(function: Any) -> Any:
            decorate(recorded(function))
            return function

        return register

    return decorator


for form in FORMS:
    for place in (kopf.on, kopf):
        if hasattr(place, form) and (place is kopf.on or form in ("daemon", "timer", "index")):
            setattr(place, form, recording(getattr(place, form)))
