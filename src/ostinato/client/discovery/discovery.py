"""Discovery: which kinds a server has, as it says itself.

Servers since 1.26 tell everything in two documents, `/api` and `/apis`, and by their tags whether anything has changed.
Older ones, and those that answer only one of the two in that form, are asked for each version of each group.

A version that the server cannot tell of (an extension that does not answer) is among `failed`; the rest is still good.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import msgspec

from ostinato.api.errors import APIError, ServiceUnavailable
from ostinato.api.gvk import GroupVersion
from ostinato.api.object import KindInfo
from ostinato.client.discovery.paths import root_of
from ostinato.client.transport.exchange import Call, Exchange, response_error
from ostinato.client.transport.protocol import TransportError

D = TypeVar("D")

ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
TIMEOUT: Final = 32.0  # seconds for one document
_MAX_CONCURRENT: Final = 8  # versions that are asked for at the same time


class ApiResource(msgspec.Struct, frozen=True):
    """A kind that is served, and what can be done with it."""

    info: KindInfo
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class ApiVersion(msgspec.Struct, frozen=True):
    version: GroupVersion
    resources: tuple[ApiResource, ...]


class Catalogue(msgspec.Struct, frozen=True):
    """What a server serves: the core first, then groups as the server ranks them, each version after the preferred."""

    versions: tuple[ApiVersion, ...] = ()
    failed: dict[GroupVersion, Exception] = {}


class Discovery:
    """Reads the catalogue of one server. What has not changed is not sent again."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._kept: dict[str, tuple[str, bytes]] = {}  # by path: the tag of a document, and the document

    async def read(self) -> Catalogue:
        """An `APIError` or `TransportError` if the server says nothing at all."""
        core, groups = await asyncio.gather(self._document("/api"), self._document("/apis"))
        if _is_aggregated(core) and _is_aggregated(groups):
            return _catalogue(_parse(_Aggregated, core).items + _parse(_Aggregated, groups).items)
        return await self._read_each(_plain_versions(core, groups))

    async def _read_each(self, versions: list[GroupVersion]) -> Catalogue:
        limit = asyncio.Semaphore(_MAX_CONCURRENT)

        async def read(version: GroupVersion) -> ApiVersion | Exception:
            async with limit:
                for last in (False, True):
                    try:
                        return _plain_resources(version, await self._document(root_of(version)))
                    except (APIError, TransportError) as error:
                        if last:
                            return error
            raise AssertionError

        answers = await asyncio.gather(*map(read, versions))
        return Catalogue(
            tuple(answer for answer in answers if isinstance(answer, ApiVersion)),
            {version: found for version, found in zip(versions, answers, strict=True) if isinstance(found, Exception)},
        )

    async def _document(self, path: str) -> bytes:
        """A document, b"" if there is none."""
        tag, kept = self._kept.get(path, ("", b""))
        headers = [("If-None-Match", tag)] if tag else []
        accept = ACCEPT if path in ("/api", "/apis") else "application/json"
        call = Call(method="GET", path=path, accept=accept, headers=headers, timeout=TIMEOUT)
        async with await self._exchange.transport.request(call.request()) as response:
            body = await response.read()
            if response.status == 304 and tag:
                return kept
            if response.status == 404:
                return b""
            if response.status != 200:
                raise response_error(call, response.status, response.headers, body)
            if tag := response.headers.get("etag", ""):
                self._kept[path] = (tag, body)
            return body


class _Kind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    verbs: tuple[str, ...] | None = None
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct):
    version: str
    freshness: str = ""
    resources: list[_Resource] | None = None


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Name = _Name()
    versions: list[_Version] = []


class _Aggregated(msgspec.Struct):
    items: list[_Group] = []


class _PlainResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    verbs: tuple[str, ...] | None = None


class _PlainResources(msgspec.Struct):
    resources: list[_PlainResource] | None = None


class _PlainVersion(msgspec.Struct):
    version: str


class _PlainGroup(msgspec.Struct, rename="camel"):
    name: str
    versions: list[_PlainVersion] = []
    preferred_version: _PlainVersion | None = None


class _PlainGroups(msgspec.Struct):
    groups: list[_PlainGroup] | None = None


class _CoreVersions(msgspec.Struct):
    versions: list[str] | None = None


def _parse(form: type[D], data: bytes) -> D:
    """What a document says; of one that is not there, nothing. A document that makes no sense is a server's error."""
    try:
        return msgspec.json.decode(data or b"{}", type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceUnavailable.of(f"discovery: the server's answer makes no sense: {error}") from None


def _is_aggregated(document: bytes) -> bool:
    return not document or b'"APIGroupDiscoveryList"' in document[:200]


def _catalogue(groups: list[_Group]) -> Catalogue:
    versions: list[ApiVersion] = []
    failed: dict[GroupVersion, Exception] = {}
    for group in groups:
        for each in group.versions:
            version = GroupVersion(group.metadata.name, each.version)
            if each.freshness == "Stale":
                failed[version] = ServiceUnavailable.of(f"stale GroupVersion discovery: {version}")
            else:
                found = [_resource(version, resource) for resource in each.resources or ()]
                versions.append(ApiVersion(version, tuple(filter(None, found))))
    return Catalogue(tuple(versions), failed)


def _resource(version: GroupVersion, resource: _Resource) -> ApiResource | None:
    kind = resource.response_kind
    if kind is None or not kind.kind:  # it only has subresources
        return None
    info = _info(
        version,
        _PlainResource(
            name=resource.resource,
            kind=kind.kind,
            namespaced=resource.scope == "Namespaced",
            singular_name=resource.singular_resource,
            short_names=resource.short_names,
            categories=resource.categories,
        ),
    )
    return ApiResource(info, resource.verbs or (), tuple(each.subresource for each in resource.subresources or ()))


def _plain_versions(core: bytes, groups: bytes) -> list[GroupVersion]:
    versions = [GroupVersion("", version) for version in _parse(_CoreVersions, core).versions or ()]
    for group in _parse(_PlainGroups, groups).groups or ():
        preferred = group.preferred_version.version if group.preferred_version else ""
        names = [version.version for version in group.versions]
        names.sort(key=lambda name, preferred=preferred: name != preferred)  # type: ignore[misc]
        versions += [GroupVersion(group.name, name) for name in names]
    return versions


def _plain_resources(version: GroupVersion, document: bytes) -> ApiVersion:
    listed = _parse(_PlainResources, document).resources or []
    below: dict[str, list[str]] = {}
    for each in listed:
        name, _, subresource = each.name.partition("/")
        if subresource:
            below.setdefault(name, []).append(subresource)
    resources = [
        ApiResource(_info(version, each), each.verbs or (), tuple(below.get(each.name, ())))
        for each in listed
        if "/" not in each.name
    ]
    return ApiVersion(version, tuple(resources))


def _info(version: GroupVersion, resource: _PlainResource) -> KindInfo:
    return KindInfo(
        gvk=version.kind(resource.kind),
        plural=resource.name,
        singular=resource.singular_name or resource.kind.lower(),
        namespaced=resource.namespaced,
        short_names=resource.short_names or (),
        categories=resource.categories or (),
        list_kind=resource.kind + "List",
    )
