"""Discovery: the served groups, versions and resources.

- Aggregated discovery: everything below /api or /apis in one document.
- Unaggregated discovery: a document for the groups, one per group, and one per group and version.
- Groups and versions are in order of preference: by the priorities of their APIServices, then groups by name and
  versions as Kubernetes ranks them.
- Versions of extension servers are listed among those of this server, and instead of the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ostinato.api.gvk import GroupVersionKind, version_priority
from ostinato.server.publish.storage_hash import storage_version_hash
from ostinato.server.resources.apiregistration.strategy import LOCAL_PRIORITIES
from ostinato.server.resources.resource import Resource, Subresource

Json = dict[str, Any]

GroupVersion = tuple[str, str]

_NO_PRIORITIES: Mapping[GroupVersion, tuple[int, int]] = {}
_NO_REMOTE: Mapping[GroupVersion, Mapping[str, Any]] = {}
_LAST = (0, 0)  # priority of what has no APIService
_REGISTRATION = "apiregistration.k8s.io"  # comes first

# Order in which a custom resource lists verbs and subresources; built-in ones list theirs by name.
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CUSTOM_SUBRESOURCES = ("status", "scale")


class Discovery:
    """The discovery documents for one state of the registry and of the extension servers."""

    def __init__(
        self,
        resources: Iterator[Resource],
        priorities: Mapping[GroupVersion, tuple[int, int]] = _NO_PRIORITIES,
        remote: Mapping[GroupVersion, Mapping[str, Any]] = _NO_REMOTE,
    ) -> None:
        """
        - `priorities`: of group and version, of the APIServices. Default to those of built-in groups.
        - `remote`: versions of extension servers, in the form of aggregated discovery. Default to none.
        """
        self._remote = remote
        priorities = {**LOCAL_PRIORITIES, **priorities}
        found: dict[str, dict[str, list[Resource]]] = {}
        for resource in resources:
            group, version = resource.gvr.group, resource.gvr.version
            if (group, version) not in remote:
                found.setdefault(group, {}).setdefault(version, []).append(resource)
        self._groups: dict[str, dict[str, list[Resource]]] = {}  # of this server, by group and version, each in order
        self._versions: dict[str, list[str]] = {}  # of all servers, by group, each in order
        every = {group: [*versions] for group, versions in found.items()}
        for group, version in remote:
            every.setdefault(group, []).append(version)

        def rank(group: str) -> tuple[bool, int, str]:
            highest = max(priorities.get((group, version), _LAST)[0] for version in every[group])
            return group != _REGISTRATION, -highest, group

        for group in sorted(every, key=rank):
            ranked = sorted(
                every[group],
                key=lambda version: (-priorities.get((group, version), _LAST)[1], version_priority(version)),
            )
            self._versions[group] = ranked
            if group in found:
                self._groups[group] = {
                    version: sorted(found[group][version], key=lambda resource: resource.gvr.resource)
                    for version in ranked
                    if version in found[group]
                }

    @property
    def groups(self) -> Mapping[str, Mapping[str, list[Resource]]]:
        """The resources of this server by group and version. The core group is ""."""
        return self._groups

    @property
    def versions(self) -> Mapping[str, list[str]]:
        """The versions of all servers by group."""
        return self._versions

    # Unaggregated discovery.

    def core_versions(self, address: str) -> Json:
        """The response of /api; `address` is where clients reach the server."""
        return {
            "kind": "APIVersions",
            "versions": list(self._groups.get("", ())),
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }

    def group_list(self) -> Json:
        """The response of /apis."""
        groups = [_group(name, versions) for name, versions in self._versions.items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, name: str) -> Json | None:
        """The response of /apis/GROUP; None if the group is not served."""
        versions = self._versions.get(name)
        if not name or versions is None:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def resource_list(self, group: str, version: str) -> Json | None:
        """The response of /api/VERSION and /apis/GROUP/VERSION; None if the version is not served."""
        resources = self._groups.get(group, {}).get(version)
        if resources is None:
            return None
        listed: list[Json] = []
        for resource in resources:
            listed.append(_resource(resource))
            listed.extend(_subresource(resource, subresource) for subresource in _subresources(resource))
        head: Json = {"kind": "APIResourceList"}
        if group:
            head["apiVersion"] = "v1"
        return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": listed}

    # Aggregated discovery.

    def aggregated(self, *, core: bool, version: str = "v2") -> Json:
        """The aggregated response of /api (core) and /apis."""
        chosen = [(name, versions) for name, versions in self._versions.items() if core == (name == "")]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": name} if name else {},
                    "versions": [self._aggregated_version(name, version) for version in versions],
                }
                for name, versions in chosen
            ],
        }

    def _aggregated_version(self, group: str, version: str) -> Json:
        remote = self._remote.get((group, version))
        if remote is not None:
            return dict(remote)
        resources = [_aggregated_resource(resource) for resource in self._groups[group][version]]
        return {"version": version, "resources": resources, "freshness": "Current"}


def _group(name: str, versions: Sequence[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _verbs(resource: Resource) -> list[str]:
    if resource.custom:
        return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]
    return list(resource.verbs)


def _subresources(resource: Resource) -> list[Subresource]:
    if resource.custom:
        return [resource.subresources[name] for name in _CUSTOM_SUBRESOURCES if name in resource.subresources]
    return [resource.subresources[name] for name in sorted(resource.subresources)]


def _resource(resource: Resource) -> Json:
    entry: Json = {
        "name": resource.gvr.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.gvk.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.collection is not None and "create" in resource.verbs:
        entry["storageVersionHash"] = storage_version_hash(resource)
    return entry


def _subresource(resource: Resource, subresource: Subresource) -> Json:
    entry: Json = {
        "name": f"{resource.gvr.resource}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if subresource.kind.group_version != resource.gvk.group_version:
        entry["group"] = subresource.kind.group
        entry["version"] = subresource.kind.version
    return {**entry, "kind": subresource.kind.kind, "verbs": list(subresource.verbs)}


def _aggregated_resource(resource: Resource) -> Json:
    kind = _kind_of(resource)
    entry: Json = {
        "resource": resource.gvr.resource,
        "responseKind": kind(resource.gvk),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = _subresources(resource)
    if subresources:
        entry["subresources"] = [
            {"subresource": sub.name, "responseKind": kind(sub.kind), "verbs": list(sub.verbs)} for sub in subresources
        ]
    return entry


def _kind_of(resource: Resource) -> Callable[[GroupVersionKind], Json]:
    """The GroupVersionKind of an entry: a built-in resource omits its own group and version, a custom resource does
    not.
    """

    def kind(gvk: GroupVersionKind) -> Json:
        if not resource.custom and gvk.group_version == resource.gvk.group_version:
            return {"group": "", "version": "", "kind": gvk.kind}
        return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}

    return kind
