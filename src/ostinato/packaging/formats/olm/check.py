"""The rules of a bundle, as OLM, its catalogs and its validator have them. Each problem names file and field."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ostinato.api.validation import names
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.packaging.project import is_semantic_version

Json = dict[str, Any]

_PREFIX: Final = "operators.operatorframework.io.bundle"
_ANNOTATIONS: Final = "metadata/annotations.yaml"
_DOCKERFILE: Final = "bundle.Dockerfile"
_SUPPORTED: Final = {
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterServiceVersion",
    "ConfigMap",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
}
_MAX_BYTES: Final = 1 << 20  # compressed: a bundle is unpacked into one ConfigMap
_MODES: Final = {"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"}
_ICONS: Final = {"image/gif", "image/jpeg", "image/png", "image/svg+xml"}


def check_bundle(files: Mapping[str, str]) -> list[str]:
    """Return the problems of a bundle, given its files by name."""
    objects: list[Json] = []
    problems = []
    for file, text in sorted(files.items()):
        if file.startswith("manifests/"):
            try:
                objects += [each for each in decode_yaml_documents(text, strict=True) if isinstance(each, dict)]
            except ValueError as error:
                problems.append(f"{file}: not YAML: {error}")
    versions = [each for each in objects if each.get("kind") == "ClusterServiceVersion"]
    if len(versions) != 1:
        return [*problems, f"manifests: want one ClusterServiceVersion, found {len(versions)}"]
    problems += _metadata(files)
    problems += _objects(objects, versions[0])
    problems += _service_version(versions[0])
    problems += _definitions(objects, versions[0])
    problems += _examples(versions[0])
    size = len(gzip.compress("".join(files.values()).encode(), mtime=0))
    if size > _MAX_BYTES:
        problems.append(f"manifests: {size} bytes compressed, more than {_MAX_BYTES}")
    return problems


def _metadata(files: Mapping[str, str]) -> Iterator[str]:
    documents = decode_yaml_documents(files.get(_ANNOTATIONS, ""))
    annotations = documents[0].get("annotations", {}) if documents and isinstance(documents[0], dict) else {}
    wanted = {"mediatype.v1": "registry+v1", "manifests.v1": "manifests/", "metadata.v1": "metadata/"}
    for word, value in wanted.items():
        if annotations.get(f"{_PREFIX}.{word}") != value:
            yield f"{_ANNOTATIONS}: {_PREFIX}.{word}: want {value}"
    channels = str(annotations.get(f"{_PREFIX}.channels.v1", "")).split(",")
    if not all(channels):
        yield f"{_ANNOTATIONS}: {_PREFIX}.channels.v1: no channel"
    default = annotations.get(f"{_PREFIX}.channel.default.v1", "")
    if default and default not in channels:
        yield f"{_ANNOTATIONS}: {_PREFIX}.channel.default.v1: {default!r} is not one of the channels"
    if names.is_dns1123_subdomain(str(annotations.get(f"{_PREFIX}.package.v1", ""))):
        yield f"{_ANNOTATIONS}: {_PREFIX}.package.v1: not a name"
    if _DOCKERFILE in files:
        labels = [line for line in files[_DOCKERFILE].splitlines() if line.startswith("LABEL ")]
        if sorted(labels) != sorted(f"LABEL {name}={value}" for name, value in annotations.items()):
            yield f"{_DOCKERFILE}: its labels are not those of {_ANNOTATIONS}"


def _objects(objects: list[Json], version: Json) -> Iterator[str]:
    accounts = {
        each["spec"]["template"]["spec"].get("serviceAccountName") for each in _strategy(version).get("deployments", [])
    }
    for each in objects:
        kind, name = each.get("kind", ""), each.get("metadata", {}).get("name", "")
        if kind not in _SUPPORTED:
            yield f"{kind} {name}: not a kind that a bundle may contain"
        if kind == "ServiceAccount" and name in accounts:
            yield f"ServiceAccount {name}: created by OLM from the ClusterServiceVersion; remove it"
        if each.get("metadata", {}).get("namespace"):
            yield f"{kind} {name}: metadata.namespace: OLM chooses it; remove it"


def _service_version(version: Json) -> Iterator[str]:
    name, spec = version["metadata"].get("name", ""), version.get("spec", {})
    where = f"ClusterServiceVersion {name}"
    if names.is_dns1123_subdomain(name) or names.is_label_value(name):
        yield f"{where}: metadata.name: not a name of at most 63 characters"
    for field in ("version", "minKubeVersion"):
        if not is_semantic_version(str(spec.get(field, ""))):
            yield f"{where}: spec.{field}: not a semantic version"
    if not name.endswith(f".v{spec.get('version')}"):
        yield f"{where}: metadata.name: want NAME.v{spec.get('version')}"
    for field in ("displayName", "description"):
        if not spec.get(field):
            yield f"{where}: spec.{field}: not set"
    if not spec.get("provider", {}).get("name"):
        yield f"{where}: spec.provider.name: not set"
    modes = {each["type"]: each["supported"] for each in spec.get("installModes", [])}
    if set(modes) != _MODES or not any(modes.values()):
        yield f"{where}: spec.installModes: want all four modes, one of them supported"
    for icon in spec.get("icon", []):
        if not icon.get("base64data") or icon.get("mediatype") not in _ICONS:
            yield f"{where}: spec.icon: want base64data and a mediatype of {', '.join(sorted(_ICONS))}"
    for person in spec.get("maintainers", []):
        if not person.get("name") or "@" not in person.get("email", ""):
            yield f"{where}: spec.maintainers: want name and email"
    for link in spec.get("links", []):
        if not link.get("name") or "://" not in link.get("url", ""):
            yield f"{where}: spec.links: want name and url"
    yield from _deployments(version, where, modes)


def _deployments(version: Json, where: str, modes: Mapping[str, bool]) -> Iterator[str]:
    strategy = _strategy(version)
    deployments = {each["name"]: each["spec"] for each in strategy.get("deployments", [])}
    if not deployments:
        yield f"{where}: spec.install.spec.deployments: empty"
    granted = {
        each["serviceAccountName"]
        for field in ("permissions", "clusterPermissions")
        for each in strategy.get(field, [])
    }
    for name, spec in deployments.items():
        account = spec["template"]["spec"].get("serviceAccountName", "")
        if account not in granted:
            yield f"{where}: Deployment {name}: its ServiceAccount {account!r} has no permissions"
        for container in spec["template"]["spec"]["containers"]:
            if not container.get("resources", {}).get("requests"):
                yield f"{where}: Deployment {name}: container {container['name']}: resources.requests: not set"
    for hook in version["spec"].get("webhookdefinitions", []):
        if hook["deploymentName"] not in deployments:
            yield f"{where}: webhook {hook['generateName']}: no Deployment {hook['deploymentName']}"
        if hook.get("conversionCRDs") and [mode for mode, on in modes.items() if on] != ["AllNamespaces"]:
            yield f"{where}: webhook {hook['generateName']}: conversion needs the install mode AllNamespaces alone"


def _definitions(objects: list[Json], version: Json) -> Iterator[str]:
    owned = {(each["name"], each["version"], each["kind"]) for each in _owned(version)}
    present = {
        (each["metadata"]["name"], served["name"], each["spec"]["names"]["kind"])
        for each in objects
        if each.get("kind") == "CustomResourceDefinition"
        for served in each["spec"]["versions"]
    }
    for name, served, kind in sorted(owned - present):
        yield f"{kind} {served}: owned, but no CustomResourceDefinition {name} has it"
    for name in sorted({each[0] for each in present} - {each[0] for each in owned}):
        yield f"CustomResourceDefinition {name}: not owned by the ClusterServiceVersion"


def _examples(version: Json) -> Iterator[str]:
    where = f"ClusterServiceVersion {version['metadata'].get('name', '')}: alm-examples"
    try:
        examples = json.loads(version["metadata"].get("annotations", {}).get("alm-examples", "[]"))
    except ValueError as error:
        yield f"{where}: not JSON: {error}"
        return
    owned = {(f"{each['name'].partition('.')[2]}/{each['version']}", each["kind"]) for each in _owned(version)}
    for each in examples:
        if (each.get("apiVersion"), each.get("kind")) not in owned:
            yield f"{where}: {each.get('apiVersion')} {each.get('kind')} is not owned"


def _owned(version: Json) -> list[Json]:
    found: list[Json] = version["spec"].get("customresourcedefinitions", {}).get("owned", [])
    return found


def _strategy(version: Json) -> Json:
    found: Json = version.get("spec", {}).get("install", {}).get("spec", {})
    return found
