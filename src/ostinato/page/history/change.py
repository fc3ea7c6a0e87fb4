"""A change of an object, as it was watched: both states as bytes, decoded when it is shown.

A change that is kept for long is packed: both states are compressed in one stream, against an object of the same kind.
"""

from __future__ import annotations

import zlib
from typing import Any, Final, Literal

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.page.facts import Difference, Ref, Verb, Write
from ostinato.page.history.authors import Author, author_of
from ostinato.page.history.content import Content, content_of
from ostinato.page.history.diff import differences, summary

Json = dict[str, Any]
Type = Literal["create", "update", "delete"]

OVERHEAD: Final = 700  # approximate bytes of a change beside the two states
_MAX_DIGITS: Final = 18  # of a resourceVersion
_DELETION: Final = "deletion requested"
_GRACE: Final = b'"deletionGracePeriodSeconds":'
_NO_GRACE: Final = _GRACE + b"0"
_NODE_NAME: Final = b'"nodeName":"'  # of a Pod only its own node has this name


class Change:
    """
    - `run`, `controller`: the run that made it, once it is known.
    - `ordinal`: the number that the resourceVersion is; 0 if it is none.

    A server that is asked to may merge successive writes of an object (`Ostinato-Watch-Interval`). Such a change has
    the author of the first of them: who created the object, or requested its deletion.
    """

    __slots__ = (
        "_after",
        "_before",
        "_claimed",
        "_dictionary",
        "_is_deleting",
        "_packed",
        "_shown",
        "_since",
        "at",
        "completes_deletion",
        "controller",
        "gvk",
        "is_deletion",
        "key",
        "number",
        "ordinal",
        "owners",
        "resource_version",
        "run",
        "size",
        "type",
        "uid",
    )

    def __init__(
        self, number: int, at: float, change: Type, before: Entry | None, after: Entry, last: Change | None = None
    ) -> None:
        """`last`: the change of the object before this one, if it is known. Defaults to None."""
        self.number = number
        self.at = at
        self.type = change
        self.gvk: GroupVersionKind = after.collection.info.gvk
        self.key: NamespacedName = after.key
        self.uid = after.uid
        self.owners: tuple[str, ...] = after.owner_uids
        self.resource_version = after.resource_version
        self.is_deletion = change == "delete" or (
            change == "update" and after.is_being_deleted and before is not None and not before.is_being_deleted
        )
        self._is_deleting = after.is_being_deleted
        if last is not None and last.uid != after.uid:
            last = None
        # Which was requested before, unless that was merged with this change.
        self.completes_deletion = change == "delete" and after.is_being_deleted and (last is None or last._is_deleting)
        self.ordinal = ordinal_of(after.resource_version)
        if before is not None:
            self._since = ordinal_of(before.resource_version)
        elif change == "create":
            self._since = 0
        else:
            self._since = self.ordinal if last is None else last.ordinal
        self._claimed = 0  # ordinal of the write that the run reported; 0: unknown
        self.run = ""
        self.controller = ""
        self._before = before
        self._after: Entry | None = after
        self._packed = b""
        self._dictionary = b""
        self._shown: _Shown | None = None
        self.size = OVERHEAD + _size(after) + (0 if before is None else _size(before))

    @property
    def id(self) -> str:
        return str(self.number)

    @property
    def ref(self) -> Ref:
        return Ref.of(self.gvk, self.key, self.uid)

    @property
    def is_packed(self) -> bool:
        return self._after is None

    def states(self) -> tuple[Json | None, Json]:
        """Decode the states before and after the change. That after a removal is the last known one."""
        if self._after is not None:
            return None if self._before is None else self._before.dict(), self._after.dict()
        data = zlib.decompressobj(-15, self._dictionary).decompress(self._packed)
        before, after = msgspec.json.decode(data)
        return before, after

    def binds(self) -> bool:
        """Whether the change set the node of a Pod."""
        if self.gvk.kind != "Pod" or self.type != "update":
            return False
        if self._before is not None and self._after is not None:  # most have a node before and after: not decoded
            return _NODE_NAME in self._after.content and _NODE_NAME not in self._before.content
        before, after = self.states()
        return bool((after.get("spec") or {}).get("nodeName")) and not ((before or {}).get("spec") or {}).get(
            "nodeName"
        )

    def shortens_grace(self) -> bool:
        """Whether the change is the first of two by which an object is removed: its grace period became 0."""
        if self.type != "update":
            return False
        if self._before is not None and self._after is not None:
            before, after = self._before.metadata_bytes, self._after.metadata_bytes
            return _NO_GRACE in after and _GRACE in before and _NO_GRACE not in before
        old, new = ((each or {}).get("metadata") or {} for each in self.states())
        return bool(old.get("deletionGracePeriodSeconds")) and new.get("deletionGracePeriodSeconds") == 0

    def merges(self, ordinal: int) -> bool:
        """Whether a server may have merged the write with this ordinal with later ones to this change."""
        return self._since < ordinal < self.ordinal

    def is_known_from(self, ordinal: int) -> bool:
        """Whether its author is that of the write with this ordinal, or of an earlier one. 0: unknown."""
        return bool(self.run) and (not ordinal or 0 < self._claimed <= ordinal)

    def made_by(self, run: str, controller: str, ordinal: int = 0) -> None:
        """`ordinal`: of the write, if it is known."""
        self.run, self.controller, self._claimed = run, controller, ordinal

    def pack(self, dictionary: bytes) -> int:
        """Compress the states; return the number of bytes that this freed."""
        compressor = zlib.compressobj(1, zlib.DEFLATED, -15, zdict=dictionary)
        self._packed = compressor.compress(msgspec.json.encode(self.states())) + compressor.flush()
        self._dictionary = dictionary
        self._before = self._after = None
        before, self.size = self.size, OVERHEAD + len(self._packed)
        return before - self.size

    def shown(self) -> Write:
        """Return the change as a fact, without its differences. Decodes the states the first time."""
        return self._write(self._seen)

    def outlined(self) -> Write:
        """Return the change as a fact without decoding it: without summary and field manager; a status is an update."""
        if self._shown is not None:
            return self._write(self._shown)
        verb: Verb = "delete" if self.is_deletion else self.type
        return self._write(_Shown(verb, Author(), ""))

    @property
    def content(self) -> Content:
        """What the change changed. Decodes the states the first time."""
        return self._seen.content

    @property
    def _seen(self) -> _Shown:
        if self._shown is None:
            self._shown, _ = self._decoded()
        return self._shown

    def with_diff(self) -> Write:
        """Return the change as a fact, with its differences."""
        self._shown, found = self._decoded()
        return msgspec.structs.replace(self._write(self._shown), diff=found)

    def _write(self, seen: _Shown) -> Write:
        return Write(
            id=self.id,
            at=self.at,
            ref=self.ref,
            verb=seen.verb,
            author=self.controller or seen.author.manager or "unknown",
            manager=seen.author.manager,
            resource_version=self.resource_version,
            reconcile=self.run or None,
            summary=seen.summary,
        )

    def _decoded(self) -> tuple[_Shown, list[Difference]]:
        before, after = self.states()
        if self.type == "delete":
            return _Shown("delete", Author(), "removed"), []
        found = differences(before, after)
        content = content_of(before, after, found)
        if self.type == "create":
            return _Shown("create", author_of(None, after), "created", content), found
        author = author_of(before, after, [each.path for each in found])
        if self.is_deletion:
            return _Shown("delete", author, _DELETION, content), found
        return _Shown("status" if content.is_status else "update", author, summary(found), content), found


class _Shown(msgspec.Struct, frozen=True):
    verb: Verb
    author: Author
    summary: str
    content: Content = Content()


def ordinal_of(resource_version: str) -> int:
    """Return the number that a resourceVersion is; 0 if it is none."""
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) <= _MAX_DIGITS else 0


def _size(entry: Entry) -> int:
    return len(entry.suffix) + len(entry.metadata_bytes)
