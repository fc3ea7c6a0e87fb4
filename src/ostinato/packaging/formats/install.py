"""`install.yaml`: all objects in one file, for `kubectl apply`."""

from __future__ import annotations

from typing import Any

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.headers import HEADER
from ostinato.packaging.manifest import Manifest, resolved
from ostinato.packaging.objects.everything import all_objects, features_of
from ostinato.packaging.objects.inputs import concrete_inputs
from ostinato.packaging.package import Package

Json = dict[str, Any]


def concrete_manifests(package: Package) -> list[Manifest]:
    """Return the objects of a package as it is configured, with the features that are on."""
    is_on = features_of(package)
    return [
        each._replace(object=resolved(each.object, is_on))
        for each in all_objects(concrete_inputs(package))
        if is_on(each.feature)
    ]


def install_yaml(package: Package) -> str:
    return yaml_text([each.object for each in concrete_manifests(package)])


def yaml_text(objects: list[Json]) -> str:
    return HEADER + "---\n".join(encode_yaml(each).decode() for each in objects)
