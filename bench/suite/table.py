"""The rows: what is measured beside which peer, in which section, and the goal.

Every ratio says how many times better Ostinato is: rates are divided by the peer's; of times, memory and processor
time the peer's is divided by ours. A goal of "at most 0.4 times the memory" is 2.5.
"""

from __future__ import annotations

from typing import NamedTuple

MORE, LESS = "more", "less"

APISERVER = "kube-apiserver + etcd"
SAME_ETCD = "kube-apiserver on the same etcd"
ONE_WORKER, ONE_PROCESS = "ostinato, one worker", "ostinato, one process"
RUNTIME, KOPF = "controller-runtime", "kopf"
OFFICIAL, CLIENT_GO = "official Python client", "client-go (JSON)"
ENVTEST = "envtest: etcd + kube-apiserver"
KWOK = "Kubernetes + kwok"
KWOK_RAISED = "Kubernetes + kwok, rate limits raised"


class Row(NamedTuple):
    """One line of the table. `goal` is a ratio, `most` the largest value of ours that is good; zero: none."""

    key: str
    section: str
    title: str
    unit: str
    better: str
    peer: str
    goal: float = 0.0
    most: float = 0.0

    @property
    def command(self) -> str:
        return f"python -m bench --only {self.key}"


class Section(NamedTuple):
    """Rows that are measured together. `limit`: seconds after which it is given up."""

    name: str
    title: str
    limit: float


SECTIONS = {
    each.name: each
    for each in (
        Section("apiserver", "API server", 330),
        Section("etcd", "API server on etcd", 200),
        Section("operators", "Operators", 300),
        Section("clients", "Python client and cache", 150),
        Section("startup", "Start-up for tests", 150),
        Section("plane", "Control plane", 2400),
    )
}


def _rows() -> list[Row]:
    def api(key: str, title: str, unit: str, goal: float, better: str = MORE) -> Row:
        return Row(f"api-{key}", "apiserver", title, unit, better, APISERVER, goal)

    def etcd(key: str, title: str, unit: str, goal: float) -> Row:
        return Row(f"etcd-{key}", "etcd", title, unit, MORE, SAME_ETCD, goal)

    def plane(key: str, title: str, unit: str, peer: str, goal: float = 0.0) -> Row:
        return Row(f"plane-{key}", "plane", title, unit, LESS, peer, goal)

    return [
        api("get", "get", "/s", 4.0),
        api("list", "LIST of 1,000, JSON", "MB/s", 8.0),
        api("list-changing", "LIST of 1,000, JSON, 100 change/s", "MB/s", 0.0),
        api("list-protobuf", "LIST of 1,000, protobuf", "MB/s", 0.0),
        api("list-protobuf-changing", "LIST of 1,000, protobuf, 100 change/s", "MB/s", 0.0),
        api("create", "create", "/s", 2.0),
        api("create-pod", "create a Pod of 3 kB", "/s", 2.0),
        api("update", "update", "/s", 1.5),
        api("patch", "merge patch", "/s", 1.5),
        api("apply", "server-side apply", "/s", 1.5),
        api("delete", "delete", "/s", 1.0),
        api("watch", "watch latency, p99", "ms", 1.0, LESS),
        api("memory", "memory after the load", "MB", 2.5, LESS),
        etcd("get", "get", "/s", 4.0),
        etcd("list", "LIST of 1,000, JSON", "MB/s", 4.0),
        etcd("create", "create", "/s", 1.5),
        etcd("update", "update", "/s", 1.5),
        etcd("patch", "merge patch", "/s", 1.5),
        etcd("apply", "server-side apply", "/s", 1.5),
        Row("workers-get", "etcd", "get, two workers", "/s", MORE, ONE_WORKER),
        Row("workers-create", "etcd", "create, two workers", "/s", MORE, ONE_WORKER),
        Row("kopf-rate", "operators", "objects per second", "/s", MORE, KOPF, 5.0),
        Row("kopf-cpu", "operators", "processor time per object", "ms", LESS, KOPF, 3.3),
        Row("kopf-memory", "operators", "peak memory", "MB", LESS, KOPF, 2.0),
        Row("runtime-rate", "operators", "objects per second, 16 workers", "/s", MORE, RUNTIME, 1.0),
        Row("runtime-cpu", "operators", "processor time per object, 16 workers", "ms", LESS, RUNTIME),
        Row("runtime-memory", "operators", "peak memory, 16 workers", "MB", LESS, RUNTIME),
        Row("client-get", "clients", "typed get of a Pod", "/s", MORE, OFFICIAL),
        Row("client-create", "clients", "create a ConfigMap", "/s", MORE, OFFICIAL),
        Row("client-list", "clients", "typed list of 500 Pods", "Pods/s", MORE, OFFICIAL),
        Row("sync-time", "clients", "first sync of 10,000 Pods", "s", LESS, CLIENT_GO, 1.0),
        Row("sync-memory", "clients", "memory of the process, 10,000 Pods", "MB", LESS, CLIENT_GO, 2.8),
        Row("sync-official", "clients", "first sync of 10,000 Pods", "s", LESS, OFFICIAL, 10.0),
        Row("start-time", "startup", "start to ready", "s", LESS, ENVTEST),
        Row("start-cpu", "startup", "processor time of a start", "s", LESS, ENVTEST),
        Row("start-memory", "startup", "memory when ready", "MB", LESS, ENVTEST),
        Row("suite-time", "startup", "thirty tests of an operator", "s", LESS, ENVTEST),
        plane("available", "10,000 Pods on 1,000 nodes available", "s", KWOK, 12.0),
        plane("deleted", "10,000 Pods deleted", "s", KWOK, 5.0),
        plane("memory", "peak memory, 10,000 Pods", "MB", KWOK, 2.5),
        plane("cpu", "processor time, available and deleted", "s", KWOK),
        plane("available-raised", "10,000 Pods on 1,000 nodes available", "s", KWOK_RAISED),
        plane("deleted-raised", "10,000 Pods deleted", "s", KWOK_RAISED),
        plane("memory-raised", "peak memory, 10,000 Pods", "MB", KWOK_RAISED),
        plane("small-available", "1,000 Pods on 100 nodes available", "s", KWOK_RAISED),
        plane("small-deleted", "1,000 Pods deleted", "s", KWOK_RAISED),
        plane("processes-available", "10,000 Pods available, --processes 2", "s", ONE_PROCESS),
        plane("processes-deleted", "10,000 Pods deleted, --processes 2", "s", ONE_PROCESS),
        Row("plane-rest", "plane", "1,000 nodes at rest", "% of a core", LESS, KWOK_RAISED, most=5.0),
    ]


ROWS = {each.key: each for each in _rows()}


def rows_of(section: str) -> list[Row]:
    return [each for each in ROWS.values() if each.section == section]
