"""Unreadable objects: objects that cannot be decoded as the requested class, for example with a string in an int field.

- A list skips them and returns the rest; with `strict=True` it raises the `ObjectError` of the first.
- Each is logged once per resourceVersion, with object and field, and counted by kind.
- `get` of an unreadable object always raises `ObjectError`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ostinato.api.codec import ObjectError, WrongKind, raw_list_from_json
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ListMeta
from ostinato.api.object import KindInfo
from ostinato.client.views import View

T = TypeVar("T")

_MOST_REMEMBERED: Final = 4096  # objects whose last report is remembered
_logger = logging.getLogger("ostinato.client")


class UnreadableObjects:
    """Reports objects that reads skip. Shared by the clients and caches of a manager."""

    def __init__(self) -> None:
        self._counts: dict[GroupVersionKind, int] = {}
        self._reported: dict[tuple[GroupVersionKind, str], str] = {}  # the resourceVersion of the last report

    @property
    def counts(self) -> Mapping[GroupVersionKind, int]:
        """Number of reports, by kind."""
        return self._counts

    def report(self, gvk: GroupVersionKind, key: str, resource_version: str, error: ObjectError) -> None:
        """Log and count an object, unless it was reported at this resourceVersion."""
        known = (gvk, key)
        if self._reported.pop(known, None) == resource_version:
            self._reported[known] = resource_version  # most recent
            return
        self._reported[known] = resource_version
        if len(self._reported) > _MOST_REMEMBERED:
            del self._reported[next(iter(self._reported))]
        self._counts[gvk] = self._counts.get(gvk, 0) + 1
        _logger.warning(
            "unreadable object skipped object=%r resourceVersion=%s error=%s",
            f"{gvk.kind} {key}",
            resource_version,
            error,
        )

    def report_json(self, gvk: GroupVersionKind, data: bytes, error: ObjectError) -> str:
        """Report an encoded object, and return its resourceVersion."""
        key, resource_version = _identity(data)
        self.report(gvk, key, resource_version, error)
        return resource_version


def read_page(
    view: View[T], data: bytes, info: KindInfo, unreadable: UnreadableObjects | None
) -> tuple[ListMeta, list[T]]:
    """Decode one page of a list without its unreadable objects, which are reported; None raises `ObjectError`."""
    try:
        return view.read_list(data, info)
    except ObjectError:
        if unreadable is None:
            raise
    page = raw_list_from_json(data)
    items: list[T] = []
    for raw in page.items:
        item = bytes(raw)
        try:
            items.append(view.read(item, info))
        except WrongKind:
            raise
        except ObjectError as error:
            unreadable.report_json(info.gvk, item, error)
    return page.metadata, items


def _identity(data: bytes) -> tuple[str, str]:
    """Return key and resourceVersion of an encoded object, as far as they can be read."""
    try:
        metadata: Any = msgspec.json.decode(data)["metadata"]
        parts = [metadata.get("namespace"), metadata.get("name")]
        key = "/".join(part for part in parts if isinstance(part, str) and part)
        return key, str(metadata.get("resourceVersion", ""))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError):
        return "", ""
