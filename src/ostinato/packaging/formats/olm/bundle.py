"""The files of a bundle: manifests, metadata, scorecard configuration and Dockerfile."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.error import PackageError
from ostinato.packaging.formats.install import concrete_manifests, yaml_text
from ostinato.packaging.formats.olm.csv import service_version
from ostinato.packaging.headers import HEADER
from ostinato.packaging.operator import Operator, with_certificate_files
from ostinato.packaging.package import Package

Json = dict[str, Any]

CERTIFICATES: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where OLM mounts them
_BUNDLE: Final = "operators.operatorframework.io.bundle"
_TEST: Final = "operators.operatorframework.io.test"
_IMAGE: Final = "quay.io/operator-framework/scorecard-test:v1.42.0"
_SCORECARD: Final = {
    "basic": ("basic-check-spec",),
    "olm": (
        "olm-bundle-validation",
        "olm-crds-have-validation",
        "olm-crds-have-resources",
        "olm-spec-descriptors",
        "olm-status-descriptors",
    ),
}
# Objects that every version of OLM accepts beside the ClusterServiceVersion, which replaces the others.
_BESIDE: Final = {
    "CustomResourceDefinition",
    "ClusterRole",
    "ConfigMap",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Service",
    "ServiceMonitor",
}


def olm_bundle(package: Package) -> dict[str, str]:
    """Return the contents of the bundle's files, by name. PackageError for what OLM cannot install."""
    _check(package)
    files_of_olm = with_certificate_files(package.operator, CERTIFICATES)
    mounted = msgspec.structs.replace(package, operator=_without_mounts(files_of_olm))
    manifests = concrete_manifests(mounted)
    version = service_version(mounted, [each.object for each in manifests])
    files = {f"manifests/{package.name}.clusterserviceversion.yaml": yaml_text([version])}
    for each in manifests:
        found = each.object
        if found["kind"] not in _BESIDE or each.file in ("rbac.yaml", "webhook-services.yaml"):
            continue
        metadata = {name: value for name, value in found["metadata"].items() if name != "namespace"}
        name = f"{metadata['name']}_{found['kind'].lower()}.yaml"
        files[f"manifests/{name}"] = yaml_text([{**found, "metadata": metadata}])
    annotations = _annotations(package)
    labels = "".join(f"LABEL {name}={value}\n" for name, value in annotations.items())
    copies = "COPY manifests /manifests/\nCOPY metadata /metadata/\nCOPY tests/scorecard /tests/scorecard/\n"
    return {
        **files,
        "metadata/annotations.yaml": HEADER + encode_yaml({"annotations": annotations}).decode(),
        "tests/scorecard/config.yaml": HEADER + encode_yaml(_scorecard()).decode(),
        "bundle.Dockerfile": f"{HEADER}FROM scratch\n\n{labels}\n{copies}",
    }


def _without_mounts(operator: Operator) -> Operator:
    """Return the operator without certificate files to mount: OLM mounts them by itself."""
    return msgspec.structs.replace(
        operator, webhooks=[msgspec.structs.replace(each, certificates="") for each in operator.webhooks]
    )


def _check(package: Package) -> None:
    if "+" in package.version:
        raise PackageError(f"version {package.version}: OLM accepts no build metadata; set version without +")
    for server in package.operator.webhooks:
        for entry in (each for some in server.configurations for each in some["webhooks"]):
            for field in ("namespaceSelector", "matchConditions"):
                if field in entry:
                    raise PackageError(f"webhook {entry['name']}: OLM does not support {field}; remove it")
    if not package.overrides.olm.channels:
        raise PackageError("olm.channels: not set; name at least one channel")
    for channel in (*package.overrides.olm.channels, package.overrides.olm.default_channel):
        if any(not (character.isalnum() or character in "._-") for character in channel):
            raise PackageError(f"olm.channels: {channel!r} is not a channel name; use letters, digits, '.', '_', '-'")


def _annotations(package: Package) -> dict[str, str]:
    olm = package.overrides.olm
    return {
        f"{_BUNDLE}.mediatype.v1": "registry+v1",
        f"{_BUNDLE}.manifests.v1": "manifests/",
        f"{_BUNDLE}.metadata.v1": "metadata/",
        f"{_BUNDLE}.package.v1": package.name,
        f"{_BUNDLE}.channels.v1": ",".join(olm.channels),
        f"{_BUNDLE}.channel.default.v1": olm.default_channel or olm.channels[0],
        f"{_TEST}.mediatype.v1": "scorecard+v1",
        f"{_TEST}.config.v1": "tests/scorecard/",
    }


def _scorecard() -> Json:
    tests = [
        {
            "entrypoint": ["scorecard-test", name],
            "image": _IMAGE,
            "labels": {"suite": suite, "test": f"{name}-test"},
            "storage": {"spec": {"mountPath": {}}},
        }
        for suite, names in _SCORECARD.items()
        for name in names
    ]
    return {
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "serviceaccount": "",
        "stages": [{"parallel": True, "tests": tests}],
        "storage": {"spec": {"mountPath": {}}},
    }
