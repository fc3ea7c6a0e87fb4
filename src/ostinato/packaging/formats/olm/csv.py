"""The ClusterServiceVersion: Deployment, permissions, kinds and webhooks of an operator, and its presentation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ostinato.crd.rbac import Access, roles_of
from ostinato.packaging.error import PackageError
from ostinato.packaging.formats.olm.descriptors import descriptors, spaced
from ostinato.packaging.objects.access import all_rules
from ostinato.packaging.operator import OWN_NAMESPACE, WebhookServer
from ostinato.packaging.package import Package
from ostinato.webhook.configuration import ServiceEndpoint
from ostinato.webhook.conversion import CONVERT

Json = dict[str, Any]

API_VERSION: Final = "operators.coreos.com/v1alpha1"
_TYPES: Final = {
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
_COPIED: Final = (
    "admissionReviewVersions",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "reinvocationPolicy",
    "rules",
    "sideEffects",
    "timeoutSeconds",
)


def service_version(package: Package, objects: Iterable[Json]) -> Json:
    """Return the ClusterServiceVersion. `objects`: those of the package, with its Deployment."""
    olm = package.overrides.olm
    (deployment,) = [each for each in objects if each["kind"] == "Deployment"]
    spec: Json = {
        "displayName": olm.display_name or spaced(package.name),
        "description": olm.description or package.description,
        "version": package.version,
        "minKubeVersion": olm.min_kube_version,
        "maturity": olm.maturity,
        "provider": {"name": olm.provider or next((each.name for each in package.project.authors), package.name)},
        "maintainers": _maintainers(package),
        "links": _links(package),
        "keywords": list(olm.keywords or package.project.keywords),
        "icon": [{"base64data": olm.icon.data, "mediatype": olm.icon.mediatype}] if olm.icon else [],
        "replaces": olm.replaces,
        "installModes": _install_modes(package),
        "install": {"strategy": "deployment", "spec": _install(package, deployment)},
        "customresourcedefinitions": {"owned": _owned(package)},
        "webhookdefinitions": [each for server in package.operator.webhooks for each in _webhooks(package, server)],
        "relatedImages": [{"name": package.name, "image": str(package.image)}],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{package.name}.v{package.version}", "annotations": _annotations(package)},
        "spec": {name: value for name, value in spec.items() if value not in ("", [])},
    }


def _annotations(package: Package) -> Json:
    olm = package.overrides.olm
    owned = {
        (f"{each['spec']['group']}/{version['name']}", each["spec"]["names"]["kind"])
        for each in package.operator.definitions
        for version in each["spec"]["versions"]
    }
    samples = [each for each in package.samples if (each["apiVersion"], each["kind"]) in owned]
    annotations = {
        "alm-examples": json.dumps(samples, indent=2, ensure_ascii=False),
        "capabilities": olm.capabilities,
        "categories": ", ".join(olm.categories),
        "containerImage": str(package.image),
        "description": package.description,
        "olm.skipRange": olm.skip_range,
        "operatorframework.io/suggested-namespace": package.namespace,
    }
    return {name: value for name, value in annotations.items() if value}


def _maintainers(package: Package) -> list[Json]:
    chosen = package.overrides.olm.maintainers
    people = [(each.name, each.email) for each in chosen or package.project.authors]
    return [{"name": name, "email": email} for name, email in people if name and email]


def _links(package: Package) -> list[Json]:
    links = package.overrides.olm.links
    return [{"name": each.name, "url": each.url} for each in links] or [
        {"name": name, "url": url} for name, url in sorted(package.project.urls.items())
    ]


def _install_modes(package: Package) -> list[Json]:
    own = package.overrides.namespaced
    supported = {"OwnNamespace": own, "SingleNamespace": False, "MultiNamespace": False, "AllNamespaces": not own}
    return [{"type": mode, "supported": on} for mode, on in supported.items()]


def _install(package: Package, deployment: Json) -> Json:
    rules = all_rules(package)
    elsewhere = sorted({each.namespace for each in rules} - {"", OWN_NAMESPACE, package.namespace})
    if elsewhere:
        raise PackageError(
            f"the program needs permissions in the namespace {elsewhere[0]!r}; OLM grants them in the namespace of the "
            "operator or in all: watch all namespaces, or set namespaced: true"
        )
    found: Json = {
        "deployments": [
            {
                "name": deployment["metadata"]["name"],
                "label": deployment["metadata"]["labels"],
                "spec": deployment["spec"],
            }
        ]
    }
    for field, own in (("clusterPermissions", False), ("permissions", True)):
        granted = _granted([each for each in rules if bool(each.namespace) == own])
        if granted:
            found[field] = [{"serviceAccountName": package.account, "rules": granted}]
    return found


def _granted(rules: list[Access]) -> list[Json]:
    return [rule for role in roles_of(rules, name="role") for rule in role["rules"]]


def _owned(package: Package) -> list[Json]:
    found = []
    for definition in package.operator.definitions:
        spec, name = definition["spec"], definition["metadata"]["name"]
        created = package.operator.owned.get(name, ())
        for version in spec["versions"]:
            if not version["served"]:
                continue
            kind = spec["names"]["kind"]
            schema = version["schema"]["openAPIV3Schema"]
            owned: Json = {
                "name": name,
                "version": version["name"],
                "kind": kind,
                "displayName": spaced(kind),
                "description": schema.get("description") or f"{spaced(kind)} of {package.name}",
                "resources": [{"kind": each, "version": api, "name": ""} for api, each in created],
                "specDescriptors": descriptors(schema, "spec"),
                "statusDescriptors": descriptors(schema, "status"),
            }
            found.append({field: value for field, value in owned.items() if value != []})
    return found


def _webhooks(package: Package, server: WebhookServer) -> list[Json]:
    assert isinstance(server.endpoint, ServiceEndpoint), "checked by make_package"
    common = {"deploymentName": package.name, "containerPort": server.endpoint.port, "targetPort": server.port}
    found = [
        {
            **common,
            "type": _TYPES[configuration["kind"]],
            "generateName": entry["name"],
            "webhookPath": entry["clientConfig"]["service"]["path"],
            **{field: entry[field] for field in _COPIED if field in entry},
        }
        for configuration in server.configurations
        for entry in configuration["webhooks"]
    ]
    if server.definitions:
        conversion = {
            **common,
            "type": "ConversionWebhook",
            "generateName": f"convert.{server.name}",
            "webhookPath": CONVERT,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "conversionCRDs": list(server.definitions),
        }
        found.append(conversion)
    return found
