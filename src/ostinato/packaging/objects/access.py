"""ServiceAccount, roles of the operator, and roles for the users of its kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ostinato.api.gvk import NamespacedName
from ostinato.crd.rbac import Access, event_access, leader_election_access, review_access, roles_of
from ostinato.packaging.manifest import Manifest, extended, given, substituted
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.operator import OWN_NAMESPACE
from ostinato.packaging.package import Package

Json = dict[str, Any]

_NAME: Final = "{name}"  # replaced by an input; not a valid name
_ACCOUNT: Final = "{account}"
_LEASE: Final = "{lease}"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")


def service_account(inputs: Inputs) -> Manifest:
    metadata = given({"name": inputs.account, "labels": inputs.labels, "annotations": inputs.account_annotations})
    found = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {**metadata, "namespace": inputs.namespace},
        "automountServiceAccountToken": False,  # the Pod mounts it by itself
    }
    return Manifest("service-account.yaml", found, "serviceAccount")


def operator_roles(inputs: Inputs) -> list[Manifest]:
    """Return the roles and bindings of the operator. Those for leader election depend on its switch."""
    found = _manifests(inputs, inputs.package.operator.all_rules, inputs.name, "rbac.yaml", "rbac")
    if not inputs.package.operator.lease:
        suffixed = inputs.named("leader-election")
        rules = election_rules(_LEASE)
        found += _manifests(inputs, rules, suffixed, "leader-election.yaml", "rbacForLeaderElection")
    suffixed = inputs.named("metrics-auth")
    return found + _manifests(inputs, review_access(), suffixed, "rbac.yaml", "rbacForSecureMetrics")


def metrics_reader(inputs: Inputs) -> Manifest:
    """Return the role that a scraper of secure metrics needs."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": inputs.metadata(inputs.named("metrics-reader"), namespaced=False),
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    return Manifest("metrics-reader.yaml", role, "secureMetrics")


def election_rules(lease: str) -> list[Access]:
    """Return the permissions of leader election in the operator's own namespace, with its Events."""
    return [*leader_election_access(NamespacedName(OWN_NAMESPACE, lease)), event_access(OWN_NAMESPACE)]


def user_roles(inputs: Inputs) -> list[Manifest]:
    """Return roles for the package's kinds that are aggregated to view, edit and admin of the cluster."""
    resources = [each["spec"] for each in inputs.package.operator.definitions]
    if not resources:
        return []
    found = []
    for word, verbs, targets in (("view", _READ, ("view", "edit", "admin")), ("edit", _WRITE, ("edit", "admin"))):
        rules = [
            {"apiGroups": [each["group"]], "resources": [each["names"]["plural"]], "verbs": list(verbs)}
            for each in resources
        ]
        labels = extended(inputs.labels, {f"{_AGGREGATE}{target}": "true" for target in targets})
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {**inputs.metadata(inputs.named(word), namespaced=False), "labels": labels},
            "rules": rules,
        }
        found.append(Manifest("user-roles.yaml", role, "userRoles"))
    return found


def _manifests(inputs: Inputs, rules: Iterable[Access], name: Any, file: str, feature: str) -> list[Manifest]:
    replacements = {
        OWN_NAMESPACE: inputs.namespace,
        _NAME: name,
        _ACCOUNT: inputs.account,
        _LEASE: inputs.lease,
    }
    found = []
    for each in roles_of(rules, name=_NAME, service_account=NamespacedName(OWN_NAMESPACE, _ACCOUNT)):
        role = substituted(each, replacements)
        role["metadata"] |= given({"labels": inputs.labels, "annotations": inputs.annotations})
        found.append(Manifest(file, role, feature))
    return found


def all_rules(package: Package) -> list[Access]:
    """Return all permissions of the package as it is configured."""
    own = election_rules(package.lease) if package.elects and not package.operator.lease else []
    reviews = review_access() if package.overrides.features.secure_metrics else []
    return [*package.operator.all_rules, *own, *reviews]
