"""RBAC: the roles of controllers, from what they reconcile, own and watch.

- Reconciled kinds: read, watch, and patch (for finalizers); write status, and update the finalizers subresource, which
  owner references with blockOwnerDeletion need.
- Owned kinds: read, watch, create, patch, delete. Watched kinds: read, watch.
- Kinds of a selector (`KindsOf`): the same as reconciled kinds, for all resources of its group, since RBAC has no other
  wildcard; of all groups, if the selector may match several. And CustomResourceDefinitions: read, watch.
- Everything else is declared by the controller.
- Kinds without a class have the default plural, and are namespaced: Widget is widgets.

Rules are merged into a short canonical form: by verbs, then resources, groups and URLs. The verb `*` covers all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, plural_of
from ostinato.client.views import View
from ostinato.controllers.kinds.selector import KindsOf
from ostinato.webhook.webhooks import Webhooks

Json = dict[str, Any]

_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_LISTS: Final = ("verbs", "resources", "groups", "urls")  # the order of merging


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on resources of API groups ("" or "core" is the core group) or on URLs, in one namespace or all."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()  # "deployments", "deployments/status"
    names: tuple[str, ...] = ()  # resourceNames; empty is all
    urls: tuple[str, ...] = ()
    namespace: str = ""

    def __post_init__(self) -> None:
        for word in ("verbs", "groups", "resources", "names", "urls"):
            if isinstance(getattr(self, word), str):
                raise TypeError(f"Access: {word} must be a tuple of strings, got {getattr(self, word)!r}")
        if not self.verbs or bool(self.resources) == bool(self.urls):
            raise ValueError("Access needs verbs, and either resources or urls")
        if self.resources and not self.groups:
            raise ValueError('Access: resources need their group, groups=("",) for the core group')
        if self.urls and (self.namespace or self.groups or self.names):
            raise ValueError("Access: urls cannot be combined with namespace, groups or names")


Where = Callable[[Any], Iterable[str]]  # the watched namespaces of a kind; "" is all


class Uses(Protocol):
    """The kinds of a controller, as classes or views, and its declared access."""

    @property
    def reconciles(self) -> Iterable[Any]: ...
    @property
    def owns(self) -> Iterable[Any]: ...
    @property
    def watches(self) -> Iterable[Any]: ...
    @property
    def access(self) -> Iterable[Access]: ...


def everywhere(_kind: Any) -> Iterable[str]:
    """Return all namespaces."""
    return ("",)


def access_of(controller: Uses, *, where: Where = everywhere) -> list[Access]:
    """Return the access that a controller needs, in the namespaces of each kind; declared access is not changed.

    Owned kinds are also written in the namespaces of their owners.
    """
    found: list[Access] = []
    homes: set[str] = set()  # of namespaced owners
    for kind in controller.reconciles:
        if isinstance(kind, KindsOf):
            found += _selected(kind)
            homes.add("")
            continue
        places = _places(kind, where)
        homes |= places if _info(kind).namespaced else set()
        found += _accesses(kind, (*_READ, "patch"), places)
        found += _accesses(kind, ("patch", "update"), places, "status")
        found += _accesses(kind, ("update",), places, "finalizers")
    for kind in controller.owns:
        places = _places(kind, lambda each: {*where(each), *homes})
        found += _accesses(kind, (*_READ, "create", "delete", "patch"), places)
    for kind in controller.watches:
        found += _accesses(kind, _READ, _places(kind, where))
    return [*found, *controller.access]


def _selected(kinds: KindsOf) -> list[Access]:
    """Return the access to all kinds of a selector."""
    definitions = Access(groups=("apiextensions.k8s.io",), resources=("customresourcedefinitions",), verbs=_READ)
    verbs = (*_READ, "patch", "update")
    return [Access(groups=(kinds.api_group,), resources=kinds.resources, verbs=verbs), definitions]


def event_access(namespace: str = "", *, core: bool = False) -> Access:
    """Return the access to record events of events.k8s.io, or of the core group."""
    group = "" if core else "events.k8s.io"
    return Access(groups=(group,), resources=("events",), verbs=("create", "patch"), namespace=namespace)


def event_namespaces(controllers: Iterable[Uses], where: Where = everywhere) -> set[str]:
    """Return the namespaces of events: those of the watched kinds; `default` for cluster-scoped kinds."""
    kinds = [kind for each in controllers for kind in (*each.reconciles, *each.owns, *each.watches)]
    if any(isinstance(kind, KindsOf) for kind in kinds):
        return {""}
    found = {place for kind in kinds for place in (_places(kind, where) if _info(kind).namespaced else {"default"})}
    return {""} if "" in found else found


def leader_election_access(lease: NamespacedName) -> list[Access]:
    """Return the access for the Lease of a leader election."""
    return _managed_object("coordination.k8s.io", "leases", lease)


def _managed_object(group: str, resource: str, kept: NamespacedName) -> list[Access]:
    """Return the access to create, read and update one object. `create` cannot be limited by name."""
    return [
        Access(groups=(group,), resources=(resource,), verbs=verbs, names=names, namespace=kept.namespace)
        for verbs, names in ((("create",), ()), (("get", "update"), (kept.name,)))
    ]


def shard_access(namespace: str) -> list[Access]:
    """Return the access for the Leases of sharding, whose names depend on the replicas."""
    verbs = ("create", "delete", "get", "list", "update")
    return [Access(groups=("coordination.k8s.io",), resources=("leases",), verbs=verbs, namespace=namespace)]


def review_access() -> list[Access]:
    """Return the access to review the tokens and permissions of clients of the metrics endpoint."""
    return [
        Access(groups=("authentication.k8s.io",), resources=("tokenreviews",), verbs=("create",)),
        Access(groups=("authorization.k8s.io",), resources=("subjectaccessreviews",), verbs=("create",)),
    ]


def certificate_access(webhooks: Webhooks) -> list[Access]:
    """Return the access to store the certificate of a webhook server, and to inject its CA bundle."""
    if not webhooks.injects_ca_bundle:
        return []
    found = [
        Access(
            groups=(place.kind.group,),
            resources=(_info(place.kind).plural,),
            verbs=("get", "patch"),
            names=(place.name,),
        )
        for place in webhooks.bundle_targets
    ]
    if (secret := webhooks.secret) is not None:
        found += _managed_object("", "secrets", secret)
    return found


def _places(kind: Any, where: Where) -> set[str]:
    """Return the namespaces of a kind; {""} for all, and for cluster-scoped kinds, which need a ClusterRole."""
    found = set(where(kind)) if _info(kind).namespaced else {""}
    return {""} if "" in found else found


def _accesses(kind: Any, verbs: tuple[str, ...], places: set[str], subresource: str = "") -> list[Access]:
    info = _info(kind)
    name = f"{info.plural}/{subresource}" if subresource else info.plural
    return [
        Access(groups=(info.gvk.group,), resources=(name,), verbs=verbs, namespace=place) for place in sorted(places)
    ]


def _info(kind: Any) -> KindInfo:
    if isinstance(kind, View):
        kind = kind.info or kind.gvk
    if isinstance(kind, GroupVersionKind):
        return KindInfo(kind, plural_of(kind.kind), kind.kind.lower(), namespaced=True)
    info = kind if isinstance(kind, KindInfo) else getattr(kind, "__kind__", None)
    if not isinstance(info, KindInfo):
        raise TypeError(f"{kind!r} is not a kind; it has no version, e.g. version='v1'")
    return info


def merged(rules: Iterable[Access]) -> list[Access]:
    """Return equivalent rules in canonical form."""
    found = [single for rule in rules for single in _singles(_normal(rule))]
    for word in _LISTS:
        by_rest: dict[Access, set[str]] = {}
        for rule in found:
            rest = msgspec.structs.replace(rule, **{word: _PLACEHOLDER if getattr(rule, word) else ()})
            by_rest.setdefault(rest, set()).update(getattr(rule, word))
        found = [_normal(msgspec.structs.replace(rest, **{word: tuple(all_)})) for rest, all_ in by_rest.items()]
    return sorted(found, key=_order)


def _singles(rule: Access) -> list[Access]:
    """Split a rule by resource and group."""
    return [
        msgspec.structs.replace(rule, groups=(group,), resources=(resource,))
        for group in rule.groups
        for resource in rule.resources
    ] or [msgspec.structs.replace(rule, urls=(url,)) for url in rule.urls]


def _order(rule: Access) -> tuple[str | tuple[str, ...], ...]:
    return rule.namespace, rule.groups, rule.resources, rule.names, rule.urls, rule.verbs


_PLACEHOLDER: Final = ("-",)  # replaces the values being merged; rules with and without values stay separate


def _normal(rule: Access) -> Access:
    verbs = ("*",) if "*" in rule.verbs else _sorted(rule.verbs)
    groups = _sorted("" if group == "core" else group for group in rule.groups)
    resources, names, urls = _sorted(rule.resources), _sorted(rule.names), _sorted(rule.urls)
    return msgspec.structs.replace(rule, verbs=verbs, groups=groups, resources=resources, names=names, urls=urls)


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def roles_of(rules: Iterable[Access], *, name: str, service_account: NamespacedName | None = None) -> list[Json]:
    """Return a ClusterRole for all namespaces, a Role for each single one, and bindings to the service account."""
    by_namespace: dict[str, list[Access]] = {}
    for rule in merged(rules):
        by_namespace.setdefault(rule.namespace, []).append(rule)
    objects: list[Json] = []
    for namespace, own in sorted(by_namespace.items()):
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        objects.append(
            {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "rules": [_rule(each) for each in own]}
        )
        if service_account is not None:
            objects.append(_binding(kind, metadata, service_account))
    return objects


def _binding(role: str, metadata: Json, account: NamespacedName) -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{role}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _GROUP, "kind": role, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }


def _rule(access: Access) -> Json:
    rule: dict[str, Sequence[str]] = {
        "apiGroups": access.groups,
        "resources": access.resources,
        "resourceNames": access.names,
        "nonResourceURLs": access.urls,
        "verbs": access.verbs,
    }
    return {word: list(values) for word, values in rule.items() if values}
