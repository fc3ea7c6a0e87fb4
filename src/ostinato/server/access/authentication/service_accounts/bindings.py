"""Objects that a service account token is bound to, and whether they still exist.

An object that is being deleted invalidates a token one minute after its deletionTimestamp, which is when its grace
period ends: a Pod that shuts down may use its token until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.api.time import Time
from ostinato.server.access.authentication.identity import RefusedToken

if TYPE_CHECKING:
    from ostinato.server.resources.lister import Lister
    from ostinato.server.store.records import Entry

LEEWAY = 60.0  # seconds of clock skew
_INVALIDATED = "service account token has been invalidated"


class Reference(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class Kubernetes(msgspec.Struct, frozen=True):
    """The claim `kubernetes.io`."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: float | None = None


class Bindings:
    def __init__(self, bound: Kubernetes, kinds: Mapping[str, Lister]) -> None:
        namespace = bound.namespace
        self._bound = [_Binding("ServiceAccount", kinds["ServiceAccount"], bound.serviceaccount, namespace)]
        if bound.secret is not None:
            self._bound.append(_Binding("Secret", kinds["Secret"], bound.secret, namespace))
        if bound.pod is not None:
            self._bound.append(_Binding("Pod", kinds["Pod"], bound.pod, namespace))
        elif bound.node is not None:  # the node claim of a Pod's token is informational: the Pod's end revokes it
            self._bound.append(_Binding("Node", kinds["Node"], bound.node, ""))

    def check(self, now: float) -> None:
        """RefusedToken if an object has been deleted or replaced."""
        for binding in self._bound:
            binding.check(now)


class _Binding:
    """One bound object. The check is cached by the store entry, so that each state is decoded once."""

    __slots__ = ("_checked", "_collection", "_key", "_kind", "_reference", "_until", "_where")

    def __init__(self, kind: str, objects: Lister, reference: Reference, namespace: str) -> None:
        self._kind = kind
        self._collection = objects.collection
        self._key = objects.resource.key(namespace, reference.name)
        self._reference = reference
        self._where = f"{namespace}/{reference.name}"
        self._checked: Entry | None = None  # the entry that passed the check
        self._until = float("inf")  # the time until which it passes

    def check(self, now: float) -> None:
        found = self._collection.newest(self._key)
        if found is None or found is not self._checked:
            self._checked = None
            self._until = self._valid_until(found)
            self._checked = found
        if now - LEEWAY > self._until:
            deleted = f"service account {self._where} has been deleted"
            raise RefusedToken(deleted if self._kind == "ServiceAccount" else _INVALIDATED)

    def _valid_until(self, found: Entry | None) -> float:
        """The time from which the object invalidates the token; RefusedToken if it is missing or was recreated."""
        if found is None:
            missing = f"serviceaccounts {quote(self._reference.name)} not found"
            raise RefusedToken(missing if self._kind == "ServiceAccount" else _INVALIDATED)
        if found.uid != self._reference.uid:
            what, claim = _CLAIMS[self._kind]
            raise RefusedToken(f"{what} UID ({found.uid}) does not match {claim} ({self._reference.uid})")
        return deletion_time(found)


def deletion_time(entry: Entry) -> float:
    """The deletionTimestamp of an object, infinity if it is not being deleted."""
    if b'"deletionTimestamp"' not in entry.data:
        return float("inf")
    metadata: dict[str, Any] = msgspec.json.decode(entry.data)["metadata"]
    deleted = metadata.get("deletionTimestamp")
    return Time.parse(deleted).timestamp() if deleted else float("inf")


_CLAIMS = {  # by kind: the noun and the claim in error messages
    "ServiceAccount": ("service account", "claim"),
    "Secret": ("secret", "service account secret ref claim"),
    "Pod": ("pod", "service account pod ref claim"),
    "Node": ("node", "service account node ref claim"),
}
