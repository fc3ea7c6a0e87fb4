"""The writes of a run by resourceVersion: from the log if it can be observed, else from what clients saw of them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from typing import NamedTuple

from tests.faults.history.records import OK, UNKNOWN, History, Operation, group_of
from tests.faults.history.violation import Violation


class Commit(NamedTuple):
    version: int
    key: str
    value: int  # 0: deleted
    seen: object  # the first record that shows it


class Truth:
    """Raises a Violation of S3 or S4 if one resourceVersion has two writes, or one write has two resourceVersions."""

    def __init__(self, history: History) -> None:
        self.by_version: dict[int, Commit] = {}
        self.versions: dict[int, int] = {}  # of values
        self._of_key: dict[str, list[int]] = {}  # resourceVersions of a key's writes, in order
        self.is_exact = history.is_exact
        self._sealed = False  # whatever is not known by now was never durable
        self._unplaced: set[str] = set()  # keys with deletions whose resourceVersion was not seen
        self._created = {each.value for each in history.operations if each.kind == "create"}
        for version, (key, value) in history.commits.items():
            self._add(Commit(version, key, value, f"log: resourceVersion {version} of {key} is value {value}"))
        self._sealed = history.is_exact
        for operation in history.operations:
            self._add_operation(operation)
        for stream in history.streams:
            for frame in stream.frames:
                if frame.key and (frame.type != "DELETED" or stream.group is None):
                    value = 0 if frame.type == "DELETED" else frame.value
                    self._add(Commit(frame.version, frame.key, value, f"{stream}: {frame}"))
        self.all = sorted(self.by_version)
        if not self.is_exact:
            self._find_unplaced(history)

    def _add_operation(self, operation: Operation) -> None:
        if operation.outcome != OK:
            return
        if operation.kind in ("create", "update", "get") and operation.value:
            self._add(Commit(operation.version, operation.key, operation.value, operation))
        elif operation.kind == "list":
            for key, (version, value) in operation.items.items():
                self._add(Commit(version, key, value, operation))

    def _add(self, commit: Commit) -> None:
        known = self.by_version.get(commit.version)
        if known is not None:
            if (known.key, known.value) != (commit.key, commit.value):
                what = f"resourceVersion {commit.version} belongs to two writes"
                raise Violation("S3", commit.key, what, [known.seen, commit.seen])
            return
        if commit.value:
            first = self.versions.setdefault(commit.value, commit.version)
            if first != commit.version:
                what = f"the write of value {commit.value} has the resourceVersions {first} and {commit.version}"
                raise Violation("S4", commit.key, what, [self.by_version[first].seen, commit.seen])
        if self._sealed:
            what = f"a client saw resourceVersion {commit.version}, which is not in the log"
            raise Violation("S1", commit.key, what, [commit.seen])
        self.by_version[commit.version] = commit
        insort(self._of_key.setdefault(commit.key, []), commit.version)

    def _find_unplaced(self, history: History) -> None:
        deletions: dict[str, int] = {}
        for operation in history.operations:
            if operation.kind == "delete" and operation.outcome in (OK, UNKNOWN):
                deletions[operation.key] = deletions.get(operation.key, 0) + 1
        for commit in self.by_version.values():
            if not commit.value and commit.key in deletions:
                deletions[commit.key] -= 1
        self._unplaced = {key for key, count in deletions.items() if count > 0}

    def at(self, key: str, version: int) -> Commit | None:
        """The newest write of a key up to a resourceVersion."""
        versions = self._of_key.get(key, ())
        place = bisect_right(versions, version)
        return self.by_version[versions[place - 1]] if place else None

    def may_be_absent(self, key: str) -> bool:
        """Whether the key has deletions of unknown resourceVersions."""
        return key in self._unplaced

    def state(self, version: int, prefix: str = "", group: int | None = None) -> dict[str, Commit]:
        """The objects at a resourceVersion."""
        found = {}
        for key in self._of_key:
            if key.startswith(prefix):
                commit = self.at(key, version)
                if commit is not None and commit.value and group in (None, group_of(commit.value)):
                    found[key] = commit
        return found

    def between(
        self, after: int, last: float, prefix: str, group: int | None
    ) -> Iterator[tuple[str, Commit, Commit | None]]:
        """The events that a watch delivers: type, write, and the write before it."""

        def selects(commit: Commit | None) -> bool:
            return bool(commit and commit.value and group in (None, group_of(commit.value)))

        for version in self.all[bisect_right(self.all, after) :]:
            if version > last:
                return
            commit = self.by_version[version]
            if not commit.key.startswith(prefix):
                continue
            before = self.at(commit.key, version - 1)
            if commit.value in self._created:
                before = None  # there was a deletion, if its resourceVersion is known or not
            is_in, was_in = selects(commit), selects(before)
            if is_in or was_in:
                yield ("MODIFIED" if is_in and was_in else "ADDED" if is_in else "DELETED"), commit, before
