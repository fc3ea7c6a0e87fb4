"""A package: what a program needs, and how a project wants it deployed, checked and complete."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.validation import field_values, names
from ostinato.packaging.error import PackageError
from ostinato.packaging.image import Image, parse_image
from ostinato.packaging.operator import Operator, with_certificate_files
from ostinato.packaging.overrides import Overrides
from ostinato.packaging.project import Project, semantic_version
from ostinato.webhook.configuration import ServiceEndpoint

Json = dict[str, Any]

HEALTH_PORT: Final = 8081
METRICS_PORT: Final = 8080
RESERVED_LABELS: Final = ("app.kubernetes.io/name", "app.kubernetes.io/instance")  # of selectors, which cannot change
_CERTIFICATES: Final = "/etc/webhook-certificate"
_MAX_NAME: Final = 45  # leaves room for the longest suffix, -webhook-certificate, in 63 characters
_SOURCES: Final = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `name`: of the Deployment and all other objects, as a prefix or in full.
    - `version`: a semantic version.
    - `samples`: example objects of the operator's kinds.
    """

    name: str
    namespace: str
    version: str
    image: Image
    operator: Operator
    project: Project
    overrides: Overrides
    samples: Sequence[Json] = ()

    @property
    def elects(self) -> bool:
        """Whether replicas elect a leader: always if there are several."""
        return bool(self.operator.lease) or self.overrides.leader_election or self.overrides.replicas > 1

    @property
    def lease(self) -> str:
        return self.operator.lease or self.name

    @property
    def account(self) -> str:
        return self.overrides.service_account.name or self.name

    @property
    def program(self) -> list[str]:
        chosen = self.overrides.program
        return [chosen] if isinstance(chosen, str) and chosen else list(chosen or self.operator.program)

    @property
    def description(self) -> str:
        return self.overrides.description or self.project.description or f"The operator {self.name}"


def make_package(
    operator: Operator, overrides: Overrides, project: Project, file: str, samples: Sequence[Json] = ()
) -> Package:
    """Complete and check the overrides. PackageError names the field in `file`."""
    name = overrides.name or project.name.lower().replace("_", "-").replace(".", "-")
    checks = _Checks(file)
    checks.label("name", name, longest=_MAX_NAME, unset="set it, or name in pyproject.toml")
    namespace = overrides.namespace or _endpoint_namespace(operator) or f"{name}-system"
    checks.label("namespace", namespace)
    if not overrides.image:
        checks.fail("image", "not set; set image: REGISTRY/NAME:TAG, or pass --image")
    _check_text(checks, overrides)
    _check_container(checks, overrides)
    _check_placement(checks, overrides)
    chosen = overrides.certificates
    if (chosen.cert_manager or chosen.secret or chosen.issuer) and not all(
        each.certificates for each in operator.webhooks
    ):
        operator = with_certificate_files(operator, _CERTIFICATES)
    package = Package(
        name=name,
        namespace=namespace,
        version=checks.run("version", lambda: semantic_version(overrides.version or project.version or "0.1.0")),
        image=checks.run("image", lambda: parse_image(overrides.image)),
        operator=operator,
        project=project,
        overrides=overrides,
        samples=samples,
    )
    _check_program(checks, package)
    _check_webhooks(checks, package)
    return package


class _Checks:
    def __init__(self, file: str) -> None:
        self._file = file

    def fail(self, field: str, problem: str) -> None:
        raise PackageError(f"{self._file}: {field}: {problem}")

    def run(self, field: str, function: Any) -> Any:
        try:
            return function()
        except ValueError as error:
            raise PackageError(f"{self._file}: {field}: {error}") from None

    def label(self, field: str, value: str, *, longest: int = 63, unset: str = "set it") -> None:
        if not value:
            self.fail(field, f"not set; {unset}")
        if problems := names.is_dns1035_label(value):  # as Services need it
            self.fail(field, f"{value!r} is not a valid name: {problems[0]}")
        if len(value) > longest:
            self.fail(field, f"{value!r} has more than {longest} characters; use a shorter one")

    def subdomain(self, field: str, value: str) -> None:
        if problems := names.is_dns1123_subdomain(value):
            self.fail(field, f"{value!r} is not a valid name: {problems[0]}")

    def labels(self, field: str, values: Mapping[str, str], *, reserved: Sequence[str] = ()) -> None:
        self.keys(field, values)
        for key, value in values.items():
            if problems := names.is_label_value(value):
                self.fail(f"{field}.{key}", f"{value!r} is not a label value: {problems[0]}")
            if key in reserved:
                self.fail(f"{field}.{key}", "set by the package; use another label")

    def keys(self, field: str, values: Mapping[str, str]) -> None:
        for key in values:
            if problems := names.is_qualified_name(key):
                self.fail(field, f"{key!r} is not a valid key: {problems[0]}")


def _check_text(checks: _Checks, overrides: Overrides) -> None:
    checks.labels("labels", overrides.labels, reserved=RESERVED_LABELS)
    checks.labels("podLabels", overrides.pod_labels, reserved=RESERVED_LABELS)
    checks.labels("nodeSelector", overrides.node_selector)
    checks.keys("annotations", overrides.annotations)
    checks.keys("podAnnotations", overrides.pod_annotations)
    checks.keys("serviceAccount.annotations", overrides.service_account.annotations)
    accounts = {
        "serviceAccount.name": overrides.service_account.name,
        "priorityClassName": overrides.priority_class_name,
    }
    certificates = {
        "certificates.secret": overrides.certificates.secret,
        "certificates.issuer": overrides.certificates.issuer,
    }
    for field, value in (accounts | certificates).items():
        if value:
            checks.subdomain(field, value)
    for index, secret in enumerate(overrides.image_pull_secrets):
        checks.subdomain(f"imagePullSecrets[{index}].name", secret.name)
    if not overrides.service_account.create and not overrides.service_account.name:
        checks.fail("serviceAccount.name", "not set; name the existing account, or set create: true")


def _check_container(checks: _Checks, overrides: Overrides) -> None:
    if overrides.namespaced and "POD_NAMESPACE" in overrides.env:
        checks.fail("env.POD_NAMESPACE", "set by the package if namespaced is true; remove it")
    for name, value in overrides.env.items():
        if problems := field_values.is_relaxed_env_var_name(name):
            checks.fail("env", f"{name!r} is not a variable name: {problems[0]}")
        if isinstance(value, dict) and (len(value) != 1 or next(iter(value)) not in _SOURCES):
            checks.fail(f"env.{name}", f"want a text, or one of {', '.join(_SOURCES)}")
    for kind, amounts in (("requests", overrides.resources.requests), ("limits", overrides.resources.limits)):
        for resource, amount in amounts.items():
            checks.run(f"resources.{kind}.{resource}", lambda amount=amount: Quantity.parse(amount))
    for index, directory in enumerate(overrides.writable_directories):
        if not directory.startswith("/") or posixpath.normpath(directory) != directory or directory == "/":
            checks.fail(f"writableDirectories[{index}]", f"{directory!r} is not an absolute path below /")
    if len(set(overrides.writable_directories)) < len(overrides.writable_directories):
        checks.fail("writableDirectories", "a directory is listed twice")


def _check_placement(checks: _Checks, overrides: Overrides) -> None:
    if overrides.replicas < 0:
        checks.fail("replicas", f"{overrides.replicas} is less than 0")
    features = overrides.features
    of_metrics = {
        "secureMetrics": features.secure_metrics,
        "serviceMonitor": features.service_monitor,
        "alerts": features.alerts,
        "dashboard": features.dashboard,
    }
    for feature, on in of_metrics.items():
        if on and not features.metrics:
            checks.fail(f"features.{feature}", "needs features.metrics: true")


def _check_program(checks: _Checks, package: Package) -> None:
    for each in package.program:
        is_path = each.endswith(".py") or "/" in each
        if not each or each.startswith("-") or (is_path and ".." in each.split("/")):
            checks.fail("program", f"{each!r} is not a module, nor a file in the image; set program: MODULE")


def _check_webhooks(checks: _Checks, package: Package) -> None:
    services: dict[str, int] = {}
    for server in package.operator.webhooks:
        endpoint = server.endpoint
        if not isinstance(endpoint, ServiceEndpoint):
            raise PackageError(
                f"webhooks {server.name!r} are served at {endpoint.url}, not by a Service of the cluster; "
                "use endpoint=ServiceEndpoint(namespace, name)"
            )
        if endpoint.namespace != package.namespace:
            checks.fail(
                "namespace",
                f"{package.namespace!r} is not the namespace of webhooks {server.name!r}; "
                f"set namespace: {endpoint.namespace}, or change their ServiceEndpoint",
            )
        if services.setdefault(endpoint.name, server.port) != server.port:
            raise PackageError(f"two webhook servers share the Service {endpoint.name!r}; give each one of its own")
        if server.port in (HEALTH_PORT, METRICS_PORT):
            raise PackageError(
                f"webhooks {server.name!r}: port {server.port} is that of health or metrics; use another"
            )


def _endpoint_namespace(operator: Operator) -> str:
    endpoints = [each.endpoint for each in operator.webhooks]
    return next((each.namespace for each in endpoints if isinstance(each, ServiceEndpoint)), "")
