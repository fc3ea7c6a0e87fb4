"""Stores of servers that are started for tests: `--store memory` (default), `sqlite` or `etcd`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.etcd_cluster import EtcdCluster

KINDS = ("memory", "sqlite", "etcd")


class Stores:
    """Options of `ostinato apiserver` and `ostinato up`: each server has a store of its own."""

    def __init__(self, kind: str, etcd: EtcdCluster | None) -> None:
        self.kind = kind
        self._etcd = etcd
        self._numbers = count(1)

    @classmethod
    @contextmanager
    def of_kind(cls, kind: str, place: Path) -> Iterator[Stores]:
        """`place`: directory for the files of an etcd, whose servers have keys with prefixes of their own."""
        if kind != "etcd":
            yield cls(kind, None)
            return
        with EtcdCluster.start(place) as etcd:
            etcd.etcdctl("put", "first", "")
            etcd.etcdctl("compact", "2")  # revision 1 was compacted in the etcd of the recordings, too
            yield cls(kind, etcd)

    def options(self, place: Path) -> Sequence[str]:
        """The options of another server, whose files are in a place."""
        if self._etcd is not None:
            return ["--store", f"{self._etcd.url}/server-{next(self._numbers)}"]
        return ["--store", "memory" if self.kind == "memory" else f"sqlite:{place / 'objects.db'}"]
