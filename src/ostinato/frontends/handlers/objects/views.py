"""Views: read-only mappings of an object and of its parts, as handlers receive them.

`spec["size"]`, `spec.get("size", 1)`, `body.metadata.name`, `meta.labels`. A part that the object does not have is an
empty mapping, and a missing key raises KeyError, as with a dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]


class View(Mapping[str, Any]):
    """A read-only view of a dict."""

    __slots__ = ("_content",)

    def __init__(self, content: Mapping[str, Any] | None = None) -> None:
        self._content: Mapping[str, Any] = content if isinstance(content, Mapping) else {}

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return repr(dict(self._content))


class Spec(View):
    __slots__ = ()


class Status(View):
    __slots__ = ()


class Labels(View):
    __slots__ = ()


class Annotations(View):
    __slots__ = ()


class Meta(View):
    """`metadata`, with its most used fields as attributes."""

    __slots__ = ()

    @property
    def labels(self) -> Labels:
        return Labels(self.get("labels"))

    @property
    def annotations(self) -> Annotations:
        return Annotations(self.get("annotations"))

    @property
    def name(self) -> str | None:
        return self.get("name")

    @property
    def namespace(self) -> str | None:
        return self.get("namespace")

    @property
    def uid(self) -> str | None:
        return self.get("uid")

    @property
    def creation_timestamp(self) -> str | None:
        return self.get("creationTimestamp")

    @property
    def deletion_timestamp(self) -> str | None:
        return self.get("deletionTimestamp")


class Body(View):
    """A whole object."""

    __slots__ = ()

    @property
    def metadata(self) -> Meta:
        return Meta(self.get("metadata"))

    @property
    def meta(self) -> Meta:
        return self.metadata

    @property
    def spec(self) -> Spec:
        return Spec(self.get("spec"))

    @property
    def status(self) -> Status:
        return Status(self.get("status"))


def resolve(content: Any, path: tuple[str, ...], default: Any = None) -> Any:
    """Return the value at a path of keys; `default` if it does not exist."""
    for step in path:
        if not isinstance(content, Mapping) or step not in content:
            return default
        content = content[step]
    return content


def parse_path(field: str | list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the keys of a field path: "spec.size", or a list of keys if some contain dots."""
    if field is None:
        return ()
    if isinstance(field, str):
        steps: tuple[str, ...] = tuple(field.split("."))
    elif isinstance(field, list | tuple) and all(isinstance(each, str) for each in field):
        steps = tuple(field)
    else:
        raise TypeError(f'field: {field!r} is not a field path; write "spec.size" or ["spec", "size"]')
    if not all(steps):
        raise ValueError(f'field: {field!r} has an empty name; write "spec.size" or ["spec", "size"]')
    return steps
