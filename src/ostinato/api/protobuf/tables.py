"""Tables of protobuf messages: the fields of each message, and their JSON form.

- `protobuf.json`: number, name, type and label of each field, by message name, for Kubernetes v1.36.
- `protobuf_json.json`: the JSON tags of the Go types. `names` are the JSON names that differ, `modes` has a letter per
  field, in the order of numbers:
  - `k` keep: encoded even if zero; null for an empty list or map
  - `o` omitempty: omitted if zero or empty
  - `p` pointer: present if it was sent, even if zero
  - `n` nullable: the same, but null if it was not sent
  - `i` inline: the fields of the message are fields of the outer object

  A message without modes has `p` for all fields.
- `cri.json`, `csi.json`: the messages of the gRPC services that nodes and controllers call, with names that begin with
  their package: `runtime.v1.`, `csi.v1.`, `pluginregistration.`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.text.short_cache import short_cache

MAGIC: Final = b"k8s\x00"  # prefix of envelopes
TYPE_META: Final = "k8s.io.apimachinery.pkg.runtime.TypeMeta"
META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
CRI: Final = "runtime.v1."
CSI: Final = "csi.v1."
PLUGIN_REGISTRATION: Final = "pluginregistration."
_SERVICES: Final = {CRI: "cri.json", CSI: "csi.json", PLUGIN_REGISTRATION: "csi.json"}  # files of gRPC services

_PACKAGES: Final = {  # packages that are not k8s.io.api.<first word of the group>
    "": "k8s.io.api.core",
    "apiextensions.k8s.io": "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
    "internal.apiserver.k8s.io": "k8s.io.api.apiserverinternal",
    "meta.k8s.io": "k8s.io.apimachinery.pkg.apis.meta",
    "metrics.k8s.io": "k8s.io.metrics.pkg.apis.metrics",
}

_EVERYWHERE: Final = frozenset(  # kinds of every group and version
    {
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "ApplyOptions",
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "Status",
        "UpdateOptions",
        "WatchEvent",
    }
)


class Field(NamedTuple):
    number: int
    name: str  # JSON name
    type: str  # scalar type or message name; for maps that of the values
    mode: str
    repeated: bool
    map: bool


@cache
def _facts() -> tuple[dict[str, dict[str, list[str]]], dict[str, str], dict[str, dict[str, str]]]:
    folder = resources.files("ostinato.api").joinpath("data")
    fields = msgspec.json.decode(folder.joinpath("protobuf.json").read_bytes())
    json: dict[str, Any] = msgspec.json.decode(folder.joinpath("protobuf_json.json").read_bytes())
    return fields, json["modes"], json["names"]


def _service_of(message: str) -> str:
    """Return the file of a message of a gRPC service; "" if it is of Kubernetes' API."""
    return next((file for package, file in _SERVICES.items() if message.startswith(package)), "")


@cache
def _messages_of(service: str) -> dict[str, dict[str, list[str]]]:
    data = resources.files("ostinato.api").joinpath("data", service).read_bytes()
    return msgspec.json.decode(data, type=dict[str, dict[str, list[str]]])


def fields_of(message: str) -> tuple[Field, ...]:
    """Return the fields of a message in the order of their numbers."""
    service = _service_of(message)
    fields, modes, names = (_messages_of(service), {}, {}) if service else _facts()
    raw = sorted((int(number), facts) for number, facts in fields[message].items())
    letters = modes.get(message) or "p" * len(raw)
    renamed = names.get(message, {})
    return tuple(
        Field(
            number,
            renamed.get(str(number), name),
            kind.removeprefix("map<string,").removesuffix(">"),
            mode,
            label == "repeated",
            kind.startswith("map<"),
        )
        for (number, (name, kind, label)), mode in zip(raw, letters, strict=True)
    )


def is_wrapper(message: str) -> bool:
    """Whether the message only wraps a list, as protobuf has neither lists nor maps of lists."""
    if _service_of(message):
        return False
    fields, modes, _ = _facts()
    return message not in modes and [name for name, _, _ in fields[message].values()] == ["items"]


@short_cache(4096)  # names are untrusted
def message_of(api_version: str, kind: str) -> str | None:
    """Return the message name of a kind; None if it has no protobuf."""
    fields = _facts()[0]
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or f"k8s.io.api.{group.partition('.')[0]}"
    own = f"{package}.{version}.{kind}"
    if own in fields:
        return own
    return META + kind if kind in _EVERYWHERE else None


def has_protobuf(api_version: str, kind: str) -> bool:
    """Whether objects of this kind can be encoded as protobuf."""
    return message_of(api_version, kind) is not None
