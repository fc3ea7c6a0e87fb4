"""Discovery: the API groups, versions and kinds of a server.

Servers since 1.26 have aggregated discovery: two documents, `/api` and `/apis`, with ETags. With older servers one
document per group version is requested.

A group version whose discovery failed, such as that of an unavailable aggregated API, is in `failed`; the others are
usable.
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
_MAX_CONCURRENT: Final = 8  # concurrent requests for group versions


class ApiResource(msgspec.Struct, frozen=True):
    """A served kind with its verbs and subresources."""

    info: KindInfo
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class ApiVersion(msgspec.Struct, frozen=True):
    version: GroupVersion
    resources: tuple[ApiResource, ...]


class Catalogue(msgspec.Struct, frozen=True):
    """Group versions of a server: the core group, then groups in the server's order, preferred versions first."""

    versions: tuple[ApiVersion, ...] = ()
    failed: dict[GroupVersion, Exception] = {}


class Discovery:
    """Reads the catalogue of one server, with ETags: unchanged documents are not transferred again."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._kept: dict[str, tuple[str, bytes]] = {}  # by path: ETag and document

    async def read(self) -> Catalogue:
        """Read all documents. Raises `APIError` or `TransportError` if `/api` or `/apis` cannot be read."""
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

        results = await asyncio.gather(*map(read, versions))
        return Catalogue(
            tuple(result for result in results if isinstance(result, ApiVersion)),
            {version: found for version, found in zip(versions, results, strict=True) if isinstance(found, Exception)},
        )

    async def _document(self, path: str) -> bytes:
        """Request a document; b"" if it does not exist."""
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
    """Decode a document; an empty one for b"". Raises ServiceUnavailable for an invalid one."""
    try:
        return msgspec.json.decode(data or b"{}", type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceUnavailable.of(f"discovery: invalid response: {error}") from None


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
    if kind is None or not kind.kind:  # only its subresources are served
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
