"""Content negotiation: media types of request bodies and responses.

Clauses of an Accept header are tried by quality, then by position; a clause that cannot be satisfied is skipped. For
built-in kinds kube-apiserver negotiates twice: its router considers media types only, then the resource handler also
considers their parameters; each has its own error message.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec

from ostinato.api.errors import BadRequest, NotAcceptable, UnsupportedMediaType
from ostinato.api.status import Status, StatusDetails
from ostinato.api.validation.field_errors import FieldError, Path

if TYPE_CHECKING:
    from ostinato.server.request import Request
    from ostinato.server.resources.resource import Resource

Media = Literal["json", "yaml", "protobuf"]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TYPES = (JSON, YAML, PROTOBUF)
_MEDIA: dict[str, Media] = {JSON: "json", YAML: "yaml", PROTOBUF: "protobuf"}
_NAMES = {media: name for name, media in _MEDIA.items()}
_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_PARTIAL = ("PartialObjectMetadata", "PartialObjectMetadataList")
_INTERACTIVE_AGENTS = ("curl", "Wget", "Mozilla/5.0")  # user agents of interactive clients, which get indented JSON


class Form(msgspec.Struct, frozen=True):
    """The form of a response."""

    media: Media = "json"
    convert: str = ""  # "Table", "PartialObjectMetadata", "PartialObjectMetadataList"; "": unconverted
    version: str = "v1"  # of meta.k8s.io, for `convert`
    pretty: bool = False  # indented, if the media type supports it
    include: str = "Metadata"  # the part of its object that a Table row includes: "None", "Metadata", "Object"

    @property
    def content_type(self) -> str:
        return _NAMES[self.media]


PLAIN = Form()
_PLAIN_ACCEPTS = frozenset({"", "*/*", JSON})
_PRETTY = Form(pretty=True)


class Clause(msgspec.Struct, frozen=True):
    media: str
    quality: float
    parameters: dict[str, str]


class _Offer(msgspec.Struct, frozen=True):
    """The forms that a resource supports."""

    unconverted: tuple[str, ...] = TYPES  # media types of unconverted objects
    table: bool = False
    partial: bool = False
    routed: bool = False  # the router negotiates first
    streams: bool = False  # the router allows watch media types on this path


def form_of(request: Request, resource: Resource, *, watchable: bool = False) -> Form:
    """The form of the response to a resource request; NotAcceptable if no clause of its Accept can be satisfied."""
    headers = request.headers
    accept = headers.get("accept", "")
    if accept in _PLAIN_ACCEPTS:
        if not request.query_string and not headers.get("user-agent", "").startswith(_INTERACTIVE_AGENTS):
            return PLAIN  # as for nearly every request
        return _PRETTY if _is_interactive(request) else PLAIN
    pretty = _is_interactive(request)
    custom = resource.custom
    offer = _Offer(
        unconverted=(JSON, YAML) if custom else TYPES,
        table=resource.row is not None,
        partial=True,
        routed=not custom,
        streams=watchable,
    )
    form = _negotiated(accept, offer)
    if form.convert == "Table":
        form = msgspec.structs.replace(form, include=_include(request))
    return msgspec.structs.replace(form, pretty=True) if pretty else form


def status_form(request: Request) -> Form:
    """The form of an error: never converted; indented JSON if no clause can be satisfied."""
    accept = request.headers.get("accept", "")
    if accept in _PLAIN_ACCEPTS:
        return _PRETTY if _is_interactive(request) else PLAIN
    try:
        form = _negotiated(accept, _ERRORS)
    except NotAcceptable:
        return _PRETTY
    return msgspec.structs.replace(form, pretty=form.pretty or _is_interactive(request))


def document_form(request: Request, *, routed: bool) -> Form:
    """The form of a non-resource document; NotAcceptable if no clause can be satisfied."""
    accept = request.headers.get("accept", "")
    form = _negotiated(accept, _Offer(routed=routed)) if accept else PLAIN
    return msgspec.structs.replace(form, pretty=form.pretty or _is_interactive(request))


_ERRORS = _Offer()


@lru_cache(maxsize=256)
def _negotiated(accept: str, offer: _Offer) -> Form:
    """The first form that can be produced; `PLAIN` itself, not an equal one."""
    form = _first_form(accept, offer)
    return PLAIN if form == PLAIN else form


def _first_form(accept: str, offer: _Offer) -> Form:
    """Objects are stored as JSON, so a client that accepts protobuf and JSON gets JSON."""
    if offer.routed:
        _check_routed(accept, TYPES + _STREAMS if offer.streams else TYPES)
    protobuf: Form | None = None
    for clause in accepted(accept):
        form = _satisfied(clause, offer)
        if form is None:
            continue
        if form.media != "protobuf":
            return form
        protobuf = protobuf or form
    if protobuf is None:
        raise NotAcceptable.of(TYPES)
    return protobuf


def check_text(request: Request) -> None:
    """Reject a client that accepts no media type of an error, for streams of text: kube-apiserver does the same."""
    accept = request.headers.get("accept", "")
    if not accept:
        return
    _check_routed(accept, ("text/plain", *TYPES))
    plain = {clause.partition(";")[0].strip() for clause in accept.split(",") if ";as=" not in clause.replace(" ", "")}
    if plain.isdisjoint((*TYPES, "*/*", "application/*")):
        raise NotAcceptable.of(TYPES)


def _check_routed(accept: str, produced: tuple[str, ...]) -> None:
    named = {clause.partition(";")[0].strip(" ") for clause in accept.split(",")}
    if "*/*" not in named and named.isdisjoint(produced):
        message = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(produced)
        raise NotAcceptable(Status(message=message, reason="NotAcceptable", details=StatusDetails(), code=406))


def accepted(accept: str) -> list[Clause]:
    """The clauses in the order in which they are tried."""
    ordered: list[Clause] = []
    for text in accept.split(",")[:64]:
        clause = _clause(text)
        if clause is not None:
            at = len(ordered)
            while at and _precedes(clause, ordered[at - 1]):
                at -= 1
            ordered.insert(at, clause)
    return ordered


def _clause(text: str) -> Clause | None:
    media, *rest = text.split(";")
    media = "/".join(part.strip(" ") for part in media.split("/"))
    if media == "*":
        media = "*/*"
    if media.count("/") != 1:
        return None
    parameters: dict[str, str] = {}
    quality = 1.0
    for part in rest:
        name, _, value = part.partition("=")
        if not value or "=" in value:
            continue
        if name.strip(" ") == "q":
            quality = _number(value)
        else:
            parameters[name.strip(" ")] = value.strip(" ")
    return Clause(media, quality, parameters)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _precedes(one: Clause, other: Clause) -> bool:
    if one.quality > other.quality:
        return True
    one_type, _, one_subtype = one.media.partition("/")
    other_type, _, other_subtype = other.media.partition("/")
    return (one_type != "*" and other_type == "*") or (one_subtype != "*" and other_subtype == "*")


def _satisfied(clause: Clause, offer: _Offer) -> Form | None:
    for media in TYPES:
        if clause.media in (media, "application/*", "*/*"):
            form = _with_parameters(media, clause.parameters, offer)
            if form is not None:
                return form
    return None


def _with_parameters(media: str, parameters: dict[str, str], offer: _Offer) -> Form | None:
    if parameters.get("stream") and (parameters["stream"] != "watch" or media == YAML):
        return None
    if parameters.get("sv", "v1") != "v1":
        return None
    pretty = parameters.get("pretty") == "1"
    if not parameters.keys() & {"as", "g", "v"}:
        return Form(_MEDIA[media], pretty=pretty) if media in offer.unconverted else None
    kind, version = parameters.get("as", ""), parameters.get("v", "")
    if parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    if (kind == "Table" and offer.table and media != PROTOBUF) or (kind in _PARTIAL and offer.partial):
        return Form(_MEDIA[media], kind, version, pretty)
    return None


def _is_interactive(request: Request) -> bool:
    if "pretty" in request.query_string:
        asked = request.parameter("pretty")
        if asked:
            return asked in ("1", "t", "T", "TRUE", "true", "True")
    agent: str = request.headers.get("user-agent", "")
    return agent.startswith(_INTERACTIVE_AGENTS)


def _include(request: Request) -> str:
    include = request.parameter("includeObject")
    if include not in ("", "None", "Metadata", "Object"):
        fault = FieldError.invalid(Path("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest.of(f"Unable to convert to Table as requested: {fault}")
    return include or "Metadata"


def body_media(request: Request, *, custom: bool = False) -> Media:
    """The media type of a request body; UnsupportedMediaType if it is not supported.

    No content type means JSON. Custom resources do not support protobuf.
    """
    content_type: str = request.headers.get("content-type", "")
    if not content_type or content_type == JSON:
        return "json"
    name, *parameters = content_type.split(";")
    media = _MEDIA.get(name.strip().lower())
    if media is None or (custom and media == "protobuf") or any("=" not in p for p in parameters if p.strip()):
        raise UnsupportedMediaType.of(TYPES)
    return media
