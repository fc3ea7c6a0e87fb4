"""Operation: who does what to which object, in one line that is the same in every run."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

import msgspec

from ostinato.server.request import Request
from ostinato.server.request.route import Route

WRITES: Final = ("create", "update", "patch", "apply", "delete", "deletecollection")
READS: Final = ("get", "list", "watch")
_APPLY: Final = "application/apply-patch"
_JSON: Final = (b"{", b" ", b"\n")


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decoder: Final = msgspec.json.Decoder(_Named)


class Operation(msgspec.Struct, frozen=True):
    """A request to a resource. A name that the server generates is its prefix and `*`."""

    verb: str
    group: str
    resource: str  # plural
    subresource: str
    namespace: str
    name: str
    user: str = ""
    stale: bool = False  # a read that any past state answers: resourceVersion=0
    bookmarks: bool = False  # a watch that accepts bookmarks

    @property
    def is_write(self) -> bool:
        return self.verb in WRITES

    @property
    def kind(self) -> str:
        """Resource, group and subresource, as RBAC and kubectl write them: `deployments.apps/status`."""
        text = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{text}/{self.subresource}" if self.subresource else text

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.namespace or self.name

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.key}".rstrip()


def operation_of(request: Request, route: Route, body: bytes) -> Operation:
    """Describe a request. `body`: of a create, for the name of the object."""
    verb, name = route.verb, route.name
    if verb == "patch" and request.headers.get("content-type", "").startswith(_APPLY):
        verb = "apply"
    if verb == "create" and not name:
        name = _name_in(body)
    peer = request.user.name if request.user is not None else request.peer.name if request.peer is not None else ""
    return Operation(
        verb,
        route.group,
        route.resource,
        route.subresource,
        route.namespace,
        name,
        peer,
        stale=_is_stale(request),
        bookmarks="allowWatchBookmarks=true" in request.query_string,
    )


def _name_in(body: bytes) -> str:
    if not body.startswith(_JSON):  # protobuf, or nothing
        return ""
    try:
        metadata = _decoder.decode(body).metadata
    except msgspec.DecodeError:
        return ""
    return metadata.name or (f"{metadata.generate_name}*" if metadata.generate_name else "")


def _is_stale(request: Request) -> bool:
    query = request.query_string
    return "resourceVersion=0" in query and parse_qs(query).get("resourceVersion") == ["0"]
