"""The stored APIServices, parsed: which group versions extension servers serve, and the priorities of all.

An APIService with a Service takes its group version from resources that this server has itself. The core group and
apiregistration.k8s.io cannot be taken: this server could not be repaired through its own API.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.records import Entry, Event

GROUP: Final = "apiregistration.k8s.io"
AVAILABLE: Final = "Available"
MANAGED_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
_OWN: Final = frozenset({"", GROUP})
_REMEMBERED: Final = 256  # APIServices

GroupVersion = tuple[str, str]


class Priority(NamedTuple):
    """Larger values are preferred."""

    group: int
    version: int


class ServiceName(NamedTuple):
    """Key of a Service."""

    namespace: str
    name: str


class ApiService(msgspec.Struct, frozen=True, eq=False):
    """One APIService.

    - `service`, `port`: where it is served; None for this server's own.
    - `bundle`: CA certificates in PEM; empty for the system's.
    - `insecure`: certificates are not verified.
    - `available`, `reason`: of the condition.
    - `managed`: label of those that the server creates itself: "onstart" or "true"; "" for others.
    """

    name: str
    uid: str
    group: str
    version: str
    priority: Priority
    service: ServiceName | None = None
    port: int = 443
    bundle: bytes = b""
    insecure: bool = False
    available: bool = False
    reason: str = ""
    managed: str = ""

    @classmethod
    def of(cls, obj: Json) -> ApiService:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        service = spec.get("service")
        try:
            bundle = base64.b64decode(spec.get("caBundle") or "")
        except (binascii.Error, ValueError):
            bundle = b"invalid"
        condition = available_condition(obj) or {}
        return cls(
            meta["name"],
            meta.get("uid", ""),
            spec.get("group", ""),
            spec.get("version", ""),
            Priority(spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)),
            None if service is None else ServiceName(service.get("namespace", ""), service.get("name", "")),
            443 if service is None else service.get("port", 443),
            bundle,
            bool(spec.get("insecureSkipTLSVerify")),
            condition.get("status") == "True",
            condition.get("reason", ""),
            (meta.get("labels") or {}).get(MANAGED_LABEL, ""),
        )

    @property
    def key(self) -> GroupVersion:
        return self.group, self.version

    @property
    def is_remote(self) -> bool:
        return self.service is not None and self.group not in _OWN

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    @property
    def server_name(self) -> str:
        """The name that the certificate of the extension server must have."""
        assert self.service is not None, "remote"
        return f"{self.service.name}.{self.service.namespace}.svc"


@lru_cache(_REMEMBERED)
def _read(data: bytes) -> ApiService:
    """Read a stored APIService. The same ones are read by every server of a process, such as those of tests."""
    return ApiService.of(msgspec.json.decode(data))


def available_condition(obj: Json) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == AVAILABLE), None)


class ApiServices:
    """All APIServices, kept up to date with the store."""

    def __init__(self, registry: Registry) -> None:
        resource = registry.get(GROUP, "v1", "apiservices")
        assert resource is not None
        assert resource.collection is not None
        self.resource: Resource = resource
        self._collection = resource.collection
        self._known: dict[str, ApiService] = {}  # by name
        self._remote: dict[GroupVersion, ApiService] = {}
        self._listeners: list[Callable[[ApiService | None, ApiService | None], None]] = []
        self.generation = 0  # incremented on each change
        self._collection.hub.listen(self._on_event)

    def load(self) -> None:
        """Read what the store had before this server listened."""
        for entry in list(self._collection.entries.values()):
            self._set(entry.key, entry)

    def listen(self, listener: Callable[[ApiService | None, ApiService | None], None]) -> None:
        """Call a function for each change, with the APIService before and after."""
        self._listeners.append(listener)

    @property
    def remote(self) -> Mapping[GroupVersion, ApiService]:
        """Those of extension servers."""
        return self._remote

    @property
    def priorities(self) -> Mapping[GroupVersion, Priority]:
        return {each.key: each.priority for each in self._known.values()}

    def get(self, name: str) -> ApiService | None:
        return self._known.get(name)

    def entry(self, name: str) -> Entry | None:
        """The newest stored state."""
        return self._collection.newest(name)

    def __iter__(self) -> Iterator[ApiService]:
        return iter(list(self._known.values()))

    def _on_event(self, event: Event) -> None:
        self._set(event.key, event.entry)

    def _set(self, name: str, entry: Entry | None) -> None:
        before = self._known.pop(name, None)
        if before is not None:
            self._remote.pop(before.key, None)
        after = None if entry is None else _read(entry.data)
        if after is not None:
            self._known[name] = after
            if after.is_remote:
                self._remote[after.key] = after
        self.generation += 1
        for listener in self._listeners:
            listener(before, after)
