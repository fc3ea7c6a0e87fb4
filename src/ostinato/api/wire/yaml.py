"""YAML, decoded as by Kubernetes: the subset of YAML 1.1 that can be converted to JSON.

- `yes`, `no`, `on`, `off`, `y` and `n` are booleans; `010` is eight; dates are strings.
- Keys become strings: `1: a` is `{"1": "a"}`. A merge key `<<` overrides the keys before it, not those after it.
- Of duplicate keys the last one wins; strict decoding rejects them.
- Aliases are copied; a document that grows excessively by them is rejected. Nesting is limited as in JSON.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from typing import Any, Final

import yaml

from ostinato.api.text.go_format import json_text, plain, quote
from ostinato.api.wire.json import MAX_DEPTH, DecodeError, decode_json
from ostinato.api.wire.yaml_scalars import ScalarError, resolve

_MAX_ALIASED: Final = 100_000  # total nodes from aliases
_TEXT_AS_NODE: Final = 100  # characters that count as one node, as strings are copied too
_PREFIX: Final = "tag:yaml.org,2002:"
_MERGE: Final = object()  # the key `<<`


def decode_yaml(data: bytes | str, *, strict: bool = False) -> Any:
    """Decode the first document; None if there is none. Further documents are ignored."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if raw.lstrip()[:1] == b"{" and not strict:
        try:  # most YAML that clients send is JSON
            return decode_json(raw)
        except DecodeError:
            pass
    return next(_documents(raw, strict=strict), None)


def decode_yaml_documents(data: bytes | str, *, strict: bool = False) -> list[Any]:
    """Decode all documents except empty ones."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    return [document for document in _documents(raw, strict=strict) if document is not None]


def _documents(raw: bytes, *, strict: bool) -> Iterator[Any]:
    try:
        reader: _Reader | None = None
        for event in yaml.parse(raw, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                reader = _Reader(strict=strict)
            elif isinstance(event, yaml.DocumentEndEvent):
                assert reader is not None
                yield reader.finish()
            elif reader is not None and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                reader.take(event)
    except yaml.MarkedYAMLError as error:
        raise DecodeError(_explained(error)) from None
    except yaml.reader.ReaderError as error:
        raise DecodeError(f"yaml: {error.reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DecodeError(f"yaml: {error}") from None


def _explained(error: yaml.MarkedYAMLError) -> str:
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + (1 if isinstance(error, yaml.scanner.ScannerError) else 0)
    elif error.context_mark is not None:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}"


class _Open:
    """An open list or map."""

    __slots__ = ("anchor", "key", "line", "size", "value")

    def __init__(self, value: Any, anchor: str | None, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.line = line
        self.key: Any = None  # of a map: a list with the pending key, else None
        self.size = 1  # number of nodes


class _Reader:
    """Constructs the value of a document from its events."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # value and size; None while open
        self._result: Any = None
        self._nodes = 0
        self._aliased = 0
        self._repeated: list[str] = []

    def finish(self) -> Any:
        if self._repeated:
            raise DecodeError("yaml: unmarshal errors:\n" + "\n".join(self._repeated))
        return self._result

    def take(self, event: yaml.NodeEvent | yaml.CollectionEndEvent) -> None:
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
            size = 1 + len(event.value) // _TEXT_AS_NODE
            if event.anchor is not None:
                self._anchors[event.anchor] = (value, size)
            self._place(value, size, line)
        elif isinstance(event, yaml.AliasEvent):
            value, size = self._alias(event.anchor or "")
            self._place(value, size, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            if ended.anchor is not None:
                self._anchors[ended.anchor] = (ended.value, ended.size)
            self._place(ended.value, ended.size, ended.line)
        else:
            if len(self._open) >= MAX_DEPTH:
                raise DecodeError(f"yaml: exceeded max depth of {MAX_DEPTH}")
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            self._open.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor, line))

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text, tag = event.value, event.tag
        if tag is None and not event.implicit[0]:
            return text  # quoted
        if tag == _PREFIX + "binary":
            try:
                return b64decode(text).decode("utf-8", "replace")
            except (Base64Error, ValueError):
                raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
        if (text == "<<" and tag is None) or tag == _PREFIX + "merge":
            return _MERGE
        try:
            return resolve("" if tag is None else tag.replace(_PREFIX, "!!"), text)
        except ScalarError as error:
            raise DecodeError(str(error)) from None

    def _alias(self, anchor: str) -> tuple[Any, int]:
        if anchor not in self._anchors:
            raise DecodeError(f"yaml: unknown anchor '{anchor}' referenced")
        found = self._anchors[anchor]
        if found is None:
            raise DecodeError(f"yaml: anchor '{anchor}' value contains itself")
        value, size = found
        self._aliased += size
        mostly_aliases = self._aliased > 100 and self._aliased > 0.99 * (self._nodes + self._aliased) > 990
        if mostly_aliases or self._aliased > _MAX_ALIASED:
            raise DecodeError("yaml: document contains excessive aliasing")
        return _copied(value), size

    def _place(self, value: Any, size: int, line: int) -> None:
        """Add a value to the open container, or at the top level."""
        self._nodes += 1
        if not self._open:
            self._result = "<<" if value is _MERGE else value
            self._check_depth(value)
            return
        container = self._open[-1]
        container.size += size
        if isinstance(container.value, list):
            container.value.append("<<" if value is _MERGE else value)
        elif container.key is None:
            container.key = [value]
        else:
            key = container.key[0]
            container.key = None
            if key is _MERGE:
                self._merge(container.value, value, line)
            else:
                self._set(container.value, _key_text(key, value), "<<" if value is _MERGE else value, line)

    def _merge(self, into: dict[str, Any], value: Any, line: int) -> None:
        maps = reversed(value) if isinstance(value, list) else [value]  # the first one wins
        for each in maps:
            if not isinstance(each, dict):
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            for key, item in each.items():
                self._set(into, key, item, line)

    def _set(self, into: dict[str, Any], key: str, value: Any, line: int) -> None:
        if self._strict and key in into:
            self._repeated.append(f"  line {line}: key {quote(key)} already set in map")
            return
        into[key] = value

    def _check_depth(self, value: Any) -> None:
        """Check the depth of the value: nested aliases are deeper than the document."""
        if not self._aliased:
            return
        level = [value]
        for _ in range(MAX_DEPTH + 1):
            level = [child for node in level for child in _children(node)]
            if not level:
                return
        raise DecodeError(f"yaml: exceeded max depth of {MAX_DEPTH}")


def _children(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _copied(value: Any) -> Any:
    """Return a deep copy; iterative, as aliases can be nested deeply."""
    if not isinstance(value, dict | list):
        return value
    top: Any = value.copy()
    waiting = [top]
    while waiting:
        node = waiting.pop()
        places = node.items() if isinstance(node, dict) else enumerate(node)
        for place, child in list(places):
            if isinstance(child, dict | list):
                node[place] = child.copy()
                waiting.append(node[place])
    return top


def _key_text(key: Any, value: Any) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return plain(key)
        case None:
            raise DecodeError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {json_text(value)}")
        case _:
            raise DecodeError("yaml: invalid map key: " + ("map" if isinstance(key, dict) else "sequence"))
