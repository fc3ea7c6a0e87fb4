"""RBAC: the roles that controllers need, from what they reconcile, own and watch.

- Reconciled kinds are read and watched, and patched, for finalizers of one's own; their status is written, and their
  finalizers subresource, so that what they own can hold them back from deletion.
- Owned kinds are read, watched, created, patched and deleted. Watched kinds are read and watched.
- Whatever else a controller does, it declares.
- A kind that is no class here is taken to be called and placed as most are: Widget is widgets, in namespaces.

Rules are merged, so that a role is short and the same whatever the order: verbs of equal rules, then resources, then
groups, then URLs. The verb `*` covers all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, plural_of
from ostinato.client.views import View
from ostinato.webhook.webhooks import Webhooks

Json = dict[str, Any]

_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
_GROUP: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_LISTS: Final = ("verbs", "resources", "groups", "urls")  # the order of merging


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on resources of groups ("" is the core group, as is "core"), or on URLs; in one namespace or in all."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()  # "deployments", "deployments/status"
    names: tuple[str, ...] = ()  # of the objects, all if empty
    urls: tuple[str, ...] = ()
    namespace: str = ""

    def __post_init__(self) -> None:
        for word in ("verbs", "groups", "resources", "names", "urls"):
            if isinstance(getattr(self, word), str):
                raise TypeError(f"Access: {word} is a tuple of texts, got {getattr(self, word)!r}")
        if not self.verbs or bool(self.resources) == bool(self.urls):
            raise ValueError("Access needs verbs, and either resources or urls")
        if self.resources and not self.groups:
            raise ValueError('Access: resources need their group, groups=("",) for the core group')
        if self.urls and (self.namespace or self.groups or self.names):
            raise ValueError("Access: urls stand alone, in no namespace")


Where = Callable[[Any], Iterable[str]]  # the namespaces in which a kind is followed, "" for all


class Uses(Protocol):
    """What a controller says of itself; kinds are classes, or views of them."""

    @property
    def reconciles(self) -> Iterable[Any]: ...
    @property
    def owns(self) -> Iterable[Any]: ...
    @property
    def watches(self) -> Iterable[Any]: ...
    @property
    def access(self) -> Iterable[Access]: ...


def everywhere(_kind: Any) -> Iterable[str]:
    """All namespaces."""
    return ("",)


def access_of(controller: Uses, *, where: Where = everywhere) -> list[Access]:
    """What a controller needs, in the namespaces of each kind; what it declares itself stays as it is declared.

    What is owned is written where its owners are, too.
    """
    found: list[Access] = []
    homes: set[str] = set()  # of owners that are in namespaces
    for kind in controller.reconciles:
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


def event_access(namespace: str = "", *, core: bool = False) -> Access:
    """To write events: those of events.k8s.io, or those of the core group."""
    group = "" if core else "events.k8s.io"
    return Access(groups=(group,), resources=("events",), verbs=("create", "patch"), namespace=namespace)


def event_namespaces(controllers: Iterable[Uses], where: Where = everywhere) -> set[str]:
    """Where events about what is followed are: in its namespaces, and about what is in none, in `default`."""
    kinds = [kind for each in controllers for kind in (*each.reconciles, *each.owns, *each.watches)]
    found = {place for kind in kinds for place in (_places(kind, where) if _info(kind).namespaced else {"default"})}
    return {""} if "" in found else found


def leader_election_access(lease: NamespacedName) -> list[Access]:
    """To hold the lease of a leader, and no other one."""
    return _managed_object("coordination.k8s.io", "leases", lease)


def _managed_object(group: str, resource: str, kept: NamespacedName) -> list[Access]:
    """To make, read and change one object. What is created has no name yet as far as roles go."""
    return [
        Access(groups=(group,), resources=(resource,), verbs=verbs, names=names, namespace=kept.namespace)
        for verbs, names in ((("create",), ()), (("get", "update"), (kept.name,)))
    ]


def certificate_access(webhooks: Webhooks) -> list[Access]:
    """To keep the certificates that a webhook server makes, and to make known who vouches for them."""
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
    """The namespaces of a kind, {""} for all and for none: of what is in no namespace, a Role can say nothing."""
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
        raise TypeError(f"{kind!r} is no kind: it names no version, e.g. version='v1'")
    return info


def merged(rules: Iterable[Access]) -> list[Access]:
    """The same rights in fewer rules, sorted."""
    found = [single for rule in rules for single in _singles(_normal(rule))]
    for word in _LISTS:
        by_rest: dict[Access, set[str]] = {}
        for rule in found:
            rest = msgspec.structs.replace(rule, **{word: _PLACEHOLDER if getattr(rule, word) else ()})
            by_rest.setdefault(rest, set()).update(getattr(rule, word))
        found = [_normal(msgspec.structs.replace(rest, **{word: tuple(all_)})) for rest, all_ in by_rest.items()]
    return sorted(found, key=_order)


def _singles(rule: Access) -> list[Access]:
    """A rule for each resource of each group: the same rules, however they were put together."""
    return [
        msgspec.structs.replace(rule, groups=(group,), resources=(resource,))
        for group in rule.groups
        for resource in rule.resources
    ] or [msgspec.structs.replace(rule, urls=(url,)) for url in rule.urls]


def _order(rule: Access) -> tuple[str | tuple[str, ...], ...]:
    return rule.namespace, rule.groups, rule.resources, rule.names, rule.urls, rule.verbs


_PLACEHOLDER: Final = ("-",)  # stands for values that are being united; rules with and without any stay apart


def _normal(rule: Access) -> Access:
    verbs = ("*",) if "*" in rule.verbs else _sorted(rule.verbs)
    groups = _sorted("" if group == "core" else group for group in rule.groups)
    resources, names, urls = _sorted(rule.resources), _sorted(rule.names), _sorted(rule.urls)
    return msgspec.structs.replace(rule, verbs=verbs, groups=groups, resources=resources, names=names, urls=urls)


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def roles_of(rules: Iterable[Access], *, name: str, service_account: NamespacedName | None = None) -> list[Json]:
    """A ClusterRole for what goes for all namespaces, a Role for each other, and bindings to the account, if one is."""
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
    said: dict[str, Sequence[str]] = {
        "apiGroups": access.groups,
        "resources": access.resources,
        "resourceNames": access.names,
        "nonResourceURLs": access.urls,
        "verbs": access.verbs,
    }
    return {word: list(values) for word, values in said.items() if values}
