"""`.Capabilities`: the version of Kubernetes and the APIs that templates ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ostinato.charts.chart import ChartError
from ostinato.gotemplate import Function, Object, Strings

_KUBE_VERSION: Final = "v1.36.0"
HELM_VERSION: Final = "v3.21.4"  # whose behaviour this is
_VERSION: Final = re.compile(r"\s*v?(?P<numbers>[0-9]+(?:\.[0-9]+)+)(?P<rest>.*?)\s*", re.DOTALL)

# The API versions that `helm template` knows without a cluster: those of client-go 0.36.
DEFAULT_API_VERSIONS: Final = (
    "v1", "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1", "internal.apiserver.k8s.io/v1alpha1", "apps/v1", "apps/v1beta1",
    "apps/v1beta2", "authentication.k8s.io/v1", "authentication.k8s.io/v1alpha1", "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1", "authorization.k8s.io/v1beta1", "autoscaling/v1", "autoscaling/v2", "batch/v1",
    "batch/v1beta1", "certificates.k8s.io/v1", "certificates.k8s.io/v1beta1", "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2", "coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1", "events.k8s.io/v1", "events.k8s.io/v1beta1", "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3", "networking.k8s.io/v1", "networking.k8s.io/v1beta1", "node.k8s.io/v1",
    "node.k8s.io/v1alpha1", "node.k8s.io/v1beta1", "policy/v1", "policy/v1beta1", "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1", "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", "storage.k8s.io/v1beta1", "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1", "storagemigration.k8s.io/v1beta1", "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Capabilities:
    """A cluster's version and its API versions (`apps/v1`) and kinds (`apps/v1/Deployment`)."""

    kube_version: str = _KUBE_VERSION
    api_versions: tuple[str, ...] = DEFAULT_API_VERSIONS

    @staticmethod
    def of(kube_version: str | None = None, extra: Iterable[str] = ()) -> Capabilities:
        """Return the default ones with another version, and API versions beside. Raises ChartError."""
        version = _KUBE_VERSION if kube_version is None else parsed_version(kube_version)
        return Capabilities(version, (*DEFAULT_API_VERSIONS, *extra))

    def value(self) -> Object:
        """Return what templates see."""
        major, minor = self.kube_version.removeprefix("v").split(".")[:2]
        return Object(
            {
                "KubeVersion": _KubeVersion(self.kube_version, major, minor),
                "APIVersions": _VersionSet(self.api_versions),
                "HelmVersion": Object(
                    {"Version": HELM_VERSION, "GitCommit": "", "GitTreeState": "", "GoVersion": ""},
                    go_type="version.BuildInfo",
                ),
            },
            go_type="*chartutil.Capabilities",
        )


class _KubeVersion(Object):
    go_type = "chartutil.KubeVersion"

    def __init__(self, version: str, major: str, minor: str) -> None:
        methods = {"String": lambda: version, "GitVersion": lambda: version}
        super().__init__({"Version": version, "Major": major, "Minor": minor}, methods)

    def text(self) -> str:
        return str(self.fields["Version"])


class _VersionSet(Strings):
    go_type = "chartutil.VersionSet"

    def __init__(self, versions: Iterable[str]) -> None:
        super().__init__(versions)
        known = frozenset(self)
        self.methods = {"Has": Function(known.__contains__, ["string"])}


def parsed_version(text: str) -> str:
    """Return a version of Kubernetes in full; parts may be missing. Raises ChartError."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ChartError(f"invalid kube version '{text}': could not parse \"{text}\" as version")
    numbers = [str(int(part)) for part in found["numbers"].split(".")]
    return "v" + ".".join(numbers)
