"""How a workload reaches a server: the same requests in one process and over HTTPS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

import msgspec

NAMESPACES = ("default", "other")
_PATH = "/api/v1/namespaces/{}/configmaps"
EVERYWHERE = "/api/v1/configmaps"
ENDS_INITIAL = "k8s.io/initial-events-end"


class Lost(Exception):  # noqa: N818
    """The connection ended before the response."""


class Api(Protocol):
    async def call(self, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[int, bytes]:
        """Send a request; raise Lost if there is no response."""

    def stream(self, path: str, query: str, answered: Callable[[int], None]) -> AsyncIterator[bytes]:
        """Open a watch, report its status, and return its bytes as they come; Lost if it breaks."""

    async def available(self) -> None:
        """Wait until a server can be reached."""

    def state(self) -> tuple[int, int] | None:
        """The compacted and the newest resourceVersion of the server, if they can be seen."""


def path_of(key: str) -> str:
    """The path of an object, or of the collection of `namespace/` or of everything."""
    namespace, _, name = key.partition("/")
    if not namespace:
        return EVERYWHERE
    return _PATH.format(namespace) + (f"/{name}" if name else "")


def query(**parameters: object) -> str:
    return urlencode({name: value for name, value in parameters.items() if value not in (None, "")})


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = "0"
    uid: str = ""
    annotations: Mapping[str, str] = {}
    continue_: str = msgspec.field(default="", name="continue")


class Object(msgspec.Struct):
    metadata: Meta = msgspec.field(default_factory=Meta)
    data: Mapping[str, str] = {}
    reason: str = ""
    message: str = ""

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def value(self) -> int:
        return int(self.data.get("value", "0"))

    @property
    def version(self) -> int:
        return int(self.metadata.resource_version or "0")


class Listed(msgspec.Struct):
    metadata: Meta
    items: Sequence[Object] = ()


class Watched(msgspec.Struct):
    type: str
    object: Object


decode_object = msgspec.json.Decoder(Object).decode
decode_list = msgspec.json.Decoder(Listed).decode
decode_event = msgspec.json.Decoder(Watched).decode
