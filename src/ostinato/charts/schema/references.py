"""References within a schema: pointers, anchors and ids; and its patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag


class References:
    """Finds the schemas that a document names."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._named: dict[str, Any] = {}
        for schema in _schemas(document):
            for keyword in ("$id", "id"):
                if isinstance(schema.get(keyword), str):
                    self._named.setdefault(schema[keyword].removesuffix("#"), schema)
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    self._named.setdefault(f"#{schema[keyword]}", schema)

    def resolve(self, reference: str) -> tuple[bool, Any]:
        """Return whether the reference is to this document, and its schema. Raises ValueError if there is none."""
        if reference in self._named:
            return True, self._named[reference]
        address, fragment = urldefrag(reference)
        if address:
            found = self._named.get(address)
            if found is None and not any(address == name.rpartition("/")[2] for name in self._named):
                return False, None
            start = found or next(each for name, each in self._named.items() if name.rpartition("/")[2] == address)
        else:
            start = self._document
        for key in unquote(fragment).split("/")[1:] if fragment else []:
            name = key.replace("~1", "/").replace("~0", "~")
            try:
                start = start[int(name)] if isinstance(start, list) else start[name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise ValueError(f"$ref {reference!r} names no schema") from None
        return True, start


def compiled_pattern(text: str) -> Any:
    """Return a pattern with a `search` method. Raises ValueError."""
    try:
        from ostinato.api.text import patterns  # noqa: PLC0415 - google-re2 is optional
    except ImportError:
        raise ValueError("patterns need google-re2: pip install 'ostinato[charts]'") from None
    problem = patterns.pattern_problem(text)
    if problem:
        raise ValueError(problem)
    return patterns.pattern(text)


def _schemas(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
