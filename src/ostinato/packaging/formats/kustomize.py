"""A kustomize base, a component for monitoring, and two overlays that belong to the project.

Replicas always elect a leader here, so that an overlay may change their number.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.formats.install import concrete_manifests, yaml_text
from ostinato.packaging.headers import HEADER, KEPT
from ostinato.packaging.manifest import Manifest
from ostinato.packaging.package import Package

Json = dict[str, Any]

_API: Final = "kustomize.config.k8s.io/v1beta1"
_COMPONENT_KIND: Final = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
_COMPONENT: Final = "# components: [../../components/monitoring]  # needs prometheus-operator and Grafana's sidecar\n"


def kustomize_files(package: Package) -> dict[str, str]:
    overrides = package.overrides
    features = msgspec.structs.replace(overrides.features, service_monitor=True, alerts=True, dashboard=True)
    chosen = msgspec.structs.replace(
        overrides, leader_election=True, features=features if overrides.features.metrics else overrides.features
    )
    manifests = concrete_manifests(msgspec.structs.replace(package, overrides=chosen))
    wanted = {
        "serviceMonitor": overrides.features.service_monitor,
        "alerts": overrides.features.alerts,
        "dashboard": overrides.features.dashboard,
    }
    base = [each for each in manifests if wanted.get(each.feature, True)]
    optional = [each for each in manifests if each not in base]
    return {
        **_directory("base", base, {"apiVersion": _API, "kind": "Kustomization"}),
        **(_directory("components/monitoring", optional, _COMPONENT_KIND) if optional else {}),
        "overlays/development/kustomization.yaml": KEPT + _overlay(package, replicas=1, tag="dev", pull="Always"),
        "overlays/production/kustomization.yaml": KEPT
        + _overlay(package, replicas=2)
        + (_COMPONENT if optional else ""),
    }


def _directory(name: str, manifests: list[Manifest], kind: Json) -> dict[str, str]:
    by_file: dict[str, list[Json]] = {}
    for each in manifests:
        by_file.setdefault(each.file, []).append(each.object)
    files = {f"{name}/{file}": yaml_text(objects) for file, objects in by_file.items()}
    index = {**kind, "resources": sorted(by_file)}
    return {**files, f"{name}/kustomization.yaml": HEADER + encode_yaml(index).decode()}


def _overlay(package: Package, *, replicas: int, tag: str = "", pull: str = "") -> str:
    image = package.image
    pinned = {"digest": image.digest} if image.digest and not tag else {"newTag": tag or image.tag or "latest"}
    overlay: Json = {
        "apiVersion": _API,
        "kind": "Kustomization",
        "resources": ["../../base"],
        "images": [{"name": image.repository, **pinned}],
        "replicas": [{"name": package.name, "count": replicas}],
    }
    if pull:
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/imagePullPolicy", "value": pull}]
        target = {"kind": "Deployment", "name": package.name}
        overlay["patches"] = [{"target": target, "patch": encode_yaml(patch).decode()}]
    return encode_yaml(overlay).decode()
