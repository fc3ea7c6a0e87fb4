"""Reference pages of the public modules, from their docstrings: names in `__all__`, or those that a module defines.

Docstrings are Markdown. Signatures are those of `inspect`, with the annotations as they are written.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

# What a program imports. The other packages are parts of the server and of the control plane.
MODULES = (
    "ostinato",
    "ostinato.controllers",
    "ostinato.manager",
    "ostinato.client",
    "ostinato.client.config.config",
    "ostinato.cache",
    "ostinato.queue",
    "ostinato.testing",
    "ostinato.webhook",
    "ostinato.crd",
    "ostinato.packaging",
    "ostinato.charts",
    "ostinato.gotemplate",
    "ostinato.metrics",
    "ostinato.world",
    "ostinato.api.meta",
    "ostinato.api.object",
    "ostinato.api.struct",
    "ostinato.api.markers",
    "ostinato.api.errors",
    "ostinato.api.gvk",
    "ostinato.api.quantity",
    "ostinato.api.owners",
    "ostinato.api.codec",
    "ostinato.api.patch",
    "ostinato.api.selectors.labels",
    "ostinato.api.selectors.fields",
    "ostinato.api.validation.field_errors",
    "ostinato.kinds",
)


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Return the public names of a module: `__all__`, or the classes and functions that it defines."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    for name in sorted(names, key=str.lower):
        if not name.startswith("_"):
            yield name, getattr(module, name)


def page_name(module: str) -> str:
    return f"reference/python/{module}.md"


def module_page(name: str) -> str:
    """Return the page of a module."""
    module = import_module(name)
    parts = [f"# `{name}`\n", _docstring(module)]
    for each, value in public(module):
        parts.append(_described(each, value, 2))
    return "\n".join(parts)


def error_classes() -> dict[str, type[BaseException]]:
    """Return the exceptions of the public modules, each with the shortest name under which it is imported."""
    found: dict[type[BaseException], str] = {}
    for module in MODULES:
        for name, value in public(import_module(module)):
            path = f"{module}.{name}"
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            if is_error and len(path) < len(found.get(value, "x" * 99)):
                found[value] = path
    return {name: value for value, name in sorted(found.items(), key=lambda item: item[1].lower())}


def _described(name: str, value: Any, level: int) -> str:
    heading = "#" * level
    if inspect.isclass(value):
        return _class(name, value, level)
    if callable(value):
        text = _docstring(value) if inspect.isroutine(value) else f"A `{type(value).__name__}`.\n\n"
        return f"{heading} `{name}`\n\n{_signature(name, value)}{text}"
    return f"{heading} `{name}`\n\n{_value(value)}"


def _class(name: str, value: type, level: int) -> str:
    bases = ", ".join(each.__name__ for each in value.__bases__ if each is not object)
    head = f"{'#' * level} `{name}`\n\n" + (f"Subclass of `{bases}`.\n\n" if bases else "")
    parts = [head, _signature(name, value), _docstring(value), _fields(value)]
    for member, method in _methods(value):
        text = _docstring(method)
        if text:
            parts.append(f"{'#' * (level + 1)} `{name}.{member}`\n\n{_signature(member, method)}{text}")
    return "".join(parts)


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    for member, raw in vars(value).items():
        method = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
        method = method.fget if isinstance(method, property) else method
        if not member.startswith("_") and inspect.isfunction(method):
            yield member, method


def _fields(value: type) -> str:
    annotations = [(name, text) for name, text in vars(value).get("__annotations__", {}).items() if name[0] != "_"]
    if not annotations:
        return ""
    rows = "".join(f"| `{name}` | `{_escaped(annotation_text(text))}` |\n" for name, text in annotations)
    return f"| field | type |\n|---|---|\n{rows}\n"


def _signature(name: str, value: Any) -> str:
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    signature = re.sub(r" at 0x[0-9a-f]+", "", signature)
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", _plain(signature)).replace("<object object>", "…")
    line = f"{name}{signature}"
    if len(line) > 100:
        line = re.sub(r", (?=[*\w]+(:|=|,|\)|$))", ",\n    ", line)
    return f"```text\n{line}\n```\n\n"


def _docstring(value: Any) -> str:
    text = inspect.cleandoc(value.__doc__) if getattr(value, "__doc__", None) else ""
    if inspect.isclass(value) and "__doc__" not in vars(value):
        text = ""
    if text.startswith(f"{getattr(value, '__name__', '')}("):
        return ""  # made by dataclasses
    return f"{_with_code_blocks(text)}\n\n" if text else ""


def _with_code_blocks(text: str) -> str:
    """Return Markdown in which an indented example is a block of text, and `<x>` is not HTML."""
    made: list[str] = []
    block: list[str] = []
    for line in [*text.splitlines(), "."]:
        if line.startswith("    ") and (block or not made or not made[-1].lstrip().startswith(("-", "|"))):
            block.append(line)
            continue
        if block and not line.strip():
            block.append("")
            continue
        if block:
            made += ["```python", *textwrap.dedent("\n".join(block)).rstrip().splitlines(), "```", ""]
            block = []
        made.append(line)
    return "\n".join(made[:-1]).rstrip()


def _value(value: Any) -> str:
    text = repr(value)
    return f"`{_escaped(text)}`\n\n" if len(text) < 200 and " at 0x" not in text else f"A `{type(value).__name__}`.\n\n"


def _plain(text: str) -> str:
    """Return annotations without forward references and without the modules of names."""
    text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", text)
    return re.sub(r"\b(?:ostinato|typing|collections)(?:\.\w+)*\.(?=\w)", "", text)


def annotation_text(annotation: Any) -> str:
    """Return an annotation as it would be written, without the modules of its names."""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    return annotation if isinstance(annotation, str) else _plain(str(annotation))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
