"""Packages of an operator: `install.yaml`, a Helm chart, a kustomize base, an OLM bundle, monitoring, a scorecard.

    package = make_package(operator, read_overrides(path), read_project(pyproject), str(path))
    text = install_yaml(package)

- `Operator` is what a program needs, derived from its classes (`ostinato.crd`, `ostinato.webhook`).
- `Overrides` is what a project decides about its deployment (`deploy/overrides.yaml`).
- The output depends on these alone, and is the same every time.
"""

from ostinato.packaging.error import PackageError
from ostinato.packaging.formats.helm import helm_chart
from ostinato.packaging.formats.install import install_yaml
from ostinato.packaging.formats.kustomize import kustomize_files
from ostinato.packaging.formats.monitoring import monitoring_files
from ostinato.packaging.formats.olm import olm_bundle
from ostinato.packaging.operator import OWN_NAMESPACE, Operator, WebhookServer
from ostinato.packaging.output import check_files, write_files
from ostinato.packaging.overrides import Overrides, parse_overrides, read_overrides
from ostinato.packaging.package import Package, make_package
from ostinato.packaging.project import Project, read_project
from ostinato.packaging.samples import read_samples

__all__ = [
    "OWN_NAMESPACE",
    "Operator",
    "Overrides",
    "Package",
    "PackageError",
    "Project",
    "WebhookServer",
    "check_files",
    "helm_chart",
    "install_yaml",
    "kustomize_files",
    "make_package",
    "monitoring_files",
    "olm_bundle",
    "parse_overrides",
    "read_overrides",
    "read_project",
    "read_samples",
    "write_files",
]
