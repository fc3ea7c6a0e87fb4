"""Negotiation: in which form the client wants its answer, and in which form it sends its body."""

from __future__ import annotations

from typing import Literal

import msgspec

from ostinato.api.errors import NotAcceptable, UnsupportedMediaType
from ostinato.api.status import Status, StatusDetails

Media = Literal["json", "yaml", "protobuf"]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_MEDIA: dict[str, Media] = {JSON: "json", YAML: "yaml", PROTOBUF: "protobuf"}
_TYPES = {media: name for name, media in _MEDIA.items()}
BUILTIN = (JSON, YAML, PROTOBUF)
CUSTOM = (JSON, YAML)


class Form(msgspec.Struct, frozen=True):
    """The form of an answer."""

    media: Media = "json"
    convert: str = ""  # "Table", "PartialObjectMetadata", "PartialObjectMetadataList"; "": as it is
    version: str = "v1"  # of meta.k8s.io, for `convert`
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return _TYPES[self.media]


PLAIN = Form()


class _Clause(msgspec.Struct):
    media: str
    parameters: dict[str, str]
    quality: float


def _clauses(accept: str) -> list[_Clause]:
    found = []
    for text in accept.split(","):
        media, *rest = (part.strip() for part in text.split(";"))
        if not media:
            continue
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        found.append(_Clause(media, parameters, quality))
    found.sort(key=lambda clause: -clause.quality)  # stable: the client's order among equals
    return found


def form_of(
    accept: str, convertible: tuple[str, ...] = (), *, supported: tuple[str, ...] = BUILTIN, stream: bool = False
) -> Form:
    """The first form of an Accept header that can be given; NotAcceptable if there is none.

    JSON is what is stored, so a client that takes protobuf and JSON gets JSON.
    """
    if not accept or accept in ("*/*", JSON):
        return PLAIN
    protobuf: Form | None = None
    known = False  # some clause names a media type that there is
    for clause in _clauses(accept):
        form = _meet(clause, convertible, supported)
        known = known or clause.media in ("*/*", "application/*") or clause.media in supported
        if form is None:
            continue
        if form.media == "protobuf":
            protobuf = protobuf or form
            continue
        return form
    if protobuf is not None:
        return protobuf
    if known:
        raise NotAcceptable.of(supported)
    names = [*supported]
    if stream:
        names += [f"{name};stream=watch" for name in supported if name != YAML]
    message = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(names)
    raise NotAcceptable(Status(message=message, reason="NotAcceptable", details=StatusDetails(), code=406))


def _meet(clause: _Clause, convertible: tuple[str, ...], supported: tuple[str, ...]) -> Form | None:
    media = JSON if clause.media in ("*/*", "application/*") else clause.media
    if media not in supported:
        return None
    parameters = clause.parameters
    convert = parameters.get("as", "")
    version = parameters.get("v", "")
    if convert:
        if parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1") or convert not in convertible:
            return None
    elif parameters.get("g") or version:
        return None
    return Form(_MEDIA[media], convert, version or "v1", parameters.get("pretty") == "1")


def body_media(content_type: str, *, supported: tuple[str, ...] = BUILTIN) -> Media:
    """The form of a body; UnsupportedMediaType if it cannot be read. No content type is JSON."""
    if not content_type:
        return "json"
    media = content_type.partition(";")[0].strip().lower()
    if media not in supported:
        raise UnsupportedMediaType.of(supported)
    return _MEDIA[media]
