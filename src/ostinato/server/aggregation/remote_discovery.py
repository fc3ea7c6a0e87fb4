"""Discovery documents of extension servers, in the form of aggregated discovery.

- A server that has aggregated discovery is asked for it, otherwise for the resources of the group version.
- A group version whose server does not answer is listed without resources, as stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.server.aggregation.api_services import ApiService, GroupVersion
from ostinato.server.aggregation.fetch import Fetched, Fetcher, FetchError, FetchOptions
from ostinato.server.aggregation.front_proxy import AGGREGATOR, DISCOVERER

Json = dict[str, Any]

_KIND: Final = "as=APIGroupDiscoveryList"
_ACCEPT: Final = ",".join(f"application/json;g=apidiscovery.k8s.io;v={v};{_KIND}" for v in ("v2", "v2beta1"))
_NO_KIND: Final = {"group": "", "version": "", "kind": ""}


class _Document(msgspec.Struct, frozen=True):
    """What an extension server has answered."""

    etag: str
    versions: Mapping[GroupVersion, Json]


class RemoteDiscovery:
    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._documents: dict[str, _Document] = {}  # latest, by APIService
        self._entries: dict[GroupVersion, Json] = {}
        self.generation = 0  # incremented on each change

    @property
    def entries(self) -> Mapping[GroupVersion, Json]:
        """The versions of aggregated discovery."""
        return self._entries

    async def refresh(self, service: ApiService) -> None:
        """Ask the server for its resources. Raises FetchError; the version is stale then."""
        try:
            found = await self._find(service) if service.available else None
        except (FetchError, msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            self._set(service, None)
            raise FetchError(f"discovery of {service.name}: {error}") from None
        self._set(service, found)

    def forget(self, service: ApiService) -> None:
        self._documents.pop(service.name, None)
        if self._entries.pop(service.key, None) is not None:
            self.generation += 1

    def _set(self, service: ApiService, found: Json | None) -> None:
        freshness = "Stale" if found is None else "Current"
        resources = {} if found is None or not found.get("resources") else {"resources": found["resources"]}
        entry = {"version": service.version, **resources, "freshness": freshness}
        if self._entries.get(service.key) != entry:
            self._entries[service.key] = entry
            self.generation += 1

    async def _find(self, service: ApiService) -> Json:
        known = self._documents.get(service.name)
        options = FetchOptions(user=AGGREGATOR, accept=_ACCEPT, etag="" if known is None else known.etag)
        answer = await self._fetcher.get(service, "/apis", options)
        if answer.status == 304 and known is not None:
            return known.versions.get(service.key, {})
        if answer.status == 503:
            raise FetchError(f"service {service.service} returned non-success response code: 503")
        if answer.status == 200 and _is_aggregated(answer):
            document = self._documents[service.name] = _Document(answer.etag, _versions(answer.body))
            return document.versions.get(service.key, {})
        self._documents.pop(service.name, None)
        answer = await self._fetcher.get(
            service, service.path, FetchOptions(user=DISCOVERER, accept="application/json")
        )
        if answer.status != 200:
            raise FetchError(f"failed to download legacy discovery for {service.path}: status {answer.status}")
        return {"resources": converted(msgspec.json.decode(answer.body).get("resources") or ())}


def _is_aggregated(answer: Fetched) -> bool:
    parameters = [each.strip() for each in answer.content_type.split(";")]
    return {"g=apidiscovery.k8s.io", _KIND} <= {*parameters} and bool({"v=v2", "v=v2beta1"} & {*parameters})


def _versions(body: bytes) -> Mapping[GroupVersion, Json]:
    found: dict[GroupVersion, Json] = {}
    for group in msgspec.json.decode(body).get("items") or ():
        for version in group.get("versions") or ():
            for resource in version.get("resources") or ():
                for each in (resource, *(resource.get("subresources") or ())):
                    each["responseKind"] = each.get("responseKind") or _NO_KIND  # old clients require it
            found[group["metadata"].get("name", ""), version["version"]] = version
    return found


def converted(resources: Sequence[Json]) -> list[Json]:
    """The resources of an APIResourceList in the form of aggregated discovery."""
    made: dict[str, Json] = {}
    for each in resources:
        if "/" not in each["name"]:
            entry = made[each["name"]] = {
                "resource": each["name"],
                "responseKind": _kind(each),
                "scope": "Namespaced" if each.get("namespaced") else "Cluster",
                "singularResource": each.get("singularName", ""),
                "verbs": each.get("verbs") or [],
            }
            entry |= {field: each[field] for field in ("shortNames", "categories") if each.get(field)}
    for each in resources:
        name, _, subresource = each["name"].partition("/")
        if subresource:
            scope = "Namespaced" if each.get("namespaced") else "Cluster"
            parent = made.setdefault(name, {"resource": name, "responseKind": _NO_KIND, "scope": scope, "verbs": []})
            added = {"subresource": subresource, "responseKind": _kind(each), "verbs": each.get("verbs") or []}
            parent.setdefault("subresources", []).append(added)
    return list(made.values())


def _kind(resource: Json) -> Json:
    return {field: resource.get(field, "") for field in ("group", "version", "kind")}
